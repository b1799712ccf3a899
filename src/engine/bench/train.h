#pragma once
#include <functional>

#include "bench/bench_engine.h"
#include "bench/options.h"

namespace krigtune {

/// Measures a job as the options say; `step` is the trainer's, with whatever must be done after each. `writes`: of the
/// processes of the job, this one writes the trace, if one was asked for. Throws what Trainer throws.
TrainedJob train(BenchTrainer& trainer, const std::function<StepResult()>& step, const Clock& clock,
                 const BenchOptions& options, bool writes);

}  // namespace krigtune
