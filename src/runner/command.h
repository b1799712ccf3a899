#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/job_files.h"
#include "trial/measure_spec.h"
#include "trial/runner.h"

namespace krigtune::runner {

/// A program of the user's, one process a trial.
struct CommandSpec {
  static trial::RunnerEntry<CommandSpec> entry();

  std::vector<std::string> argv;            ///< with placeholders (trial/placeholders.h); never a shell
  std::filesystem::path working_directory;  ///< absolute
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours; with placeholders too
  JobFiles job;                                                  ///< flags, templates, set
  double timeout_s = 3600.0;
  double grace_s = 10.0;                   ///< between SIGTERM and SIGKILL
  std::optional<double> no_progress_s;     ///< ended as a hang when its output has not grown for so long
  std::vector<int> oom_exit_codes;         ///< beyond what the result says
  std::vector<std::string> oom_patterns;   ///< regular expressions (ECMAScript) over its output, added to the built-in
  trial::MeasureSpec measure;              ///< of its output; without metrics it writes a result
  std::string recipe;                      ///< that made argv of the user's own command; "": none did
  std::vector<std::string> users_command;  ///< that one, with placeholders for what the recipe does not know
};

/// What a command trial needs besides the configuration. Copied.
struct CommandJob {
  CommandSpec spec;
  std::string metric;                         ///< the objective's name: the key of the result that is its value
  const std::atomic<bool>* stop = nullptr;    ///< once true, the running trial is ended as interrupted; must outlive it
  space::Space space = space::Space({}, {});  ///< whose names its placeholders may use
};

/// The number that a trial's directory begins with: 7 of 0007_z1.
std::int64_t trial_number(const std::filesystem::path& dir);

/// Starts the user's program per trial, in a process group of its own, with its placeholders filled in: parameters and
/// facts of the job, and {config}, a JSON file of the configuration, {result}, the JSON file that the program writes,
/// {dir}, the trial's directory, and {trial}, the number that the directory's name begins with. A program may append
/// lines {"throughput": 11.9, "value_sem": 0.2, "steps": 8} to {result}.progress, its objective so far with its
/// standard error: then it is ended (SIGTERM) once it is surely worse than the best. Out of memory is told by the
/// result's status, exit code, signal or output. With `measure` there is no result: its output is read while it runs,
/// and it is ended once enough is read. `clock` must outlive it.
std::unique_ptr<trial::Runner> make_command_runner(CommandJob job, const Clock& clock);

}  // namespace krigtune::runner
