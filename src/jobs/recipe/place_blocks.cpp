// The parts of a recipe that its other parts have: texts, the commands that something applies to, and places.
#include "jobs/recipe/place_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "space/expression.h"

namespace krigtune::jobs {

namespace {

std::vector<std::string> checked_words(const JsonObject& object, const std::string& key,
                                       std::vector<std::string> words) {
  const bool any_blank =
      std::any_of(words.begin(), words.end(), [](const auto& word) { return trimmed(word).empty(); });
  if (any_blank) object.fail(key, "has an empty text", "write what the command says, or leave it out");
  return words;
}

// A JSON object uses a parameter's value as its key: "3", "full", "true".
template <class Said, class Read>
auto read_map(JsonObject& object, const std::string& key, Read read) {
  std::vector<std::pair<space::Value, Said>> map;
  const Json* json = object.find(key);
  if (json == nullptr) return map;
  if (!json->is_object() || json->empty()) object.fail(key, "must be an object of values", "write {\"full\": ...}");
  for (const auto& [name, said] : json->items()) {
    map.emplace_back(space::value_from_text(name), read(said, key + "/" + name));
  }
  return map;
}

std::vector<std::string> words_in(const JsonObject& object, const Json& json, const std::string& key) {
  std::vector<std::string> words;
  if (!json.is_array()) object.fail(key, "must be a list of words", "write [\"--flag\", \"value\"]");
  for (const Json& word : json) {
    if (!word.is_string()) object.fail(key, "must be a list of words", "put each into quotes");
    words.push_back(word.get<std::string>());
  }
  return words;
}

void add_map_keys(Block<Place>& block) {
  block.custom("values", schema::map(schema::text()), "what the job calls a value: {\"3\": \"FULL_SHARD\"}",
               [](JsonObject& object, Place& place) {
                 place.values = read_map<std::string>(object, "values", [&](const Json& said, const std::string& key) {
                   if (said.is_structured()) object.fail(key, "must be a text", "write \"FULL_SHARD\"");
                   return said.is_string() ? said.get<std::string>() : said.dump();
                 });
               });
  block.custom("words", schema::map(schema::list(schema::text())),
               "whole words for a value: {\"full\": [\"--recompute\", \"full\"], \"none\": []}",
               [](JsonObject& object, Place& place) {
                 place.words = read_map<std::vector<std::string>>(
                     object, "words",
                     [&](const Json& said, const std::string& key) { return words_in(object, said, key); });
               });
  block.custom("also", schema::map(schema::list(schema::list(schema::text()))),
               "other words that mean the same, {any} being any word; they are read, not written",
               [](JsonObject& object, Place& place) {
                 const auto lists = read_map<Json>(object, "also", [](const Json& said, const auto&) { return said; });
                 for (const auto& [value, list] : lists) {
                   const std::string key = "also/" + space::to_string(value);
                   if (!list.is_array()) object.fail(key, "must be a list of lists", "write [[\"--flag\"]]");
                   for (const Json& words : list) place.also.emplace_back(value, words_in(object, words, key));
                 }
               });
}

void check_place(const JsonObject& object, const Place& place) {
  const int ways = int(place.is_operand) + int(!place.flags.empty()) + int(!place.override_key.empty()) +
                   int(!place.tail.empty()) + int(!place.words.empty());
  if (ways > 1) object.fail("", "it says more than one of operand, flag, override, tail and words", "keep one of them");
  if (!place.also.empty() && place.words.empty()) object.fail("also", "there are no \"words\"", "add them");
  if (!place.values.empty() && !place.words.empty()) object.fail("values", "there are \"words\" too", "keep one");
  if (place.quotient_flags.empty() != place.quotient_of.empty())
    object.fail("", "\"quotient_flag\" and \"quotient_of\" belong together", "write both");
  try {
    if (!place.quotient_of.empty()) space::Expression::parse_value(place.quotient_of);
  } catch (const UserError& error) {
    object.fail("quotient_of", error.what(), "");
  }
  for (const std::string& flag : place.flags) {
    if (flag.rfind('-', 0) != 0) object.fail("flag", fmt::format("'{}' is not a flag", flag), "begin it with --");
  }
}

// How a place's number follows from the parameter, and what else gets it.
void add_number_keys(Block<Place>& block) {
  block.key("times", &Place::times, number(above(0)), "the parameter is so many times the number that the job gets");
  block.key("rounded_up", &Place::rounded_up, integer(at_least(1)), "and rounded up to a multiple of this");
  block.key("rounded_down", &Place::rounded_down, integer(at_least(1)), "and rounded down to a multiple of this");
  block.key("copy_flags", &Place::copy_flags, words_said(), "flags that get the same where the command has them");
  block.key("copy_keys", &Place::copy_keys, words_said(), "keys of the file that get the same where it has them");
  block.key("times_of", &Place::times_of, text(), "... and this size of the model, which is above it: \"hidden\"");
  block.key(
      "quotient_flag", &Place::quotient_flags, text_or_texts(),
      "a flag of commands without the others, never written: the parameter is \"quotient_of\" divided by its number");
  block.key("quotient_of", &Place::quotient_of, text(),
            "a value over sizes of the model and other parameters: \"layers / pipeline_parallel\"");
  block.key("shared", &Place::is_shared, boolean(), "the job divides its number among all ranks");
  block.key(
      "groups", &Place::is_groups, boolean(),
      "the job gets the number of groups: data-parallel ranks divided by the parameter, which is 0 for one group");
  block.key("size_flags", &Place::size_flags, words_said(),
            "with groups: flags that get their size where the command has them");
  block.key("size_keys", &Place::size_keys, words_said(),
            "with groups: keys of the file that get their size where it has them");
  block.key("of_node", &Place::is_of_node, boolean(), "a job that says nothing has as many as a node has ranks");
}

}  // namespace

Codec<std::vector<std::string>> words_said() {
  Codec<std::vector<std::string>> codec = texts();
  codec.read = [](JsonObject& object, const std::string& key) { return checked_words(object, key, object.texts(key)); };
  return codec;
}

Codec<std::vector<std::string>> text_or_texts() {
  return {schema::either({schema::text(), schema::list(schema::text())}),
          [](JsonObject& object, const std::string& key) {
            const Json* json = object.find(key);
            return checked_words(
                object, key,
                json->is_string() ? std::vector<std::string>{json->get<std::string>()} : object.texts(key));
          },
          [](const std::vector<std::string>& words) { return words.size() == 1 ? Json(words.front()) : Json(words); }};
}

Block<CommandPattern> pattern_block() {
  Block<CommandPattern> block("Which commands it applies to: all that is said must be true");
  block.key("launchers", &CommandPattern::launchers, words_said(), "one of these starts the ranks, as \"accelerate\"");
  block.key("scripts", &CommandPattern::scripts, words_said(),
            "the script's file is one of these; * stands for any text");
  block.key("without_scripts", &CommandPattern::without_scripts, words_said(), "the script's file is none of these");
  block.key("modules", &CommandPattern::modules, words_said(), "the module after -m is one of these");
  block.key("programs", &CommandPattern::programs, words_said(),
            "one of these words, as \"trl sft\", is in the command");
  block.key("flags", &CommandPattern::flags, words_said(),
            "all of these are there: \"--fsdp\", or \"--fsdp_version 2\"");
  block.key("any_flag", &CommandPattern::any_flag, words_said(), "one of these is there");
  block.key("bare", &CommandPattern::bare, words_said(), "all of these are there, without a value");
  block.key("without", &CommandPattern::without, words_said(), "none of these is there");
  block.key("keys", &CommandPattern::keys, words_said(), "all of these are in its files: \"stage\", or \"stage sft\"");
  block.key("without_keys", &CommandPattern::without_keys, words_said(), "none of these is in its files");
  return block;
}

Block<Place> place_block() {
  Block<Place> block("One way in which a job gets a value");
  block.block("where", &Place::where, pattern_block());
  block.key("operand", &Place::is_operand, boolean(), "the first word that is neither a flag nor the value of one");
  block.key("flag", &Place::flags, text_or_texts(), "the flag, or its spellings, of which the first is written");
  block.key("of_launcher", &Place::of_launcher, boolean(), "the flag is the launcher's, not the script's");
  block.key("override", &Place::override_key, text(), "a word key=value, as Hydra and OmegaConf take them");
  block.key("tail", &Place::tail, text(), "the last word of the command begins so");
  block.key("env", &Place::env, text(), "a variable of the environment");
  block.key("file", &Place::file, text(), "which of the recipe's files has the key (default: the first)");
  block.key("key", &Place::key, text(), "a key of that file, dotted");
  add_number_keys(block);
  add_map_keys(block);
  block.key("nothing", &Place::nothing, words_said(), "words that leave it open, as \"auto\": the default counts");
  block.custom("default", schema::scalar(), "what a job does that says nothing", [](JsonObject& object, Place& place) {
    if (const Json* json = object.find("default")) {
      place.otherwise = space::value_from_json(*json, object.source() + ": " + object.pointer("default"));
    }
  });
  block.key("list", &Place::is_list, boolean(), "the flag or the key has several values: all of them count");
  block.key("read_only", &Place::is_read_only, boolean(), "it is read there, and never changed");
  block.key("assumed", &Place::assumed, text(), "the value is taken for granted, for this reason");
  block.check([](JsonObject& object, Place& place) { check_place(object, place); });
  return block;
}

}  // namespace krigtune::jobs
