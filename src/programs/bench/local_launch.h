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

/// A vector of strings as exec wants it.
class CStrings {
 public:
  explicit CStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  CStrings(const CStrings&) = delete;
  CStrings& operator=(const CStrings&) = delete;

  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// The arguments of a program, behind its name.
inline CStrings command_line(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return CStrings(std::move(words));
}

/// The environment of this process.
engine::Environment process_environment();

/// Throws UserError where so many processes cannot train what the job's cluster describes.
void check_cluster(const workload::ClusterSpec& cluster, const engine::Launch& launch);

/// If any process has failed so far, all have: with the ending of the first of them. Every process calls it.
BenchEnding agreed_ending(const BenchEnding& mine, engine::Processes* processes);

/// What the exception that is being handled means for the run.
BenchEnding ending_of_current_exception(engine::Processes* processes);

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

/// This program again, for each rank of the cluster: if it has several, all on this machine and with its own network.
/// Returns the exit code; nothing where one process does it all.
std::optional<int> run_as_ranks(const workload::ClusterSpec& cluster, const std::vector<std::string>& arguments,
                                const Clock& clock, std::ostream& err);

}  // namespace krigtune::bench
