// Reads the present values of a command: parameters, the batch, the model.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "jobs/recipe/places.h"
#include "jobs/recipe/recipe_job.h"
#include "space/well_known.h"
#include "workload/model.h"

namespace krigtune::jobs {
namespace {

using Count = std::optional<std::int64_t>;

constexpr const char* kContextParallel = "context_parallel";

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

void read_parameters_of(const Recipe& recipe, const RecipeJob& job, OwnValues& own) {
  for (const auto& [name, value] : recipe.fixed) own.configuration.set(name, value);
  for (const RecipeValue& parameter : recipe.parameters) {
    const Place* place = place_of(parameter, job);
    if (place == nullptr) continue;
    if (read_place(*place, job).is_unknown) {
      own.unknown.push_back(parameter.name);
      own.remarks.push_back(
          fmt::format("{} stays as the command says it: the recipe does not know these words", parameter.name));
      continue;
    }
    const std::optional<space::Value> value = read_value(parameter, job);
    if (!value) continue;
    check_kind(parameter.name, *value);
    own.configuration.set(parameter.name, *value);
  }
}

// The batch identity, over the ranks that do not share a sequence.
class Batch {
 public:
  Batch(const Recipe& recipe, const RecipeJob& job, OwnValues& own) : recipe_(recipe), job_(job), own_(own) {}

  void read() {
    own_.context_parallel = count_of(own_.configuration, kContextParallel).value_or(1);
    micro_ = count_of(own_.configuration, space::kMicroBatch);
    dp_ = data_ranks();
    if (recipe_.train_batch_size.places.empty()) {
      const Count steps = count_of(own_.configuration, space::kAccumulation);
      if (micro_ && dp_ && steps) own_.train_batch_size = space::sequences_of_step(*micro_, *dp_, *steps);
      return;
    }
    if (const auto said = read_value(recipe_.train_batch_size, job_)) own_.train_batch_size = space::integer_of(*said);
    if (own_.train_batch_size && *own_.train_batch_size < 1) own_.train_batch_size.reset();  // torchtitan uses -1
    if (!own_.train_batch_size && micro_ && dp_) own_.train_batch_size = *micro_ * *dp_;
    derive_steps();
  }

 private:
  Count data_ranks() const {
    if (!job_.ranks || *job_.ranks % own_.context_parallel != 0) return std::nullopt;
    return space::data_parallel_ranks(*job_.ranks / own_.context_parallel,
                                      count_of(own_.configuration, space::kTensorParallel).value_or(1),
                                      count_of(own_.configuration, space::kPipelineParallel).value_or(1));
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

// Returns the directory of a hub model that has been downloaded: models--ORG--NAME/snapshots/HASH.
std::filesystem::path in_hub_cache(const std::string& name, const RecipeJob& job) {
  const auto variable = [&](const char* key) { return job.inputs.variable ? job.inputs.variable(key) : std::string(); };
  std::filesystem::path cache = variable("HF_HOME");
  if (cache.empty()) cache = std::filesystem::path(variable("HOME")) / ".cache" / "huggingface";
  std::string folder = "models--" + name;
  for (std::size_t at = folder.find('/'); at != std::string::npos; at = folder.find('/')) folder.replace(at, 1, "--");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(cache / "hub" / folder / "snapshots", error)) {
    if (std::filesystem::is_regular_file(entry.path() / "config.json", error)) return entry.path();
  }
  return {};
}

// Returns the config.json of a model named by its directory, its file, or its name on the hub. Empty if it is not on
// this machine.
std::filesystem::path hf_config_of(const std::string& name, const RecipeJob& job) {
  std::error_code error;
  std::filesystem::path path = (job.inputs.directory / name).lexically_normal();
  if (!std::filesystem::exists(path, error)) path = in_hub_cache(name, job);
  if (std::filesystem::is_directory(path, error)) path /= "config.json";
  return std::filesystem::is_regular_file(path, error) ? path : std::filesystem::path();
}

// The model that the command states.
class ModelFacts {
 public:
  ModelFacts(const Recipe& recipe, const RecipeJob& job) : recipe_(recipe), job_(job) {}

  Json workload() {
    if (recipe_.framework.empty()) return none("krigtune has no models of such jobs");
    Json precision;
    for (const RecipeValue& size : recipe_.model) {
      const std::optional<space::Value> value = read_value(size, job_);
      if (!value) continue;
      if (size.name == "precision") {
        precision = space::to_json(*value);
      } else if (size.name == "hf_config") {
        if (!take_hf_config(space::to_string(*value))) return {};
      } else {
        model_[size.name] = space::to_json(*value);
      }
    }
    const auto is_said = [&](const char* key) { return model_.contains(key); };
    if (!is_said("preset") && !is_said("hf_config") && !is_said("layers"))
      return none("the command does not say the model's sizes");
    return checked(precision);
  }

  const std::string& why() const { return why_; }

 private:
  Json none(const std::string& why) {
    why_ = why;
    return {};
  }

  bool take_hf_config(const std::string& name) {
    const std::filesystem::path file = hf_config_of(name, job_);
    if (file.empty())
      why_ = fmt::format("there is no config.json of {} on this machine", name);
    else
      model_["hf_config"] = file.string();
    return !file.empty();
  }

  Json checked(const Json& precision) {
    try {
      workload::read_model(model_, "the command", "");
    } catch (const UserError& error) {
      return none(error.what());
    }
    Json workload = {{"model", model_}, {"framework", recipe_.framework}};
    if (!precision.is_null()) workload["precision"] = precision;
    return workload;
  }

  const Recipe& recipe_;
  const RecipeJob& job_;
  Json model_ = Json::object();
  std::string why_;
};

}  // namespace

std::optional<space::Value> read_value(const RecipeValue& value, const RecipeJob& job) {
  for (const Place& place : value.places) {
    if (!applies(place.where, job)) continue;
    if (const Reading reading = read_place(place, job); reading.value || place.is_read_only) return reading.value;
  }
  return std::nullopt;
}

OwnValues own_values(const Recipe& recipe, const RecipeJob& job) {
  OwnValues own;
  read_parameters_of(recipe, job, own);
  Batch(recipe, job, own).read();
  if (own.context_parallel > 1) {
    own.remarks.push_back(
        fmt::format("{} ranks share a sequence (context parallelism): they stay as they are", own.context_parallel));
  }
  return own;
}

Json model_facts(const Recipe& recipe, const RecipeJob& job, std::string* why) {
  const OwnValues own = own_values(recipe, job);
  if (own.context_parallel > 1) {
    // A session with a workload would count the ranks that share a sequence as replicas of the model.
    if (why != nullptr) *why = "context parallelism is not modelled";
    return {};
  }
  ModelFacts facts(recipe, job);
  Json workload = facts.workload();
  if (why != nullptr) *why = facts.why();
  if (workload.is_null()) return workload;
  if (own.train_batch_size) workload["train_batch_size"] = *own.train_batch_size;
  return workload;
}

}  // namespace krigtune::jobs
