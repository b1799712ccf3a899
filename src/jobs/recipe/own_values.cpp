// Reads the present values of a command: parameters and the batch.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "jobs/recipe/places.h"
#include "jobs/recipe/recipe_job.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

using Count = std::optional<std::int64_t>;

Count count_of(const space::Configuration& configuration, const char* name) {
  const space::Value* value = configuration.find(name);
  const Count count = value == nullptr ? std::nullopt : space::integer_of(*value);
  return count && *count >= 1 ? count : std::nullopt;
}

// A parameter that krigtune knows by name must have a value of its kind.
void check_kind(const std::string& name, const space::Value& value) {
  const space::WellKnownParameter* known = space::find_well_known(name);
  if (known == nullptr || known->default_value.index() == value.index()) return;
  const bool is_whole = std::holds_alternative<std::int64_t>(known->default_value);
  throw UserError(fmt::format("the command's {} is '{}'", name, space::to_string(value)),
                  is_whole ? "write a whole number there" : "write what the recipe knows");
}

// "${oc.env:BATCH}": a value of OmegaConf that only the job itself can find.
bool is_reference(const space::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && text->rfind("${", 0) == 0;
}

// The user's version of the framework may have other values in the files that come with it.
void assume_built_in_files(const Recipe& recipe, const RecipeJob& job, OwnValues& own) {
  for (const auto& [name, path] : job.unread) {
    own.remarks.push_back(
        fmt::format("{} is neither here nor one of the files of {}: what it says is not known", path, recipe.versions));
  }
  for (const JobFile& file : job.files) {
    if (!file.is_built_in) continue;
    std::vector<std::string> said;
    for (const auto& [key, value] : file.values) said.push_back(fmt::format("{} {}", key, space::to_string(value)));
    own.assumed.push_back(fmt::format("the file {} of {}: {}", file.path, recipe.versions, join(said, ", ")));
  }
}

void read_parameters_of(const Recipe& recipe, const RecipeJob& job, OwnValues& own) {
  for (const auto& [name, value] : recipe.fixed) own.configuration.set(name, value);
  for (const RecipeValue& parameter : recipe.parameters) {
    const Place* place = place_of(parameter, job);
    if (place == nullptr) continue;
    if (read_place(*place, job).is_unknown) {
      own.unknown.push_back(parameter.name);
      own.remarks.push_back(fmt::format("{} stays as the command says it: {}", parameter.name,
                                        place->is_shared ? "it is no multiple of the ranks"
                                        : place->is_groups
                                            ? "it does not divide the data-parallel ranks, or these are not known"
                                        : place->is_of_node ? "the ranks of a node are not known"
                                                            : "the recipe does not know these words"));
      continue;
    }
    const std::optional<SaidValue> said = read_said(parameter, job);
    if (!said) continue;
    if (is_reference(said->value)) {
      own.unknown.push_back(parameter.name);
      own.remarks.push_back(
          fmt::format("{} stays as the command says it: {}", parameter.name, space::to_string(said->value)));
      continue;
    }
    check_kind(parameter.name, said->value);
    own.configuration.set(parameter.name, said->value);
    if (said->assumed.empty()) continue;
    own.assumed.push_back(fmt::format("{} {}: {}", parameter.name, space::to_string(said->value), said->assumed));
  }
}

// The batch identity, over the ranks that do not share a sequence.
class Batch {
 public:
  Batch(const Recipe& recipe, const RecipeJob& job, OwnValues& own) : recipe_(recipe), job_(job), own_(own) {}

  void read() {
    micro_ = count_of(own_.configuration, space::kMicroBatch);
    dp_ = data_ranks();
    if (recipe_.train_batch_size.places.empty()) {
      const Count steps = count_of(own_.configuration, space::kAccumulation);
      if (micro_ && dp_ && steps) own_.train_batch_size = space::sequences_of_step(*micro_, *dp_, *steps);
      return;
    }
    const auto said = read_value(recipe_.train_batch_size, job_);
    if (said && is_reference(*said)) {
      own_.remarks.push_back(fmt::format("the sequences of a step are not known: {}", space::to_string(*said)));
      return;
    }
    if (said) own_.train_batch_size = space::integer_of(*said);
    if (own_.train_batch_size && *own_.train_batch_size < 1) own_.train_batch_size.reset();  // torchtitan uses -1
    const Count steps = count_of(own_.configuration, space::kAccumulation);
    if (!own_.train_batch_size && micro_ && dp_)
      own_.train_batch_size = space::sequences_of_step(*micro_, *dp_, steps.value_or(1));
    derive_steps();
  }

 private:
  Count data_ranks() const {
    return job_.ranks ? space::data_parallel_ranks(*job_.ranks, own_.configuration) : std::nullopt;
  }

  void derive_steps() {
    if (own_.configuration.has(space::kAccumulation) || !own_.train_batch_size || !micro_ || !dp_) return;
    if (const Count steps = space::accumulation_steps(*own_.train_batch_size, *micro_, *dp_)) {
      own_.configuration.set(space::kAccumulation, *steps);
    } else {
      own_.remarks.push_back(fmt::format("the batch of {} is not a multiple of micro-batch {} x {} data-parallel ranks",
                                         *own_.train_batch_size, *micro_, *dp_));
    }
  }

  const Recipe& recipe_;
  const RecipeJob& job_;
  OwnValues& own_;
  Count micro_;
  Count dp_;
};

}  // namespace

std::optional<SaidValue> read_said(const RecipeValue& value, const RecipeJob& job) {
  for (const Place& place : value.places) {
    if (!applies(place.where, job)) continue;
    const Reading reading = read_place(place, job);
    if (reading.value) return SaidValue{*reading.value, place.assumed, place.times_of};
    if (place.is_read_only) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<space::Value> read_value(const RecipeValue& value, const RecipeJob& job) {
  std::optional<SaidValue> said = read_said(value, job);
  return said ? std::optional(std::move(said->value)) : std::nullopt;
}

OwnValues own_values(const Recipe& recipe, const RecipeJob& job) {
  OwnValues own;
  assume_built_in_files(recipe, job, own);
  read_parameters_of(recipe, job, own);
  Batch(recipe, job, own).read();
  return own;
}

}  // namespace krigtune::jobs
