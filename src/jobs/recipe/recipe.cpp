// Reads recipes. A table has every key (core/block.h), and the schema and the documentation come from the same table.
#include "jobs/recipe/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/pattern.h"
#include "core/text.h"
#include "jobs/recipe/place_blocks.h"
#include "jobs/recipe/shipped_recipes.h"
#include "space/well_known.h"
#include "workload/workload.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

// What a command may state of the workload: keys of its model, and the tokenizer, from which a vocabulary may follow.
constexpr std::array kModelKeys = std::to_array<std::string_view>({"preset",
                                                                   "hf_config",
                                                                   "layers",
                                                                   "hidden",
                                                                   "heads",
                                                                   "kv_heads",
                                                                   "ffn_hidden",
                                                                   "vocab",
                                                                   "seq_len",
                                                                   "gated_mlp",
                                                                   "tied_embeddings",
                                                                   "positions",
                                                                   "norm",
                                                                   "qk_norm",
                                                                   "attention",
                                                                   "dropout",
                                                                   "precision",
                                                                   "tokenizer",
                                                                   "head_dim",
                                                                   "experts/count",
                                                                   "experts/per_token",
                                                                   "experts/ffn_hidden",
                                                                   "experts/shared_ffn_hidden",
                                                                   "latent_attention/q_rank",
                                                                   "latent_attention/kv_rank",
                                                                   "latent_attention/nope_dim",
                                                                   "latent_attention/rope_dim",
                                                                   "latent_attention/value_dim",
                                                                   "experts/dense_layers",
                                                                   "mtp/layers",
                                                                   "mtp/repeated"});

constexpr const char* kPlacesMeaning = "several ways: the first whose \"where\" applies to the command counts";
constexpr const char* kVaryMeaning =
    "values worth trying, as in a session's space; without it the parameter is not varied";

RecipeValue read_recipe_value(const JsonObject& owner, const Json& json, const std::string& name) {
  JsonObject object(json, owner.source(), owner.pointer(name));
  RecipeValue value;
  value.name = name;
  if (const Json* vary = object.find("vary")) value.vary = *vary;
  Json place = json;
  place.erase("vary");
  if (!json.contains("places")) {
    value.places.push_back(place_block().value_of(&place, object.source(), object.pointer()));
    return value;
  }
  const Json& places = object.require("places");
  object.finish();
  if (!places.is_array() || places.empty())
    object.fail("places", "must be a list of places", "write [{\"flag\": ...}]");
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::string pointer = fmt::format("{}/{}", object.pointer("places"), i);
    value.places.push_back(place_block().value_of(&places[i], object.source(), pointer));
  }
  return value;
}

Json value_schema() {
  Json one = place_block().schema();
  one["properties"]["vary"] = schema::with_meaning(kVaryMeaning, Json::object());
  return schema::either({one, schema::object("A value with several places",
                                             {{"places", schema::list(place_block().schema(), kPlacesMeaning), true},
                                              {"vary", schema::with_meaning(kVaryMeaning, Json::object())}})});
}

std::vector<RecipeValue> read_recipe_values(JsonObject& object, const std::string& key) {
  std::vector<RecipeValue> values;
  if (object.find(key) == nullptr) return values;
  const JsonObject within = object.object(key);
  for (const auto& [name, json] : within.value().items()) values.push_back(read_recipe_value(within, json, name));
  return values;
}

Block<RecipeGap> gap_block() {
  Block<RecipeGap> block("What a command may say, what changes time or memory, and what is not modelled");
  block.block("where", &RecipeGap::where, pattern_block());
  block.key("what", &RecipeGap::what, text(), "its name: \"adapters (LoRA)\"").required();
  block
      .key("effect", &RecipeGap::effect, text(),
           "on what is predicted: \"much less memory\"; where it does not name memory, what does not fit is excluded "
           "as usual")
      .required();
  block.key("freezes", &RecipeGap::freezes, boolean(), "most weights are not trained");
  block.key("unless_read", &RecipeGap::unless_read, text_or_texts(),
            "keys of \"training\", as \"lora\" or \"optimizer\": it is no gap if the command says one of them");
  block.check([](JsonObject& object, const RecipeGap& gap) {
    if (gap.where.is_empty()) object.fail("where", "is missing", "say which commands have it");
  });
  return block;
}

