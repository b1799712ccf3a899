// The model of a command: its sizes, what is assumed of them, and what predictions do not know.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "jobs/recipe/caveats.h"
#include "jobs/recipe/published_model.h"
#include "jobs/recipe/recipe_job.h"
#include "space/well_known.h"
#include "workload/hub_models.h"
#include "workload/model.h"
#include "workload/workload.h"

namespace krigtune::jobs {
namespace {

// The vocabulary of a model of today whose tokenizer is not known: Llama 3 has 128256, Qwen 3 151936.
constexpr std::int64_t kUsualVocabulary = 128256;

// "nemotron_2_256k.model" has a vocabulary of 256 thousand. Empty if the name says none.
std::optional<std::int64_t> vocabulary_in(const std::string& tokenizer) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const std::string name = lower_case(std::filesystem::path(tokenizer).filename().string());
  for (std::size_t k = name.find('k'); k != std::string::npos; k = name.find('k', k + 1)) {
    std::size_t begin = k;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1])) != 0) --begin;
    const bool is_alone = (k + 1 == name.size() || !is_word(name[k + 1])) && (begin == 0 || !is_word(name[begin - 1]));
    const std::size_t digits = k - begin;
    if (is_alone && (digits == 2 || digits == 3)) return 1000 * std::stoll(name.substr(begin, digits));
  }
  return std::nullopt;
}

// The model that the command states.
class ModelFacts {
 public:
  ModelFacts(const Recipe& recipe, const RecipeJob& job, const OwnValues& own)
      : recipe_(recipe), job_(job), own_(own), framework_(framework_of(recipe, job)) {}

  Json workload() {
    if (framework_.empty()) return none("krigtune does not predict jobs of this kind");
    training_ = training_facts(recipe_, job_);
    caveats_ = caveats_of(recipe_, job_, training_);
    caveats_.assumed.insert(caveats_.assumed.begin(), own_.assumed.begin(), own_.assumed.end());
    for (const RecipeValue& size : recipe_.model) {
      const std::optional<SaidValue> said = read_said(size, job_);
      if (said && !take(size.name, in_full(*said))) return {};
    }
    if (!has("preset") && !has("hf_config") && !has("layers"))
      return none("the command does not say the model's sizes");
    if (!has("preset") && !has("hf_config")) complete_sizes();
    take_vocabulary_of_tokenizer();
    limit_assumed_length();
    return checked();
  }

  const std::string& why() const { return why_; }

 private:
  bool has(const char* key) const { return model_.contains(key); }

  Json none(const std::string& why) {
    why_ = why;
    return {};
  }

  // A number that the job multiplies by another size, as Composer's expansion_ratio by d_model.
  SaidValue in_full(SaidValue said) const {
    if (said.times_of.empty() || !has(said.times_of.c_str()) || !space::is_number(said.value)) return said;
    said.value = space::number_value(space::as_number(said.value) * model_[said.times_of].get<double>());
    return said;
  }

  // Returns false if the model cannot be known.
  bool take(const std::string& name, const SaidValue& said) {
    if (name == "precision") {
      precision_ = space::to_json(said.value);
    } else if (name == "tokenizer") {
      tokenizer_ = space::to_string(said.value);
      return true;
    } else if (name == "hf_config") {
      return take_published(space::to_string(said.value));
    } else {
      model_[Json::json_pointer("/" + name)] = space::to_json(said.value);
    }
    if (said.assumed.empty()) return true;
    assumed_length_ = assumed_length_ || name == "seq_len";
    assume(name, said.value, said.assumed);
    return true;
  }

  void assume(const std::string& name, const space::Value& value, const std::string& why) {
    caveats_.assumed.push_back(fmt::format("{} {}: {}", what_of(name), space::to_string(value), why));
  }

  static std::string what_of(const std::string& name) {
    if (name == "vocab") return "vocabulary of";
    if (name == "seq_len") return "tokens of a sequence:";
    if (name == "ffn_hidden") return "width of the MLP:";
    if (name == "heads") return "attention heads:";
    return name;
  }

