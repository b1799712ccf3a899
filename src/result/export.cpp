#include "result/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "result/writers.h"
#include "space/expression.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

// Formats that people ask for although only the tool itself can write them.
struct ImpossibleFormat {
  const char* name;
  const char* why;
  const char* instead;
};
constexpr std::array<ImpossibleFormat, 1> kImpossible = {
    {{"wandb",
      "the files of an offline run of Weights & Biases are records of its own program, whose format is documented "
      "nowhere and changes with its versions",
      "export as tensorboard, then `wandb sync FOLDER` uploads that; or as csv, which its tables read"}}};

}  // namespace

std::vector<ExportFormat> export_formats() {
  constexpr bool kOfBest = false, kOfTrials = true;
  return {
      {"deepspeed", "ds_config.json for DeepSpeed", kOfBest, export_deepspeed},
      {"accelerate", "configurations for accelerate launch: FSDP 1 and 2, or DeepSpeed", kOfBest, export_accelerate},
      {"torchtitan", "a job file (TOML) of what was tuned", kOfBest, export_torchtitan},
      {"megatron", "the flags of Megatron-LM, for a shell script", kOfBest, export_megatron},
      {"trace", "the predicted step, for Perfetto or chrome://tracing", kOfBest, export_trace},
      {"tensorboard", "the trials as event files with hyperparameters", kOfTrials, export_tensorboard},
      {"mlflow", "the trials as runs of an MLflow file store", kOfTrials, export_mlflow},
      {"markdown", "a summary for a pull request", kOfBest, export_markdown},
      {"csv", "the trials as a table", kOfTrials, export_csv},
      {"json", "the best and the trials as one document", kOfTrials, export_json}};
}

ExportFormat export_format_from(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const ExportFormat& format : export_formats()) {
    if (name == format.name) return format;
    names.emplace_back(format.name);
  }
  for (const ImpossibleFormat& format : kImpossible) {
    if (name == format.name)
      throw UserError(fmt::format("{}: a run cannot be written as {}: {}", where, name, format.why), format.instead);
  }
  throw UserError(fmt::format("{}: '{}' is not a format that a run can be exported to", where, name),
                  "there are " + join(names, ", "));
}

bool is_recommended(const report::RunView& run) { return run.answer.best && run.answer.best->posterior_mean != 0.0; }

std::int64_t data_ranks_of(const space::Configuration& configuration, std::int64_t ranks) {
  return space::data_parallel_ranks(ranks, configuration).value_or(1);
}

bool has_no_effect(const space::Configuration& configuration, const std::string& parameter) {
  const space::WellKnownParameter* known = space::find_well_known(parameter);
  if (known == nullptr || *known->no_effect_if == '\0') return false;
  const auto value_of_name = [&](std::string_view name) -> const space::Value* {  // a missing setting has its default
    if (const space::Value* said = configuration.find(std::string(name))) return said;
    const space::WellKnownParameter* other = space::find_well_known(name);
    return other == nullptr ? nullptr : &other->default_value;
  };
  return space::Expression::parse(known->no_effect_if).holds(value_of_name).value_or(false);
}

bool asks_for_nothing(const space::Configuration& configuration, const std::string& parameter) {
  const space::Value& value = *configuration.find(parameter);
  const space::WellKnownParameter* known = space::find_well_known(parameter);
  if (known == nullptr) return false;
  if (has_no_effect(configuration, parameter)) return true;
  if (is_one_of(parameter, std::array{space::kOverlap, space::kMicroBatch, space::kAccumulation})) return false;
  const std::array<space::Value, 3> nothing = {false, std::int64_t{1}, std::string("none")};
  return space::same_value(value, known->default_value) &&
         std::any_of(nothing.begin(), nothing.end(), [&](const auto& one) { return space::same_value(value, one); });
}

Export export_csv(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  return {{{"trials.csv", trials_csv(run).value(), "a row a trial; the runner replay reads it too"}}};
}

}  // namespace krigtune::result
