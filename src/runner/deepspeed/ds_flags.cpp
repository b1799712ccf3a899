// Flags of the training script that must say what ds_config.json says. The Hugging Face Trainer refuses a run whose
// TrainingArguments and configuration differ (transformers, integrations/deepspeed.py, trainer_config_process).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "command_words.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/well_known.h"

namespace krigtune {
namespace {

// What argparse's converters of booleans take for one (transformers, hf_argparser.string_to_bool).
constexpr std::array<std::string_view, 5> kYes = {"true", "yes", "t", "y", "1"};
constexpr std::array<std::string_view, 5> kNo = {"false", "no", "f", "n", "0"};

// "/zero_optimization/stage" and "zero_optimization.stage" as one.
std::string dotted(std::string key) {
  std::replace(key.begin(), key.end(), '/', '.');
  return key.rfind('.', 0) == 0 ? key.substr(1) : key;
}

// The parameter that a key of arg_mappings means: a name, a path, or the last part of one where it is the only such.
std::string parameter_of(const std::string& key) {
  if (find_well_known(key) != nullptr) return key;
  const std::string path = dotted(key);
  std::vector<std::string> by_last_part;
  for (const WellKnownParameter& known : well_known_parameters()) {
    const std::string known_path = dotted(known.deepspeed.key);
    if (known_path.empty()) continue;
    if (known_path == path) return known.name;
    if (known_path.substr(known_path.rfind('.') + 1) == path) by_last_part.emplace_back(known.name);
  }
  return by_last_part.size() == 1 ? by_last_part.front() : path;
}

// Under its name, or, for a key that krigtune does not know, under a path that ends in it.
const Value* find_value(const Configuration& values, const std::string& name) {
  if (const Value* exact = values.find(name)) return exact;
  const std::string ending = "." + name;
  for (const auto& [path, value] : values) {
    if (path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0) {
      return &value;
    }
  }
  return nullptr;
}

// As Python writes it: argparse's own bool("false") would be true, and transformers takes these two.
std::string as_word(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  return to_string(value);
}

bool wants_switch(const Value& value, const FlagMapping& mapping) {
  const std::string word = to_string(value);
  if (word == "none" || word == "full") return word == "full";
  throw UserError(
      fmt::format("{} '{}' cannot be said by the flag {}, which says yes or no", mapping.name, word, mapping.flag),
      "let the parameter be none or full");
}

class Rewriting {
 public:
  explicit Rewriting(const DsCommand& command) : words_(command.argv), begin_(command.script + 1) {}

  void set_config(const DsCommand& command, const std::string& config) {
    for (const std::size_t word : command.config_words) {
      const bool is_joined = words_[word] != command.config;
      words_[word] = is_joined ? words_[word].substr(0, words_[word].find('=') + 1) + config : config;
    }
  }

  void set_flag(const FlagMapping& mapping, const std::string& value) {
    const std::vector<FlagAt> places = occurrences(words_, begin_, words_.size(), mapping.flag);
    for (const FlagAt& at : places) {
      if (!at.value_word) refuse_bare(mapping.flag);
      std::string& word = words_[*at.value_word];
      word = at.is_joined ? word.substr(0, word.find('=') + 1) + value : value;
    }
    if (places.empty() && mapping.appended) words_.insert(words_.end(), {mapping.flag, value});
  }

  void set_switch(const FlagMapping& mapping, bool on) {
    std::vector<FlagAt> places = occurrences(words_, begin_, words_.size(), mapping.flag);
    if (on && places.empty() && mapping.appended) words_.push_back(mapping.flag);
    std::reverse(places.begin(), places.end());  // what is taken away moves only what lies behind it
    for (const FlagAt& at : places) {
      const std::string value = at.value_word ? value_at(words_, at) : "";
      const bool has_value = is_one_of(lower_case(value), kYes) || is_one_of(lower_case(value), kNo);
      if (!on) {
        take_away(at.word, has_value && !at.is_joined ? 2 : 1);
      } else if (is_one_of(lower_case(value), kNo)) {
        std::string& word = words_[*at.value_word];
        word = at.is_joined ? word.substr(0, word.find('=') + 1) + "True" : "True";
      }
    }
  }

  std::vector<std::string> take() { return std::move(words_); }

  [[noreturn]] static void refuse_bare(const std::string& flag) {
    throw UserError(fmt::format("the command's flag {} has no value", flag), "write one behind it");
  }

 private:
  void take_away(std::size_t word, std::ptrdiff_t count) {
    const auto first = words_.begin() + static_cast<std::ptrdiff_t>(word);
    words_.erase(first, first + count);
  }

  std::vector<std::string> words_;
  std::size_t begin_;
};

}  // namespace

std::vector<FlagMapping> flag_mappings(const DsCommand& command,
                                       const std::vector<std::pair<std::string, std::string>>& arg_mappings) {
  std::vector<FlagMapping> mappings;
  const auto is_mapped = [&](const std::string& name) {
    return std::any_of(mappings.begin(), mappings.end(), [&](const FlagMapping& m) { return m.name == name; });
  };
  for (const auto& [key, flag] : arg_mappings) {
    FlagMapping mapping{parameter_of(trimmed(key)), trimmed(flag), true};
    if (mapping.flag.rfind('-', 0) != 0) {
      throw UserError(fmt::format("arg_mappings: {}: '{}' is no flag", trimmed(key), mapping.flag), "begin it with --");
    }
    if (is_mapped(mapping.name)) {
      throw UserError(fmt::format("arg_mappings: '{}' is mapped twice", mapping.name), "keep one of them");
    }
    mappings.push_back(std::move(mapping));
  }
  for (const WellKnownParameter& known : well_known_parameters()) {
    const std::string flag = known.deepspeed.trainer_flag;
    if (!flag.empty() && !is_mapped(known.name)) mappings.push_back({known.name, flag, command.takes_trainer_flags});
  }
  return mappings;
}

Configuration values_of_flags(const DsCommand& command, const std::vector<FlagMapping>& mappings) {
  Configuration values;
  for (const FlagMapping& mapping : mappings) {
    const auto places = occurrences(command.argv, command.script + 1, command.argv.size(), mapping.flag);
    if (mapping.name == kCheckpointing) {
      if (places.empty() && !mapping.appended) continue;
      const bool on = !places.empty() &&
                      !(places.back().value_word && is_one_of(lower_case(value_at(command.argv, places.back())), kNo));
      values.set(mapping.name, std::string(on ? "full" : "none"));
    } else if (!places.empty()) {
      if (!places.back().value_word) Rewriting::refuse_bare(mapping.flag);
      values.set(mapping.name, value_from_text(value_at(command.argv, places.back())));
    }
  }
  return values;
}

std::vector<std::string> rewritten(const DsCommand& command, const std::string& config, const Configuration& values,
                                   const std::vector<FlagMapping>& mappings) {
  Rewriting rewriting(command);
  rewriting.set_config(command, config);
  for (const FlagMapping& mapping : mappings) {
    const Value* value = find_value(values, mapping.name);
    if (value == nullptr) continue;
    if (mapping.name == kCheckpointing) {
      rewriting.set_switch(mapping, wants_switch(*value, mapping));
    } else {
      rewriting.set_flag(mapping, as_word(*value));
    }
  }
  return rewriting.take();
}

}  // namespace krigtune
