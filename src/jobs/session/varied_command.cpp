#include "jobs/session/varied_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "jobs/command/command.h"
#include "jobs/command/words.h"
#include "jobs/recipe/config_values.h"
#include "jobs/session/script_default.h"

namespace krigtune::jobs {
namespace {

using Words = std::vector<std::string>;

bool begins_with(const std::string& word, std::string_view start) { return word.rfind(start, 0) == 0; }

// The words of scripts for yes and no. The session's values are printed as the first pair.
struct YesNo {
  std::string_view yes;
  std::string_view no;
};
constexpr std::array<YesNo, 7> kYesNo = {
    {{"true", "false"}, {"True", "False"}, {"TRUE", "FALSE"}, {"yes", "no"}, {"on", "off"}, {"1", "0"}, {"y", "n"}}};

const YesNo* yes_or_no(std::string_view word) {
  const auto found = std::find_if(kYesNo.begin(), kYesNo.end(),
                                  [&](const YesNo& pair) { return word == pair.yes || word == pair.no; });
  return found == kYesNo.end() ? nullptr : &*found;
}

bool are_switch_values(const Json& values) {
  return values.is_array() && !values.empty() &&
         std::all_of(values.begin(), values.end(), [](const Json& value) { return value.is_boolean(); });
}

// An own value must only have the same kind as the values to try.
bool are_texts(const Json& values) { return values.is_array() && values.front().is_string(); }

[[noreturn]] void refuse_vary(const Vary& vary, const std::string& what, const std::string& hint) {
  throw UserError(fmt::format("--vary '{}': {}", vary.text, what), hint);
}

class Varying {
 public:
  Varying(const Words& command, const CommandSurroundings& around, Braces braces)
      : around_(around), braces_(std::move(braces)) {
    check_words(command);
    const std::size_t program = leading_assignments(command);
    const auto first = command.begin() + static_cast<std::ptrdiff_t>(program);
    for (auto word = command.begin(); word != first; ++word) {
      const std::size_t equals = word->find('=');
      made_.env.emplace_back(word->substr(0, equals), escaped(word->substr(equals + 1)));
    }
    words_.assign(first, command.end());
    script_ = script_word(words_);
    for (const std::string& word : words_) made_.argv.push_back(braces_.are_escaped ? word : escaped(word));
  }

  void vary(const Vary& vary) {
    made_.varied.push_back(vary);
    switch (vary.place.is) {
      case VaryPlace::Is::kFlag:
        return vary_flag(vary);
      case VaryPlace::Is::kOverride:
        return vary_override(vary);
      case VaryPlace::Is::kVariable:
        return vary_variable(vary);
      case VaryPlace::Is::kFileKey:
        return vary_key(vary);
    }
  }

  VariedCommand take() {
    const auto is_gone = [&](std::size_t i) { return taken_away_.count(i) > 0; };
    Words argv;
    for (std::size_t i = 0; i < made_.argv.size(); ++i) {
      if (i == flags_at_) argv.emplace_back("{flags}");
      if (!is_gone(i)) argv.push_back(made_.argv[i]);
    }
    made_.argv = std::move(argv);
    return std::move(made_);
  }

 private:
  static std::string placeholder(const Vary& vary) { return "{" + vary.name + "}"; }

  bool is_placeholder(std::string_view name) const {
    constexpr std::array<std::string_view, 6> kOfTrials = {"dir", "trial", "port", "slot", "config", "result"};
    return is_one_of(name, kOfTrials) || is_one_of(name, braces_.names);
  }

  // Braces in the user's words are literal: JSON, awk, shells.
  std::string escaped(const std::string& word) const {
    std::string text;
    for (std::size_t at = 0; at < word.size(); ++at) {
      const std::size_t end = word[at] == '{' ? word.find('}', at) : std::string::npos;
      if (end != std::string::npos && is_placeholder(std::string_view(word).substr(at + 1, end - at - 1))) {
        text += word.substr(at, end - at + 1);
        at = end;
      } else {
        text += word[at];
        if (word[at] == '{' || word[at] == '}') text += word[at];
      }
    }
    return text;
  }

