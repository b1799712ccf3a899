#pragma once
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "engine/host/launch.h"
#include "engine/host/processes.h"
#include "programs/bench/bench_result.h"
#include "programs/bench/options.h"

namespace krigtune::bench {

/// The environment of this process.
engine::Environment process_environment();

/// Throws UserError if that many processes cannot train what the job's cluster describes.
void check_cluster(const workload::ClusterSpec& cluster, const engine::Launch& launch);

/// If any process has failed so far, all of them return the ending of the first one that did. Every process must call
/// it.
BenchEnding agreed_ending(const BenchEnding& mine, engine::Processes* processes);

/// Returns the ending for the exception that is being handled.
BenchEnding ending_of_current_exception(engine::Processes* processes);

/// A program to run as several ranks on this machine.
struct LocalRanks {
  std::filesystem::path program;
  std::vector<std::string> arguments;  ///< without the program's name
  int ranks = 1;
  double farewell_s = 5.0;  ///< time for the other ranks to end by themselves once a rank has failed or rank 0 is done
  double grace_s = 2.0;     ///< time between SIGTERM and SIGKILL after that
};

/// Starts the program once for each rank, with torchrun's variables, and waits for all ranks. Rank 0 uses this
/// process's stdout; the other ranks' output and everybody's stderr go to stderr. SIGINT, SIGTERM and SIGHUP are passed
/// on. No rank outlives this process, or the other ranks by more than farewell_s and grace_s.
///
/// Returns rank 0's exit code. If rank 0 only saw that others were gone, or could not end by itself, returns that of
/// the first rank that failed (128 + n for signal n). Throws EnvironmentError if a process cannot be started.
int run_local_ranks(const LocalRanks& job, const Clock& clock, std::ostream& err);

/// Runs this program again for each rank of the cluster, if it has several ranks, they are all on this machine and the
/// network is its own. Returns the exit code, or nothing if one process runs the whole job.
std::optional<int> run_as_ranks(const workload::ClusterSpec& cluster, const std::vector<std::string>& arguments,
                                const Clock& clock, std::ostream& err);

}  // namespace krigtune::bench
