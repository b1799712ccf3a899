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

/// Nobody runs trials but the user, with `krigtune ask` and `krigtune tell`.
struct NoRunner {
  static trial::RunnerEntry<NoRunner> entry();
};

/// The session's block "runner", resolved: the settings of the runner that it names. A new runner is one more of these
/// (docs/adding.md).
using RunnerSpec = std::variant<BenchSpec, SimulateSpec, ReplaySpec, CommandSpec, deepspeed::DeepSpeedSpec, NoRunner>;

template <class Spec>
bool is(const RunnerSpec& spec) {
  return std::holds_alternative<Spec>(spec);
}

trial::RunnerTraits traits_of(const RunnerSpec& spec);

/// Seconds after which a trial is ended; 0: nothing runs that could be.
double timeout_s(const RunnerSpec& spec);

/// Relative paths are relative to `base_dir`. Throws UserError with the JSON pointer.
RunnerSpec read_runner(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir);
nlohmann::ordered_json to_json(const RunnerSpec& spec);
/// The block as a JSON Schema: one object for each kind.
nlohmann::ordered_json runner_schema();

/// Throws UserError where the settings do not fit the session's space. `block`: what read_runner has read.
void check_runner(const RunnerSpec& spec, const space::Space& space,
                  const std::optional<space::Configuration>& baseline, const JsonObject& block);

/// Throws UserError or EnvironmentError where no trial could run.
std::unique_ptr<trial::Runner> make_runner(const RunnerSpec& spec, const trial::RunnerJob& job);

}  // namespace krigtune::runner