  void say_own(const Vary& vary, const std::string& text) {
    Json& values = made_.varied.back().values;
    const YesNo* pair = are_switch_values(values) ? yes_or_no(text) : nullptr;
    if (pair != nullptr && pair != kYesNo.data()) {
      for (Json& value : values) {
        const std::string word(value.get<bool>() ? pair->yes : pair->no);
        value = space::to_json(space::value_from_text(word));
      }
    }
    if (values.is_null() || are_texts(values)) {
      made_.own.set(vary.name, values.is_null() ? space::value_from_text(text) : space::Value(text));
      return;
    }
    const space::Value value = space::value_from_text(text);
    const bool wants_switch = are_switch_values(values);
    if (wants_switch ? std::holds_alternative<bool>(value) : space::is_number(value)) {
      made_.own.set(vary.name, value);
      return;
    }
    refuse_vary(vary,
                fmt::format("the command says '{}', and the values to try are {}", text,
                            wants_switch ? "true and false" : "numbers"),
                fmt::format("list values of one kind, '{}' among them", text));
  }

  void say_absent(const Vary& vary, const std::string& where, const std::string& near = "") {
    const Json& values = vary.values;
    if (values.is_null()) return;  // the session's baseline has the value
    made_.absent.push_back(vary.name);
    const Json first = values.is_array() ? values.front() : values.at("min");
    made_.own.set(vary.name, space::value_from_json(first, vary.text));
    made_.remarks.push_back(fmt::format(
        "{} does not say {}{}: the baseline takes {}, the first to try; write your own value to compare with it", where,
        vary.place.text(), near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
        space::to_string(*made_.own.find(vary.name))));
  }

  // The script's own default, if its text says it and it is of the kind of the values to try. Trial 0 then trains what
  // the unchanged command does.
  bool say_default_of_script(const Vary& vary) {
    const std::filesystem::path script = around_.directory / words_[script_];
    std::error_code error;
    if (vary.values.is_null() || script.extension() != ".py" || !std::filesystem::is_regular_file(script, error))
      return false;
    std::optional<std::string> text;
    try {
      text = default_in_script(read_text(script), vary.place.name);
    } catch (const UserError&) {  // it cannot be read
      return false;
    }
    const bool is_text = are_texts(vary.values);
    if (!text || (!is_text && !space::is_number(space::value_from_text(*text)))) return false;
    made_.own.set(vary.name, is_text ? space::Value(*text) : space::value_from_text(*text));
    made_.remarks.push_back(fmt::format("the command does not say {}: the baseline takes {}, the default in {}",
                                        vary.place.text(), *text, words_[script_]));
    return true;
  }

  // Looks after the script and, if the flag is a launcher's, before it.
  std::vector<FlagAt> places_of(const std::string& flag) const {
    auto places = occurrences(words_, script_ + 1, words_.size(), flag);
    if (places.empty()) places = occurrences(words_, 0, script_, flag);
    return places;
  }

  void vary_flag(const Vary& vary) {
    const std::string& flag = vary.place.name;
    const std::vector<FlagAt> places = places_of(flag);
    const bool is_switch = are_switch_values(vary.values);
    const bool has_words =
        !places.empty() && places.back().value_word && yes_or_no(value_at(words_, places.back())) != nullptr;
    if (is_switch && !has_words) return vary_switch(vary, places);
    if (places.empty() && vary_short_form(vary)) return;
    for (const FlagAt& at : places) {
      if (!at.value_word) {
        refuse_vary(vary, fmt::format("the command's {} has no value", words_[at.word]),
                    "for a switch write true,false; else write its value into the command");
      }
      std::string& word = made_.argv[*at.value_word];
      word = (at.is_joined ? word.substr(0, word.find('=') + 1) : "") + placeholder(vary);
    }
    if (!places.empty()) return say_own(vary, value_at(words_, places.back()));
    refuse_shell_line(vary, flag);
    if (vary.place.is_joined) {
      made_.argv.push_back(flag + "=" + placeholder(vary));
    } else {
      made_.argv.insert(made_.argv.end(), {flag, placeholder(vary)});
    }
    if (!say_default_of_script(vary)) say_absent(vary, "the command", near_flag(flag));
  }

  // Returns the flag of the command that a misspelt one may mean; "" if none is near.
  std::string near_flag(const std::string& flag) const {
    std::vector<std::string> flags;
    for (const std::string& word : words_) {
      if (begins_with(word, "-")) flags.push_back(word.substr(0, word.find('=')));
    }
    return nearest_name(flag, flags);
  }

