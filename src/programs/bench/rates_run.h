#pragma once
#include <iosfwd>

#include "core/clock.h"
#include "engine/host/launch.h"
#include "programs/bench/train.h"

namespace krigtune::bench {

/// Returns the places of the job's ranks. A process that is alone takes them from the cluster. With other processes
/// they are taken from the machines, or from the cluster if the options name a job. All processes must call it.
JobRanks job_ranks(const workload::ClusterSpec& cluster, bool cluster_is_stated, engine::Processes* processes);

/// Runs --measure-rates on the ranks of this process. Rank 0's process prints the results as tables, or as JSON with
/// --json. Returns the exit code.
int run_rates(const BenchEngine& engine, const BenchOptions& options, const engine::Launch& launch, const Clock& clock,
              std::ostream& out, std::ostream& err);

}  // namespace krigtune::bench
