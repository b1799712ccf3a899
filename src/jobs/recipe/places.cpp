#include "jobs/recipe/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

// The words that argparse's boolean converters accept (transformers, hf_argparser.string_to_bool).
constexpr std::array<std::string_view, 5> kYesWords = {"true", "yes", "t", "y", "1"};
constexpr std::array<std::string_view, 5> kNoWords = {"false", "no", "f", "n", "0"};

// The value of a flag without one.
const std::string kBare = "true";

bool is_flag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

space::Value as_value(const std::string& text) {
  const std::string lower = lower_case(text);
  if (lower == "true" || lower == "false") return lower == "true";
  return space::value_from_text(text);
}

std::optional<FlagAt> last_of(const Place& place, const RecipeJob& job) {
  const Region region = region_of(job.command, place.of_launcher);
  std::optional<FlagAt> last;
  for (const std::string& flag : place.flags) {
    for (const FlagAt& at : occurrences(job.command.argv, region.begin, region.end, flag)) {
      if (!last || at.word > last->word) last = at;
    }
  }
  return last;
}

// 8 / 3 of 3072 must be 8192, though 8.0 / 3.0 is a little less.
double rounded(double number, const Place& place) {
  constexpr double kSlack = 1e-9;
  const auto up = static_cast<double>(place.rounded_up);
  const auto down = static_cast<double>(place.rounded_down);
  if (up > 0.0) return std::ceil(number / up * (1.0 - kSlack)) * up;
  return down > 0.0 ? std::floor(number / down * (1.0 + kSlack)) * down : number;
}

Reading meant_by(const std::string& text, const Place& place) {
  Reading reading{std::nullopt, true, false};
  if (!place.values.empty()) {
    const auto found = std::find_if(place.values.begin(), place.values.end(),
                                    [&](const auto& entry) { return same_word(entry.second, text); });
    if (found != place.values.end()) reading.value = found->first;
    reading.is_unknown = !reading.value;
    return reading;
  }
  const space::Value value = as_value(text);
  if (place.times == 1.0 && place.rounded_up == 0 && place.rounded_down == 0) {
    reading.value = value;
  } else if (space::is_number(value)) {
    reading.value = space::number_value(rounded(space::as_number(value) * place.times, place));
  } else {
    reading.is_unknown = true;
  }
  return reading;
}

Reading read_flag(const Place& place, const RecipeJob& job) {
  const std::optional<FlagAt> at = last_of(place, job);
  if (!at) return {};
  if (at->value_word) return meant_by(value_at(job.command.argv, *at), place);
  const bool takes_bare = std::any_of(place.values.begin(), place.values.end(),
                                      [](const auto& entry) { return same_word(entry.second, kBare); });
  if (takes_bare) return meant_by(kBare, place);
  throw UserError(fmt::format("the command's flag {} has no value", place.flags.front()), "write one after it");
}

Reading read_override(const Place& place, const RecipeJob& job) {
  const Region region = region_of(job.command, false);
  Reading reading;
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const auto word = override_in(job.command.argv[i]);
    if (word && word->key == place.override_key) reading = meant_by(word->value, place);
  }
  return reading;
}

Reading read_tail(const Place& place, const RecipeJob& job) {
  const Region region = region_of(job.command, false);
  Reading reading;
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const std::string& word = job.command.argv[i];
    if (word.rfind(place.tail, 0) == 0) reading = meant_by(word.substr(place.tail.size()), place);
  }
  return reading;
}

// The value that the command has for one flag.
struct Present {
  bool is_there = false;
  std::optional<std::string> value;
};

Present present(const RecipeJob& job, const Region& region, const std::string& flag) {
  const auto places = occurrences(job.command.argv, region.begin, region.end, flag);
  if (places.empty()) return {};
  const FlagAt& last = places.back();
  return {true, last.value_word ? std::optional(value_at(job.command.argv, last)) : std::nullopt};
}

bool means(const FlagWords& wanted, const Present& said) {
  if (!said.is_there) return false;
  if (!wanted.value || *wanted.value == "{any}") return !said.value || !same_word(*said.value, "false");
  return said.value && same_word(*wanted.value, *said.value);
}

bool are_there(const Texts& words, const Texts& all_flags, const RecipeJob& job, const Region& region) {
  const std::vector<FlagWords> wanted = flags_in(words);
  return std::all_of(all_flags.begin(), all_flags.end(), [&](const std::string& flag) {
    const Present said = present(job, region, flag);
    const auto in = std::find_if(wanted.begin(), wanted.end(), [&](const FlagWords& one) { return one.flag == flag; });
    if (in != wanted.end()) return means(*in, said);
    return !said.is_there || (said.value && same_word(*said.value, "false"));
  });
}