  // Handles "-b4": a dash, one letter, a number.
  bool vary_short_form(const Vary& vary) {
    const std::string& flag = vary.place.name;
    if (flag.size() != 2) return false;
    for (std::size_t i = words_.size(); i-- > 0;) {
      if (!begins_with(words_[i], flag) || !space::is_number(space::value_from_text(words_[i].substr(2)))) continue;
      made_.argv[i] = flag + placeholder(vary);
      say_own(vary, words_[i].substr(2));
      return true;
    }
    return false;
  }

  // "--no-compile" is the opposite of "--compile", as with argparse's BooleanOptionalAction.
  void vary_switch(const Vary& vary, const std::vector<FlagAt>& places) {
    const std::string& flag = vary.place.name;
    const std::size_t dashes = flag.find_first_not_of('-');
    const std::string opposite = flag.substr(0, dashes) + "no-" + flag.substr(dashes);
    const std::vector<FlagAt> opposites = dashes == 2 ? places_of(opposite) : decltype(places_of(flag))();
    if (places.empty() && opposites.empty()) refuse_shell_line(vary, flag);
    for (const auto* found : {&places, &opposites}) {
      for (const FlagAt& at : *found) {
        if (at.is_joined)
          refuse_vary(vary, fmt::format("'{}' is not a switch", words_[at.word]), "list the values to try");
        taken_away_.insert(at.word);
        flags_at_ = std::min(flags_at_, at.word);
      }
    }
    const bool is_off = !opposites.empty() && (places.empty() || opposites.back().word > places.back().word);
    const std::string on = places.empty() ? flag : words_[places.back().word];
    const Json off = opposites.empty() ? Json::array() : Json::array({words_[opposites.back().word]});
    made_.flags[vary.name] = {{"true", Json::array({on})}, {"false", off}};
    made_.own.set(vary.name, !places.empty() && !is_off);
  }

  // A flag that is appended to a shell line would become an option of the shell.
  void refuse_shell_line(const Vary& vary, const std::string& wanted) const {
    for (const std::string& word : words_) {
      if (word.find(' ') == std::string::npos || word.find(wanted) == std::string::npos) continue;
      refuse_vary(vary, fmt::format("{} is within '{}', a line for a shell", wanted, word),
                  "put that line into a script, or its words after -- without the shell");
    }
  }

  void vary_override(const Vary& vary) {
    const std::string start = vary.place.name + "=";
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::size_t pluses = std::min(words_[i].find_first_not_of('+'), std::size_t{2});
      if (!begins_with(words_[i].substr(std::min(pluses, words_[i].size())), start)) continue;
      made_.argv[i] = words_[i].substr(0, pluses) + start + placeholder(vary);
      last = i;
    }
    if (last) return say_own(vary, words_[*last].substr(words_[*last].find('=') + 1));
    refuse_shell_line(vary, start);
    made_.argv.push_back(start + placeholder(vary));
    say_absent(vary, "the command");
  }

  void vary_variable(const Vary& vary) {
    const std::string& name = vary.place.name;
    for (auto& [variable, text] : made_.env) {
      if (variable != name) continue;
      say_own(vary, text);
      text = placeholder(vary);
      return;
    }
    if (vary_word_of_env(vary)) return;
    made_.env.emplace_back(name, placeholder(vary));
    const std::optional<std::string> value = around_.variable ? around_.variable(name) : std::nullopt;
    if (value && !value->empty()) return say_own(vary, *value);
    say_absent(vary, "neither the command nor the environment");
  }

  // Handles "env MBS=4 bash run.sh".
  bool vary_word_of_env(const Vary& vary) {
    const bool is_env = !words_.empty() && std::filesystem::path(words_.front()).filename() == "env";
    for (std::size_t i = 1; is_env && i < words_.size() && (is_assignment(words_[i]) || begins_with(words_[i], "-"));
         ++i) {
      if (!begins_with(words_[i], vary.place.name + "=")) continue;
      made_.argv[i] = vary.place.name + "=" + placeholder(vary);
      say_own(vary, words_[i].substr(vary.place.name.size() + 1));
      return true;
    }
    return false;
  }

  void vary_key(const Vary& vary) {
    const NamedFile& file = named_file(vary);
    made_.set[file.path.string()][vary.place.name] = placeholder(vary);
    const std::string& key = vary.place.name;
    const bool may_be_absent = key.front() == '+';
    const ConfigValues values = read_config_values(file.path);
    const auto own = values.find(key.substr(may_be_absent ? 1 : 0));
    if (own != values.end()) return say_own(vary, space::to_string(own->second));
    if (may_be_absent) return say_absent(vary, file.written);
    std::vector<std::string> keys;
    for (const auto& [known, value] : values) keys.push_back(known);
    const std::string near = nearest_name(key, keys);
    refuse_vary(vary, fmt::format("{} has no value '{}'", file.written, key),
                near.empty() ? fmt::format("write +{} to add it", key) : fmt::format("did you mean '{}'?", near));
  }