Block<RecipeFile> file_block() {
  Block<RecipeFile> block("A file that the command names");
  block.key("name", &RecipeFile::name, text(), "how places call it");
  block.key("flags", &RecipeFile::flags, words_said(),
            "the word after one of these names it; none: the script's first word with such a suffix");
  block.key("suffixes", &RecipeFile::suffixes, words_said(), "what its name ends in (default: anything)");
  block.key("of_launcher", &RecipeFile::of_launcher, boolean(), "the flags are the launcher's");
  block.key("first", &RecipeFile::is_first, boolean(), "without flags: only the script's very first word can be it");
  block.key("each", &RecipeFile::is_each, boolean(),
            "all words that are no flag and no flag's value are such files, with or without a suffix");
  block.key("directory_flags", &RecipeFile::directory_flags, words_said(),
            "with each: the word after one of these is their directory");
  block.key("hyphens", &RecipeFile::takes_hyphens, boolean(), "hyphens in its keys stand for underscores");
  block.custom("built_in", schema::map(schema::map(schema::scalar())),
               "files that come with the framework, by name: used where there is no such file",
               [](JsonObject& object, RecipeFile& file) {
                 if (object.find("built_in") == nullptr) return;
                 const JsonObject within = object.object("built_in");
                 for (const auto& [name, values] : within.value().items()) {
                   if (!values.is_object()) within.fail(name, "must be an object of values", "write {\"key\": ...}");
                   ConfigValues read;
                   for (const auto& [key, value] : values.items())
                     read[key] = space::value_from_json(value, object.source() + ": " + within.pointer(name));
                   file.built_in.emplace_back(name, std::move(read));
                 }
               });
  block.check([](JsonObject& object, const RecipeFile& file) {
    if (file.is_each && file.suffixes.empty()) object.fail("suffixes", "is missing", "each file needs one");
  });
  return block;
}

Block<RecipeFramework> framework_block() {
  Block<RecipeFramework> block("Commands that another framework trains");
  block.block("where", &RecipeFramework::where, pattern_block());
  block.key("framework", &RecipeFramework::framework, text(), "as in workload/framework").required();
  return block;
}

Block<RecipeWords> words_block() {
  Block<RecipeWords> block("Words for trials");
  block.block("where", &RecipeWords::where, pattern_block());
  block
      .key("words", &RecipeWords::words, texts(),
           "the flag and its values, or a word key=value; {steps} is their number")
      .required();
  return block;
}

template <class T>
std::vector<T> read_list(JsonObject& object, const std::string& key, const Block<T>& block) {
  std::vector<T> list;
  const Json* json = object.find(key);
  if (json == nullptr) return list;
  if (!json->is_array()) object.fail(key, "must be a list", "write [...]");
  for (std::size_t i = 0; i < json->size(); ++i) {
    list.push_back(block.value_of(&(*json)[i], object.source(), fmt::format("{}/{}", object.pointer(key), i)));
  }
  return list;
}

// Reads a list whose elements may be just a list of words.
std::vector<RecipeWords> read_added(JsonObject& object) {
  Json json = Json::array();
  if (const Json* added = object.find("add")) json = *added;
  if (!json.is_array()) object.fail("add", "must be a list", "write [[\"--log-interval\", \"1\"]]");
  for (Json& one : json) {
    if (one.is_array()) one = {{"words", one}};
  }
  const Json whole = {{"add", json}};
  JsonObject within(whole, object.source(), object.pointer());
  std::vector<RecipeWords> words = read_list(within, "add", words_block());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].words.empty()) object.fail(fmt::format("add/{}", i), "has no word", "remove it");
  }
  return words;
}

// Reads a text, or {"value": text, "where": {...}}.
std::vector<RecipeVariable> read_variables(JsonObject& object, const std::string& key) {
  Block<RecipeVariable> block("A variable of the environment, or a key of a file");
  block.key("value", &RecipeVariable::value, text(), "its value").required();
  block.block("where", &RecipeVariable::where, pattern_block());
  std::vector<RecipeVariable> variables;
  if (object.find(key) == nullptr) return variables;
  const JsonObject within = object.object(key);
  for (const auto& [name, json] : within.value().items()) {
    RecipeVariable variable;
    if (json.is_string())
      variable.value = json.get<std::string>();
    else
      variable = block.value_of(&json, within.source(), within.pointer(name));
    variable.name = name;
    variables.push_back(std::move(variable));
  }
  return variables;
}

