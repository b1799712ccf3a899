#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>

#include "deepspeed/job/deepspeed_spec.h"
#include "runner/bench.h"
#include "runner/command.h"
#include "runner/replay.h"
#include "runner/simulate.h"
#include "trial/runner.h"

namespace krigtune::runner {

/// Only the user runs trials, with `krigtune ask` and `krigtune tell`.
struct NoRunner {
  static trial::RunnerEntry<NoRunner> entry();
};

/// The session's block "runner", resolved: the settings of the chosen runner. A new runner is one more alternative
/// (docs/adding.md).
using RunnerSpec = std::variant<BenchSpec, SimulateSpec, ReplaySpec, CommandSpec, deepspeed::DeepSpeedSpec, NoRunner>;

template <class Spec>
bool is(const RunnerSpec& spec) {
  return std::holds_alternative<Spec>(spec);
}

trial::RunnerTraits traits_of(const RunnerSpec& spec);

/// Returns the time limit of a trial in seconds; 0 if no program runs.
double timeout_s(const RunnerSpec& spec);

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