  struct NamedFile {
    std::string written;  ///< as in the command
    std::filesystem::path path;
  };

  // Returns the word that names the file, or its part after '='.
  static std::string file_in(const std::string& word) {
    const std::size_t equals = word.find('=');
    return equals == std::string::npos ? word : word.substr(equals + 1);
  }

  bool is_same_file(const std::string& word, const std::string& wanted) const {
    if (word.empty() || word.front() == '-') return false;
    const auto normal = [&](const std::string& name) { return (around_.directory / name).lexically_normal(); };
    return normal(word) == normal(wanted);
  }

  const NamedFile& named_file(const Vary& vary) {
    for (const NamedFile& file : files_) {
      if (is_same_file(file.written, vary.place.file)) return file;
    }
    bool is_named = false;
    std::string written;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (!is_same_file(file_in(words_[i]), vary.place.file)) continue;
      written = file_in(words_[i]);
      const std::string base = std::filesystem::path(written).filename().string();
      made_.argv[i] = words_[i].substr(0, words_[i].size() - written.size()) + "{dir}/" + base;
      is_named = true;
    }
    if (!is_named) refuse_unnamed(vary);
    const std::filesystem::path path = (around_.directory / written).lexically_normal();
    for (const NamedFile& file : files_) {
      if (file.path.filename() == path.filename()) {
        refuse_vary(vary, fmt::format("{} and {} have the same name", file.written, written), "rename one of them");
      }
    }
    files_.push_back({written, path});
    return files_.back();
  }

  [[noreturn]] void refuse_unnamed(const Vary& vary) const {
    std::vector<std::string> files;
    for (const std::string& word : words_) {
      const std::string extension = std::filesystem::path(file_in(word)).extension().string();
      if (is_one_of(extension, std::array{".yaml", ".yml", ".json", ".toml"})) files.push_back(file_in(word));
    }
    refuse_vary(vary, fmt::format("the command does not name '{}'", vary.place.file),
                files.empty() ? "write the file as the command names it" : suggestion(vary.place.file, files));
  }

  const CommandSurroundings& around_;
  Braces braces_;
  Words words_;             ///< the user's words from the program on
  std::size_t script_ = 0;  ///< position in words_
  VariedCommand made_;
  std::vector<NamedFile> files_;
  std::set<std::size_t> taken_away_;  ///< positions of the switches that {flags} replaces
  std::size_t flags_at_ = SIZE_MAX;   ///< position of the first of them
};

void refuse_two_alike(const std::vector<Vary>& varied) {
  for (std::size_t i = 0; i < varied.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (varied[i].name == varied[k].name) {
        refuse_vary(varied[i], fmt::format("'{}' is varied twice", varied[i].name), "keep one of them");
      }
      if (varied[i].place.text() == varied[k].place.text()) {
        refuse_vary(
            varied[i],
            fmt::format("{} is varied twice, as {} and {}", varied[i].place.text(), varied[k].name, varied[i].name),
            "keep one of them");
      }
    }
  }
}

}  // namespace

std::size_t leading_assignments(const Words& command) {
  const auto program = std::find_if_not(command.begin(), command.end(), is_assignment);
  return static_cast<std::size_t>(program - command.begin());
}

std::size_t script_word(const Words& command) {
  const Command read = read_command(command);
  if (read.has_script) return read.script;
  constexpr std::array<std::string_view, 4> kScripts = {".sh", ".bash", ".jl", ".pl"};
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string extension = std::filesystem::path(command[i]).extension().string();
    if (!begins_with(command[i], "-") && is_one_of(extension, kScripts)) return i;
  }
  return read.script;
}

VariedCommand vary_command(const Words& command, const std::vector<Vary>& varied, const CommandSurroundings& around,
                           const Braces& braces) {
  refuse_two_alike(varied);
  if (leading_assignments(command) == command.size()) {
    throw UserError("the command after -- has no program", "write it as you start it: -- python train.py --mbs 4");
  }
  Varying varying(command, around, braces);
  for (const Vary& one : varied) varying.vary(one);
  return varying.take();
}

}  // namespace krigtune::jobs
