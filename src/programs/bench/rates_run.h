#pragma once
#include <iosfwd>

#include "core/clock.h"
#include "engine/host/launch.h"
#include "programs/bench/train.h"

namespace krigtune::bench {

/// Where the ranks of the job are. Alone: as the cluster says. With other processes: by the machines that they are on,
/// or as the cluster says where the options name a job. All processes call it.
JobRanks job_ranks(const workload::ClusterSpec& cluster, bool cluster_is_stated, engine::Processes* processes);

/// --measure-rates on the ranks of this process: the one of rank 0 prints what was found, as tables or with --json.
/// Returns the exit code.
int run_rates(const BenchEngine& engine, const BenchOptions& options, const engine::Launch& launch, const Clock& clock,
              std::ostream& out, std::ostream& err);

}  // namespace krigtune::bench
