#pragma once
#include "bench/bench_result.h"
#include "bench/options.h"
#include "host/processes.h"

namespace krigtune {

/// Around the training: who takes part, what is to go wrong, who hears of it.
struct TrainingSetting {
  Processes* processes = nullptr;  ///< null: this process has all ranks
  std::optional<Fault> fault{};
  std::function<void(const char* phase, std::int64_t step)> step_ended{};
};

/// Trains and measures a planned job as the options say. Writes the trace, if one was asked for, of the ranks of this
/// process. Throws what Trainer throws.
TrainedJob train(StepPlan plan, const PlannedJob& planned, const BenchOptions& options, const Clock& clock,
                 const TrainingSetting& setting = {});

}  // namespace krigtune
