#include "jobs/recipe/training_facts.h"

#include <fmt/format.h>

#include "core/error.h"
#include "workload/training.h"

namespace krigtune::jobs {
namespace {

constexpr const char* kOptimizer = "optimizer";

std::string what_of(const std::string& name) {
  if (name == "lora/rank") return "rank of the adapters";
  if (name == "lora/targets") return "layers with adapters:";
  if (name == "state_types/masters") return "copies of the weights in";
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

bool is_of_adapters(const std::string& name) { return name == "base" || name.starts_with("lora/"); }

void read(const RecipeValue& value, const RecipeJob& job, TrainingFacts& into) {
  const std::optional<SaidValue> found = read_said(value, job);
  if (!found) return;
  if (value.name == kOptimizer) {
    into.optimizer = space::to_string(found->value);
  } else {
    into.training[Json::json_pointer("/" + value.name)] = space::to_json(found->value);
  }
  if (found->assumed.empty()) return;
  into.assumed.push_back(fmt::format("{} {}: {}", what_of(value.name), space::to_string(found->value), found->assumed));
}

// Adds what the recipe knows about adapters, or about all else, unless it is not to be read.
void add(const Recipe& recipe, const RecipeJob& job, bool of_adapters, TrainingFacts& said) {
  TrainingFacts read_here;
  for (const RecipeValue& value : recipe.training) {
    if (is_of_adapters(value.name) == of_adapters) read(value, job, read_here);
  }
  const Json& training = read_here.training;
  const bool has_adapters = training.contains("lora") && training["lora"].contains("rank");
  if ((of_adapters && !has_adapters) || !is_readable(training)) return;
  said.training.update(training);
  if (!of_adapters) said.optimizer = read_here.optimizer;
  for (std::string& assumed : read_here.assumed) said.assumed.push_back(std::move(assumed));
}

}  // namespace

void TrainingFacts::put_into(Json& workload) const {
  if (!optimizer.empty()) workload[kOptimizer] = optimizer;
  if (!training.empty()) workload["training"] = training;
}

TrainingFacts training_facts(const Recipe& recipe, const RecipeJob& job) {
  TrainingFacts said;
  add(recipe, job, true, said);
  add(recipe, job, false, said);
  return said;
}

}  // namespace krigtune::jobs