// Checks that a regular expression of a measurement compiles and has the one group that is the number.
void check_regex(const JsonObject& object, const std::string& key, bool with_group) {
  const Json& json = object.value().at(key);
  if (!json.is_string()) object.fail(key, "must be a text", "write a regular expression");
  try {
    const Pattern pattern(json.get<std::string>());
    if (with_group && pattern.groups() != 1) {
      object.fail(key, fmt::format("has {} groups, not one", pattern.groups()),
                  "put ( ) around the number, and (?: ) around everything else");
    }
  } catch (const std::regex_error& error) {
    object.fail(key, fmt::format("is not a regular expression: {}", trouble_with_pattern(error)),
                "write it in ECMAScript's grammar");
  }
}

void check_measurements(JsonObject& object, const Recipe& recipe) {
  const JsonObject measure(recipe.measure, object.source(), object.pointer("measure"));
  for (const auto& [name, json] : recipe.measure.items()) {
    const JsonObject metric(json, object.source(), measure.pointer(name));
    if (json.contains("regex")) check_regex(metric, "regex", true);
    if (json.contains("wall")) check_regex(metric, "wall", false);
  }
  if (!recipe.checks.is_array()) object.fail("checks", "must be a list", "write [{\"regex\": ..., \"equals\": ...}]");
  for (std::size_t i = 0; i < recipe.checks.size(); ++i) {
    JsonObject check(recipe.checks[i], object.source(), fmt::format("{}/{}", object.pointer("checks"), i));
    check.require("regex");
    check.require("equals");
    check_regex(check, "regex", true);
  }
  for (std::size_t i = 0; i < recipe.oom_patterns.size(); ++i) {
    const Json pattern = {{fmt::format("oom_patterns/{}", i), recipe.oom_patterns[i]}};
    check_regex(JsonObject(pattern, object.source(), ""), fmt::format("oom_patterns/{}", i), false);
  }
}

Texts frameworks() {
  Texts words;
  const Json schema = workload::workload_schema();
  for (const Json& word : schema.at("properties").at("framework").at("enum")) {
    if (word.is_string()) words.push_back(word.get<std::string>());
  }
  return words;
}

void check_names(JsonObject& object, const Recipe& recipe) {
  if (recipe.name.empty()) object.fail("name", "is empty", "give it a name");
  const auto check_framework = [&](const std::string& key, const std::string& name) {
    if (is_one_of(name, frameworks())) return;
    object.fail(key, fmt::format("'{}' is unknown", name), suggestion(name, frameworks()));
  };
  if (!recipe.framework.empty()) check_framework("framework", recipe.framework);
  for (const RecipeFramework& other : recipe.frameworks) check_framework("frameworks", other.framework);
  for (const RecipeValue& size : recipe.model) {
    if (is_one_of(size.name, kModelKeys)) continue;
    object.fail("model/" + size.name, "is unknown", suggestion(size.name, Texts(kModelKeys.begin(), kModelKeys.end())));
  }
}

// A key without a file belongs to the recipe's first file.
void set_file_of(const JsonObject& object, const Recipe& recipe, RecipeValue& value, const std::string& key) {
  for (Place& place : value.places) {
    if (place.key.empty() && place.copy_keys.empty()) continue;
    if (place.file.empty() && !recipe.files.empty()) place.file = recipe.files.front().name;
    const bool is_known = std::any_of(recipe.files.begin(), recipe.files.end(),
                                      [&](const RecipeFile& file) { return file.name == place.file; });
    if (!is_known) object.fail(key, "has a \"key\" of a file that is not among \"files\"", "add the file there");
  }
}