Reading read_words(const Place& place, const RecipeJob& job) {
  const Region region = region_of(job.command, place.of_launcher);
  const Texts flags = flags_of(place);
  const bool is_any = std::any_of(flags.begin(), flags.end(),
                                  [&](const std::string& flag) { return present(job, region, flag).is_there; });
  for (const auto* lists : {&place.words, &place.also}) {
    for (const auto& [value, words] : *lists) {
      if (are_there(words, flags, job, region)) return {value, is_any, false};
    }
  }
  return {std::nullopt, is_any, is_any};
}

Reading read_key(const Place& place, const RecipeJob& job) {
  const JobFile* file = job.file(place.file, place.key);
  if (file == nullptr) return {};
  const auto found = file->values.find(place.key);
  if (found == file->values.end()) return {};
  return meant_by(space::to_string(found->second), place);
}

Reading read_env(const Place& place, const RecipeJob& job) {
  const std::string text = job.inputs.variable ? job.inputs.variable(place.env) : "";
  return text.empty() ? Reading{} : meant_by(text, place);
}

}  // namespace

Region region_of(const Command& command, bool of_launcher) {
  if (!of_launcher) return {std::min(command.script + 1, command.argv.size()), command.argv.size()};
  const Stage* stage = rank_stage(command);
  return stage == nullptr ? Region{} : Region{stage->begin + 1, stage->end};
}

std::size_t launcher_insertion(const Command& command) {
  const Region region = region_of(command, true);
  const bool has_verb = region.begin < region.end && command.argv[region.begin] == "launch";
  return region.begin + (has_verb ? 1 : 0);
}

std::optional<OverrideWord> override_in(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || is_flag(word)) return std::nullopt;
  const std::size_t start = std::min(word.find_first_not_of('+'), equals);
  return OverrideWord{word.substr(start, equals - start), word.substr(equals + 1), word.substr(0, start)};
}

std::vector<FlagWords> flags_in(const Texts& words) {
  std::vector<FlagWords> flags;
  for (const std::string& word : words) {
    if (is_flag(word) || flags.empty()) {
      flags.push_back({word, std::nullopt});
    } else {
      flags.back().value = flags.back().value ? *flags.back().value + " " + word : word;
    }
  }
  return flags;
}

Texts flags_of(const Place& place) {
  Texts flags;
  for (const auto* lists : {&place.words, &place.also}) {
    for (const auto& [value, words] : *lists) {
      for (const FlagWords& one : flags_in(words)) {
        if (!is_one_of(one.flag, flags)) flags.push_back(one.flag);
      }
    }
  }
  return flags;
}

bool same_word(const std::string& a, const std::string& b) {
  const std::string x = lower_case(a);
  const std::string y = lower_case(b);
  return x == y || (is_one_of(x, kYesWords) && is_one_of(y, kYesWords)) ||
         (is_one_of(x, kNoWords) && is_one_of(y, kNoWords));
}

Reading read_place(const Place& place, const RecipeJob& job) {
  Reading reading;
  const auto otherwise_by = [&](bool has, auto read) {
    if (has && !reading.is_said) {
      const Reading found = read(place, job);
      if (found.is_said || !reading.value) reading = found;
    }
  };
  otherwise_by(!place.flags.empty(), read_flag);
  otherwise_by(!place.override_key.empty(), read_override);
  otherwise_by(!place.tail.empty(), read_tail);
  otherwise_by(!place.words.empty(), read_words);
  otherwise_by(!place.env.empty(), read_env);
  otherwise_by(!place.key.empty(), read_key);
  if (!reading.is_said && place.otherwise) reading.value = place.otherwise;
  return reading;
}

const Place* place_of(const RecipeValue& value, const RecipeJob& job) {
  const auto found = std::find_if(value.places.begin(), value.places.end(),
                                  [&](const Place& place) { return applies(place.where, job); });
  return found == value.places.end() ? nullptr : &*found;
}

std::string placeholder_of(const std::string& parameter, const Place& place) {
  if (place.times == 1.0) return fmt::format("{{{}}}", parameter);
  return fmt::format("{{{}/{}:.0f}}", parameter, number_text(place.times));
}

std::optional<std::string> text_of(const space::Value& value, const Place& place) {
  if (!place.values.empty()) {
    for (const auto& [known, text] : place.values) {
      if (space::same_value(known, value)) return text;
    }
    return std::nullopt;
  }
  if (place.times == 1.0) return space::to_string(value);
  if (!space::is_number(value)) return std::nullopt;
  return fmt::format("{:.0f}", space::as_number(value) / place.times);
}

Texts words_for(const Place& place, const std::string& text) {
  if (!place.flags.empty()) return {place.flags.front(), text};
  if (!place.override_key.empty()) return {place.override_key + "=" + text};
  return {place.tail + text};
}

}  // namespace krigtune::jobs
