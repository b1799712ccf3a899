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

/// A program to be run to its end. Never a shell: argv goes to the program as it is.
struct ProcessSpec {
  std::vector<std::string> argv;  ///< argv[0]: a path, relative to working_directory, or a name looked up in its PATH
  std::filesystem::path stdout_file;
  std::filesystem::path stderr_file;
  double timeout_s = 300.0;
  double grace_s = 2.0;                          ///< between SIGTERM and SIGKILL
  const std::atomic<bool>* stop = nullptr;       ///< once true, the program is ended as after a timeout
  std::function<bool()> enough = {};             ///< likewise; asked some twenty times a second. Null: never
  std::filesystem::path working_directory = {};  ///< empty: ours
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to ours
  std::optional<double> no_progress_s = std::nullopt;      ///< ended when no file below has changed for so long
  std::vector<std::filesystem::path> progress_files = {};  ///< besides stdout_file and stderr_file
  std::function<std::int64_t()> signs_of_life = {};        ///< another number that changes with progress. Null: none
};

struct ProcessResult {
  int exit_code = 0;  ///< 128 + signal when a signal ended it
  int signal = 0;     ///< 0: none
  bool timed_out = false;
  bool stopped = false;     ///< by ProcessSpec::stop
  bool hung = false;        ///< by ProcessSpec::no_progress_s
  bool cut_short = false;   ///< by ProcessSpec::enough
  std::string start_error;  ///< not empty: it could not be started, and why
  /// Not empty: the place where it ran ended it, for no fault of the configuration, and why: a node that failed, a
  /// preemption, a job that an administrator cancelled. The trial is to be run again.
  std::string lost;
  bool out_of_memory = false;  ///< the place says so: the limit of a job's memory
  double wall_s = 0.0;
  /// The largest of the program and its descendants; never below what this process itself held at the start, because
  /// Linux counts that of a process before it became the program.
  std::int64_t peak_rss_bytes = 0;
};

/// Runs it in a process group of its own, stdin empty. When it returns, the program and every descendant of it are
/// gone, also those that made sessions of their own. So they are soon after this process has died, however it died.
ProcessResult run_process(const ProcessSpec& spec, const Clock& clock);

}  // namespace krigtune::trial
