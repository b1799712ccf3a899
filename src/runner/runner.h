#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "deepspeed/job/deepspeed_spec.h"
#include "runner/bench.h"
#include "runner/command.h"
#include "runner/replay.h"
#include "runner/simulate.h"
#include "trial/measure_spec.h"
#include "trial/program.h"
#include "trial/runner.h"

namespace krigtune::runner {

/// Only the user runs trials, with `krigtune ask` and `krigtune tell`.
struct NoRunner {
  static trial::RunnerEntry<NoRunner> entry();
};

/// The session's block "runner", resolved: the settings of the chosen runner. A new runner is one more alternative
/// (docs/adding.md).
using RunnerSpec = std::variant<BenchSpec, SimulateSpec, ReplaySpec, CommandSpec, deepspeed::DeepSpeedSpec, NoRunner>;

/// Only this room and tests ask which runner it is. All others ask one of the questions below.
template <class Spec>
bool is(const RunnerSpec& spec) {
  return std::holds_alternative<Spec>(spec);
}

/// Returns the runner of a session without the block: krigtune-bench trains a workload; without a workload the user
/// runs the trials.
RunnerSpec default_runner(bool has_workload);

trial::RunnerTraits traits_of(const RunnerSpec& spec);
/// The same of a block that need not be valid; all properties have their defaults if no runner has its "kind".
trial::RunnerTraits traits_of_block(const nlohmann::ordered_json& block);

/// Returns the time limit of a trial in seconds; 0 if no program runs.
double timeout_s(const RunnerSpec& spec);
/// Returns the time of a trial; empty if only its program decides.
std::optional<trial::TrialTime> trial_time(const RunnerSpec& spec);
/// Returns whether a configuration that is measured again has the same value.
bool repeats_exactly(const RunnerSpec& spec);
/// Names the machine that is simulated; "" if none is.
std::string simulated_machine(const RunnerSpec& spec);

/// Returns the names of what it measures beside the objective. Empty: nobody knows before a trial has run.
std::optional<std::vector<std::string>> measured_names(const RunnerSpec& spec);
/// Returns what is looked for in the output of a trial; nullptr: nothing.
const trial::MeasureSpec* measure_of(const RunnerSpec& spec);

/// The user's own program, which every trial starts.
struct UsersProgram {
  std::vector<std::string> argv;
  trial::Environment environment;  ///< added to ours
};
std::optional<UsersProgram> users_program(const RunnerSpec& spec);
/// Returns the command with placeholders that every trial starts; nullptr: none.
const CommandSpec* command_of(const RunnerSpec& spec);
/// Returns the name or file of the recipe by which krigtune understands that command; "": none.
std::string recipe_of(const RunnerSpec& spec);
/// Returns the job whose ds_config.json every trial edits; nullptr: none.
const deepspeed::DeepSpeedSpec* ds_job_of(const RunnerSpec& spec);

/// Returns the configuration as a trial reads it; empty if none reads it from a file of krigtune.
std::optional<nlohmann::ordered_json> config_of(const RunnerSpec& spec, const space::Configuration& configuration,
                                                const std::optional<workload::Workload>& workload,
                                                const workload::ClusterSpec& cluster,
                                                const workload::MemorySpec& memory);
/// Returns the command by which `bench` measures what config_of has written to `config`; empty if trials do not use it.
std::vector<std::string> bench_command(const RunnerSpec& spec, const std::filesystem::path& bench,
                                       const std::filesystem::path& config, std::int64_t ranks);

/// Returns the file in which outcomes are looked up; nullptr: trials run.
const std::filesystem::path* table_file(const RunnerSpec& spec);
/// Reads that file, as ReplayTable does; nullptr without one. Throws UserError.
std::shared_ptr<const ReplayTable> read_table(const RunnerSpec& spec, const std::vector<std::string>& parameters,
                                              const std::string& metric, bool maximize);

/// Relative paths are relative to `base_dir`. Throws UserError with the JSON pointer.
RunnerSpec read_runner(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir);
nlohmann::ordered_json to_json(const RunnerSpec& spec);
/// Returns the JSON Schema of the block: one object for each kind.
nlohmann::ordered_json runner_schema();

/// Throws UserError if the settings do not fit the session's space. `block`: the JSON that read_runner has read.
void check_runner(const RunnerSpec& spec, const space::Space& space,
                  const std::optional<space::Configuration>& baseline, const JsonObject& block);

/// Throws UserError or EnvironmentError if no trial could run.
std::unique_ptr<trial::Runner> make_runner(const RunnerSpec& spec, const trial::RunnerJob& job);

}  // namespace krigtune::runner
