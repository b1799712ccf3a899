#pragma once
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "krigtune/core/clock.h"

namespace krigtune {

/// A program that is to run as several ranks on this machine.
struct LocalRanks {
  std::filesystem::path program;
  std::vector<std::string> arguments;  ///< without the program's name
  int ranks = 1;
  double farewell_s = 5.0;  ///< for the others to end by themselves once a rank has failed or rank 0 is done
  double grace_s = 2.0;     ///< and then between SIGTERM and SIGKILL
};

/// Starts it once for each rank, with torchrun's variables, and waits for all. Rank 0 has this process's stdout; what
/// the others print there, and everybody's stderr, goes to stderr. SIGINT, SIGTERM and SIGHUP are passed on. No rank
/// outlives this process, or the others by more than farewell_s and grace_s.
///
/// Returns rank 0's exit code, unless rank 0 only saw that others are gone or could not end by itself: then that of the
/// first that failed (128 + n for signal n). Throws EnvironmentError where a process cannot be had.
int run_local_ranks(const LocalRanks& job, const Clock& clock, std::ostream& err);

/// This program again, for each rank of the options' job: if it has several, all on this machine and with its own
/// network. Returns the exit code; nothing where one process does it all.
std::optional<int> run_as_ranks(const BenchOptions& options, const std::vector<std::string>& arguments,
                                const Clock& clock, std::ostream& err);

}  // namespace krigtune