void set_files(const JsonObject& object, Recipe& recipe) {
  for (RecipeValue& value : recipe.parameters) set_file_of(object, recipe, value, "parameters/" + value.name);
  for (RecipeValue& value : recipe.model) set_file_of(object, recipe, value, "model/" + value.name);
  for (RecipeValue& value : recipe.training) {
    if (recipe.files.empty()) {  // they are those of "caveats_of", whose jobs have files
      for (Place& place : value.places) place.key.clear();
    }
    set_file_of(object, recipe, value, "training/" + value.name);
  }
  set_file_of(object, recipe, recipe.train_batch_size, "train_batch_size");
  set_file_of(object, recipe, recipe.data_parallel, "data_parallel");
  if (!recipe.set.empty() && recipe.files.empty()) object.fail("set", "there are no \"files\"", "add the file");
  for (RecipeKey& key : recipe.set) key.file = recipe.files.front().name;
}

void add_command_keys(Block<Recipe>& block) {
  block.key("name", &Recipe::name, text(), "its name").required();
  block.key("summary", &Recipe::summary, text(), "one line");
  block.noted("like", schema::text(), "a shipped recipe: what this one does not say is that one's");
  block.key("example", &Recipe::example, text(), "how such a job is tuned: a command line");
  block.key("versions", &Recipe::versions, text(), "of the framework that it was written for");
  block.key("instead", &Recipe::instead, text(), "another command that tunes such jobs");
  block.key("last_resort", &Recipe::is_last_resort, boolean(), "recognised only where no other recipe is");
  block.key("before", &Recipe::before, texts(), "recipes that give way to this one where both know a command");
  block.custom(
      "recognise", schema::list(pattern_block().schema()), "commands that it is for: any of these",
      [](JsonObject& object, Recipe& recipe) { recipe.recognise = read_list(object, "recognise", pattern_block()); });
  block.custom("files", schema::list(file_block().schema()), "files that the command names",
               [](JsonObject& object, Recipe& recipe) { recipe.files = read_list(object, "files", file_block()); });
  block.key("override_prefix", &Recipe::override_prefix, text(),
            "what words key=value begin with: \"--\" for --key=value");
}

void add_value_keys(Block<Recipe>& block) {
  block.custom(
      "parameters", schema::map(value_schema()), "how each parameter is set, by its name",
      [](JsonObject& object, Recipe& recipe) { recipe.parameters = read_recipe_values(object, "parameters"); });
  block.key("constraints", &Recipe::constraints, texts(), "of the session; {name} is the command's own value");
  block.custom("fixed", schema::map(schema::scalar()), "what the framework always does",
               [](JsonObject& object, Recipe& recipe) {
                 const Json* json = object.find("fixed");
                 if (json == nullptr) return;
                 recipe.fixed = space::configuration_from_json(*json, object.source(), object.pointer("fixed"));
               });
  const auto add_value = [&](const char* key, RecipeValue Recipe::*member, const char* meaning) {
    block.custom(key, value_schema(), meaning, [key, member](JsonObject& object, Recipe& recipe) {
      if (const Json* json = object.find(key)) recipe.*member = read_recipe_value(object, *json, key);
    });
  };
  add_value("train_batch_size", &Recipe::train_batch_size,
            "sequences of a step, if the job gets them; otherwise they follow from micro-batch and accumulation");
  add_value("data_parallel", &Recipe::data_parallel, "data-parallel ranks, if the job gets them");
  block.key("framework", &Recipe::framework, text(), "whose models of time and memory apply, as in workload/framework");
  block.custom("frameworks", schema::list(framework_block().schema()), "frameworks of some commands, which count more",
               [](JsonObject& object, Recipe& recipe) {
                 recipe.frameworks = read_list(object, "frameworks", framework_block());
               });
  block.custom("model", schema::map(value_schema()), "where the model's sizes are said",
               [](JsonObject& object, Recipe& recipe) { recipe.model = read_recipe_values(object, "model"); });
  block.custom(
      "training", schema::map(value_schema()),
      "where the command says how it trains: the keys of the workload's block \"training\", those of its adapters "
      "as lora/rank, and optimizer",
      [](JsonObject& object, Recipe& recipe) { recipe.training = read_recipe_values(object, "training"); });
  block.custom(
      "not_modelled", schema::list(gap_block().schema()), "what predictions do not know, and say that",
      [](JsonObject& object, Recipe& recipe) { recipe.not_modelled = read_list(object, "not_modelled", gap_block()); });
  block.key("ignored", &Recipe::ignored, texts(),
            "flags and keys that change nothing that is predicted, as max_grad_norm; * at the end stands for any text");
  block.noted("caveats_of", schema::text(),
              "a shipped recipe whose \"not_modelled\" and \"ignored\" apply too, and the keys of \"training\" that "
              "are not here");
  block.noted("modelled", schema::list(schema::text()), "\"what\" of theirs that this recipe models");
}

