// Writes the parts of a session that concern a job's parameters.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "jobs/recipe/places.h"
#include "jobs/recipe/rewriting.h"
#include "space/expression.h"
#include "space/parameter.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

// Returns the values that the recipe tries or, failing that, the usual ones.
Json range_of(const RecipeValue& value, const Recipe& recipe) {
  if (!value.vary.is_null()) return value.vary;
  const space::WellKnownParameter* known = space::find_well_known(value.name);
  if (known != nullptr) return parse_json(known->default_range, value.name);
  throw UserError(fmt::format("the recipe {} names no values to try for {}", recipe.name, value.name),
                  fmt::format("say them: --vary '{}=1,2,4'", value.name));
}

// Returns whether the place can express the value by a text or by words.
bool can_say(const Place& place, const space::Value& value) {
  if (place.words.empty()) return text_of(value, place).has_value();
  return std::any_of(place.words.begin(), place.words.end(),
                     [&](const auto& entry) { return space::same_value(entry.first, value); });
}

// Removes from a list the values that the place cannot express, and adds the command's own value. Other ranges stay.
Json with_own(Json range, const Place& place, const space::Value* own) {
  Json* list = range.is_array() ? &range : range.is_object() && range.contains("values") ? &range["values"] : nullptr;
  if (list == nullptr) return range;
  Json values = Json::array();
  bool has_own = own == nullptr;
  for (const Json& one : *list) {
    const space::Value value = space::value_from_json(one, "the recipe");
    if (!can_say(place, value)) continue;
    has_own = has_own || space::same_value(value, *own);
    if (!has_own && space::is_number(*own) && space::is_number(value) &&
        space::as_number(*own) < space::as_number(value)) {
      values.push_back(space::to_json(*own));
      has_own = true;
    }
    values.push_back(one);
  }
  if (!has_own) values.push_back(space::to_json(*own));
  *list = values;
  return range;
}

// Replaces "{name}" by the command's own value. Empty if the command does not state it.
std::optional<std::string> filled_in(std::string constraint, const space::Configuration& own) {
  for (std::size_t open = constraint.find('{'); open != std::string::npos; open = constraint.find('{')) {
    const std::size_t close = constraint.find('}', open);
    if (close == std::string::npos) return std::nullopt;
    const space::Value* value = own.find(constraint.substr(open + 1, close - open - 1));
    if (value == nullptr) return std::nullopt;
    const bool is_text = std::holds_alternative<std::string>(*value);
    const std::string text = space::to_string(*value);
    constraint.replace(open, close - open + 1, is_text ? fmt::format("'{}'", text) : text);
  }
  return constraint;
}

// Facts that every session has; all others depend on the model.
bool is_job_fact(const std::string& name) {
  constexpr std::array<std::string_view, 4> kJobFacts = {"dp", "ranks", "nodes", "gpus_per_node"};
  return is_one_of(name, kJobFacts);
}

bool is_derived(const Recipe& recipe, const std::string& name, const OwnValues& own) {
  return name == space::kAccumulation && own.train_batch_size &&
         (!recipe.train_batch_size.places.empty() || own.configuration.has(space::kMicroBatch));
}

}  // namespace

Texts varied_by_default(const Recipe& recipe, const RecipeJob& job) {
  const OwnValues own = own_values(recipe, job);
  Texts names;
  for (const RecipeValue& value : recipe.parameters) {
    const bool can_vary = !value.vary.is_null() && written_place(value, job) != nullptr;
    if (can_vary && own.configuration.has(value.name)) names.push_back(value.name);
  }
  return names;
}

Json space_block(const Recipe& recipe, const RecipeJob& job, const Texts& varied) {
  const OwnValues own = own_values(recipe, job);
  Json block = Json::object();
  for (const RecipeValue& value : recipe.parameters) {
    if (!is_one_of(value.name, varied)) continue;
    const Place* place = written_place(value, job);
    if (place == nullptr) {
      throw UserError(fmt::format("{} cannot be changed in this command", value.name), "leave it out of what varies");
    }
    block[value.name] = with_own(range_of(value, recipe), *place, own.configuration.find(value.name));
  }
  for (const std::string& name : varied) {
    if (recipe.find(name) != nullptr) continue;
    throw UserError(
        fmt::format("the recipe {} does not know the parameter {}", recipe.name, name),
        fmt::format("krigtune recipes {} lists those that it knows; --vary names a flag for others", recipe.name));
  }
  return block;
}

Json fixed_block(const Recipe& recipe, const RecipeJob& job, const Texts& varied) {
  const OwnValues own = own_values(recipe, job);
  Json block = Json::object();
  for (const auto& [name, value] : own.configuration) {
    if (is_one_of(name, varied) || is_derived(recipe, name, own)) continue;
    block[name] = space::to_json(value);
  }
  return block;
}

Json constraints_block(const Recipe& recipe, const RecipeJob& job, const Texts& varied) {
  const OwnValues own = own_values(recipe, job);
  const bool has_model = !model_facts(recipe, job).is_null();
  const auto is_known = [&](const std::string& name) {
    const auto& facts = space::known_facts();
    return is_one_of(name, varied) || own.configuration.has(name) ||
           (is_job_fact(name) || (has_model && std::any_of(facts.begin(), facts.end(),
                                                           [&](const auto& fact) { return name == fact.name; })));
  };
  Json block = Json::array();
  for (const std::string& text : recipe.constraints) {
    const std::optional<std::string> constraint = filled_in(text, own.configuration);
    if (!constraint) continue;
    const Texts names = space::Expression::parse(*constraint).names();
    const bool matters =
        std::any_of(names.begin(), names.end(), [&](const auto& name) { return is_one_of(name, varied); });
    if (matters && std::all_of(names.begin(), names.end(), is_known)) block.push_back(*constraint);
  }
  return block;
}

}  // namespace krigtune::jobs
