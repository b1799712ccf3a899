#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"

namespace krigtune::trial {

/// A program to run to its end. There is no shell: argv is passed to the program unchanged.
struct ProcessSpec {
  std::vector<std::string> argv;  ///< argv[0]: a path, relative to working_directory, or a name looked up in its PATH
  std::filesystem::path stdout_file;
  std::filesystem::path stderr_file;
  double timeout_s = 300.0;
  double grace_s = 2.0;                     ///< between SIGTERM and SIGKILL
  const std::atomic<bool>* stop = nullptr;  ///< once true, the program is ended as after a timeout
  /// Once true, the program is ended in the same way; called about twenty times a second. Null: never.
  std::function<bool()> enough = {};
  std::filesystem::path working_directory = {};                       ///< empty: ours
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to ours
  /// The program is ended if no file below has changed for this long.
  std::optional<double> no_progress_s = std::nullopt;
  std::vector<std::filesystem::path> progress_files = {};  ///< in addition to stdout_file and stderr_file
  /// Returns how much of one of the two outputs was read by somebody who reads it while the program runs; what was not
  /// read is not freed (output_limit.h). Null: nobody does.
  std::function<std::uint64_t(const std::filesystem::path& output)> read_up_to = {};
  /// Returns another number that changes with progress. Null: none.
  std::function<std::int64_t()> signs_of_life = {};
};

struct ProcessResult {
  int exit_code = 0;  ///< 128 + signal if a signal ended it
  int signal = 0;     ///< 0: none
  bool timed_out = false;
  bool stopped = false;     ///< by ProcessSpec::stop
  bool hung = false;        ///< by ProcessSpec::no_progress_s
  bool cut_short = false;   ///< by ProcessSpec::enough
  std::string start_error;  ///< not empty: the reason why it could not be started
  /// Not empty: the place ended it although the configuration is not at fault, and why: a node that failed, a
  /// preemption, a job that an administrator cancelled. The trial must be run again.
  std::string lost;
  bool out_of_memory = false;  ///< reported by the place: a job's memory limit
  double wall_s = 0.0;
  /// The largest of the program and its descendants; at least this process's own size at the start, because Linux
  /// counts a process's memory before it became the program.
  std::int64_t peak_rss_bytes = 0;
};

/// Runs it in its own process group with empty stdin. When it returns, the program and all its descendants are gone,
/// including those in sessions of their own. The same is true soon after this process has died in any way.
ProcessResult run_process(const ProcessSpec& spec, const Clock& clock);

}  // namespace krigtune::trial