void add_trial_keys(Block<Recipe>& block) {
  block.key("remove", &Recipe::remove, words_said(), "flags that trials run without; * at the end stands for any text");
  block.custom("add", schema::list(schema::either({schema::list(schema::text()), words_block().schema()})),
               "words that only trials get",
               [](JsonObject& object, Recipe& recipe) { recipe.add = read_added(object); });
  const Json variable = schema::either({schema::text(), Json{{"type", "object"}}});
  block.custom("set", schema::map(variable), "keys of the first file that only trials get; null takes one away",
               [](JsonObject& object, Recipe& recipe) {
                 for (const RecipeVariable& one : read_variables(object, "set"))
                   recipe.set.push_back({"", one.name, one.value, one.where});
               });
  block.custom("env", schema::map(variable), "environment of trials",
               [](JsonObject& object, Recipe& recipe) { recipe.env = read_variables(object, "env"); });
  block.custom(
      "training_env", schema::map(variable), "environment of trials and of the command that trains",
      [](JsonObject& object, Recipe& recipe) { recipe.training_env = read_variables(object, "training_env"); });
  block.custom("measure", schema::map(Json::object()), "measurements, as in a session's runner",
               [](JsonObject& object, Recipe& recipe) {
                 if (object.find("measure") != nullptr) recipe.measure = object.object("measure").value();
               });
  block.custom("checks", schema::list(Json::object()), "printed values that must equal what was intended",
               [](JsonObject& object, Recipe& recipe) {
                 if (const Json* json = object.find("checks")) recipe.checks = *json;
               });
  block.key("oom_patterns", &Recipe::oom_patterns, texts(),
            "lines that tell of too little memory, beyond the usual ones");
  block.key("warmup_steps", &Recipe::warmup_steps, integer(at_least(0)), "steps that are not counted");
  block.key("measure_steps", &Recipe::measure_steps, integer(at_least(1)), "steps that are");
  block.key("notes", &Recipe::notes, texts(), "what a user should know");
  block.block("installed", &Recipe::installed, installed_block());
}

Block<Recipe> recipe_block() {
  Block<Recipe> block("How a kind of training job gets its parameters, and what it prints");
  add_command_keys(block);
  add_value_keys(block);
  add_trial_keys(block);
  block.check([](JsonObject& object, Recipe& recipe) {
    check_names(object, recipe);
    set_files(object, recipe);
    check_measurements(object, recipe);
  });
  return block;
}

}  // namespace

bool CommandPattern::is_empty() const {
  return launchers.empty() && scripts.empty() && modules.empty() && programs.empty() && flags.empty() &&
         any_flag.empty() && bare.empty() && without.empty() && keys.empty() && without_keys.empty() &&
         without_scripts.empty();
}

bool Place::is_written() const {
  return !flags.empty() || !override_key.empty() || !tail.empty() || !words.empty() || !env.empty() || !key.empty();
}

const RecipeValue* Recipe::find(const std::string& parameter) const {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const RecipeValue& one) { return one.name == parameter; });
  return found == parameters.end() ? nullptr : &*found;
}

Recipe read_recipe(const Json& json, const std::string& source) {
  const Json whole = completed_recipe(json, source);
  Recipe recipe = recipe_block().value_of(&whole, source, "");
  if (json.contains("like")) recipe.bases.push_back(json.at("like").get<std::string>());
  if (json.contains("caveats_of")) recipe.bases.push_back(json.at("caveats_of").get<std::string>());
  recipe.json = whole;
  return recipe;
}

Json recipe_schema() { return recipe_block().schema(); }

}  // namespace krigtune::jobs
