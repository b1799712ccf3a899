#pragma once
#include "bench/bench_result.h"
#include "bench/options.h"

namespace krigtune {

/// Trains and measures a planned job as the options say; `on_step` hears of every measured or warming step. Writes the
/// trace, if one was asked for. Throws what Trainer throws.
TrainedJob train(StepPlan plan, const PlannedJob& planned, const BenchOptions& options, const Clock& clock,
                 const OnStep& on_step = {});

}  // namespace krigtune
