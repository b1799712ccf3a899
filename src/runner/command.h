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

/// A user's program, run as one process per trial.
struct CommandSpec {
  static trial::RunnerEntry<CommandSpec> entry();
  std::optional<std::vector<std::string>> measured_names() const;  ///< empty: what the program's result will name

  std::vector<std::string> argv;            ///< with placeholders (trial/placeholders.h); never a shell
  std::filesystem::path working_directory;  ///< absolute
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours; with placeholders too
  JobFiles job;                                                  ///< flags, templates, set
  double timeout_s = 3600.0;
  double grace_s = 10.0;                ///< between SIGTERM and SIGKILL
  std::optional<double> no_progress_s;  ///< the program has hung if its output has not grown for this long
  std::vector<int> oom_exit_codes;      ///< in addition to the result's status
  /// Regular expressions (ECMAScript) for its output, in addition to the built-in ones.
  std::vector<std::string> oom_patterns;
  /// What to measure in its output; without metrics the program writes a result.
  trial::MeasureSpec measure;
  std::string recipe;  ///< the recipe that made argv from the user's own command; "": none
  /// The user's own command, with placeholders for values that the recipe does not know.
  std::vector<std::string> users_command;
};

/// What a command trial needs in addition to the configuration. Copied.
struct CommandJob {
  CommandSpec spec;
  std::string metric;                         ///< the objective's name, which is the key of its value in the result
  const std::atomic<bool>* stop = nullptr;    ///< once true, the running trial is ended as interrupted; must outlive it
  space::Space space = space::Space({}, {});  ///< the space whose names its placeholders may use
};

/// Returns the number at the beginning of a trial's directory name: 7 for 0007_z1.
std::int64_t trial_number(const std::filesystem::path& dir);

/// Starts the user's program once per trial, in its own process group, with its placeholders filled in: parameters and
/// facts of the job, and {config} (a JSON file with the configuration), {result} (the JSON file that the program
/// writes), {dir} (the trial's directory) and {trial} (the number at the beginning of the directory's name). A program
/// may append lines {"throughput": 11.9, "value_sem": 0.2, "steps": 8} to {result}.progress, with its current objective
/// and standard error; it is then ended (SIGTERM) once it is certainly worse than the best. Out of memory is detected
/// from the result's status, exit code, signal or output. With `measure` there is no result: the output is read while
/// the program runs, and the program is ended when enough was read. `clock` must outlive it.
std::unique_ptr<trial::Runner> make_command_runner(CommandJob job, const Clock& clock);

}  // namespace krigtune::runner
