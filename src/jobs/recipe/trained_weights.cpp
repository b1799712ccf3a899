#include "jobs/recipe/trained_weights.h"

#include <fmt/format.h>

#include "core/error.h"
#include "workload/training.h"

namespace krigtune::jobs {
namespace {

std::string what_of(const std::string& name) {
  if (name == "lora/rank") return "rank of the adapters";
  if (name == "lora/targets") return "layers with adapters:";
  return name;
}

bool is_readable(const Json& training) {
  try {
    workload::training_block().value_of(&training, "the command", "/training");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

TrainedWeights trained_weights(const Recipe& recipe, const RecipeJob& job) {
  TrainedWeights said;
  Json training = Json::object();
  for (const RecipeValue& value : recipe.training) {
    const std::optional<SaidValue> found = read_said(value, job);
    if (!found) continue;
    training[Json::json_pointer("/" + value.name)] = space::to_json(found->value);
    if (!found->assumed.empty())
      said.assumed.push_back(
          fmt::format("{} {}: {}", what_of(value.name), space::to_string(found->value), found->assumed));
  }
  const bool has_adapters = training.contains("lora") && training["lora"].contains("rank");
  if (!has_adapters || !is_readable(training)) return {};
  said.training = std::move(training);
  return said;
}

}  // namespace krigtune::jobs
