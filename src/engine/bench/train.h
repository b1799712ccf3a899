#pragma once
#include <optional>

#include "bench/bench_engine.h"
#include "bench/heartbeat.h"
#include "bench/options.h"
#include "host/processes.h"

namespace krigtune {

/// This process's part in the run.
struct TrainingPart {
  Processes* processes = nullptr;  ///< null: it is alone
  Heartbeat* heartbeat = nullptr;  ///< null: nobody watches
  std::optional<Fault> fault{};
};

/// Trains and measures a planned job as the options say, and writes the trace, if one was asked for. Called by all
/// processes alike; process 0 has what is to be reported. Throws what the engine throws.
TrainedJob train(const BenchEngine& engine, StepPlan plan, const PlannedJob& planned, const BenchOptions& options,
                 const Clock& clock, const TrainingPart& part = {});

}  // namespace krigtune