  bool take_published(const std::string& name) {
    const Json published = published_model(name, source());
    if (published.is_null()) {
      why_ = fmt::format(
          "there is no config.json of {} on this machine, and it is not a model that krigtune knows by name", name);
      return false;
    }
    model_.update(published);
    return true;
  }

  ModelSource source() const { return {job_.inputs.directory, job_.inputs.variable}; }

  // Adds what a command with its own sizes leaves open. A width without heads would have to be guessed from both.
  void complete_sizes() {
    if (!has("hidden")) return;
    const auto hidden = model_["hidden"].get<std::int64_t>();
    constexpr std::int64_t kHeadWidth = 128;
    if (!has("heads") && hidden % kHeadWidth == 0)
      put_assumed("heads", hidden / kHeadWidth, "heads of 128, as is usual");
    if (!has("seq_len")) {
      assumed_length_ = true;
      put_assumed("seq_len", kUsualLength, "the command does not say it");
    }
  }

  void put_assumed(const char* name, std::int64_t value, const std::string& why) {
    model_[name] = value;
    assume(name, space::Value(value), why);
  }

  void take_vocabulary_of_tokenizer() {
    if (has("vocab") || has("preset") || has("hf_config")) return;
    if (const std::optional<std::int64_t> vocabulary = vocabulary_of(tokenizer_)) {
      put_assumed("vocab", *vocabulary, fmt::format("that of the tokenizer {}", tokenizer_));
    } else if (const std::optional<std::int64_t> named = vocabulary_in(tokenizer_)) {
      put_assumed("vocab", *named, fmt::format("the tokenizer is named {}", tokenizer_));
    } else {
      put_assumed("vocab", kUsualVocabulary, "the command does not say it, and its tokenizer is not known");
    }
  }

  std::optional<std::int64_t> vocabulary_of(const std::string& tokenizer) const {
    if (tokenizer.empty()) return std::nullopt;
    if (const auto known = workload::hub_model(tokenizer)) return known->sizes.vocab;
    const std::filesystem::path file = hf_config_of(tokenizer, source());
    if (file.empty()) return std::nullopt;
    try {
      const Json config = load_json(file);
      if (config.contains("vocab_size") && config["vocab_size"].is_number_integer())
        return config["vocab_size"].get<std::int64_t>();
    } catch (const UserError&) {  // it is only a guess
    }
    return std::nullopt;
  }

  // Nothing is excluded because of a length that nobody stated.
  void limit_assumed_length() {
    if (!assumed_length_) return;
    caveats_.not_modelled.emplace_back(kRealLength);
    model_["seq_len"] = at_most_the_models(model_["seq_len"].get<std::int64_t>(), model_);
  }

  Json checked() {
    Json workload = {{"model", model_}, {"framework", framework_}};
    if (!precision_.is_null()) workload["precision"] = precision_;
    training_.put_into(workload);
    if (!caveats_.assumed.empty()) workload["assumed"] = caveats_.assumed;
    if (!caveats_.not_modelled.empty()) workload["not_modelled"] = caveats_.not_modelled;
    if (!caveats_.also_not_modelled.empty()) workload["also_not_modelled"] = caveats_.also_not_modelled;
    try {
      workload::read_workload(workload, "the command", "");
    } catch (const UserError& error) {
      return none(error.what());
    }
    return workload;
  }

  const Recipe& recipe_;
  const RecipeJob& job_;
  const OwnValues& own_;
  const std::string framework_;
  Json model_ = Json::object();
  Json precision_;
  TrainingFacts training_;
  std::string tokenizer_;
  bool assumed_length_ = false;
  workload::Caveats caveats_;
  std::string why_;
};

}  // namespace

Json model_facts(const Recipe& recipe, const RecipeJob& job, std::string* why) {
  const OwnValues own = own_values(recipe, job);
  ModelFacts facts(recipe, job, own);
  Json workload = facts.workload();
  if (why != nullptr) *why = facts.why();
  if (workload.is_null()) return workload;
  if (own.train_batch_size) workload["train_batch_size"] = *own.train_batch_size;
  return workload;
}

}  // namespace krigtune::jobs
