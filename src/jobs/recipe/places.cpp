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

std::optional<FlagAt> last_of(const Texts& flags, const Place& place, const RecipeJob& job) {
  const Region region = region_of(job.command, place.of_launcher);
  std::optional<FlagAt> last;
  for (const std::string& flag : flags) {
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

bool is_any(const std::string& name) { return name.find('*') != std::string::npos; }

// The parameter is this many times the job's number; empty if that depends on ranks which nobody knows.
std::optional<double> factor_of(const Place& place, const RecipeJob& job) {
  if (!place.is_shared) return place.times;
  return job.ranks ? std::optional(place.times / static_cast<double>(*job.ranks)) : std::nullopt;
}

// The size of each of so many groups of data-parallel ranks; 0 for a single one.
std::optional<space::Value> size_of_groups(const space::Value& said, const RecipeJob& job) {
  const std::int64_t groups = space::integer_of(said).value_or(0);
  if (groups == 1) return std::int64_t{0};
  const bool divide = groups > 1 && job.data_ranks && *job.data_ranks % groups == 0;
  return divide ? std::optional<space::Value>(*job.data_ranks / groups) : std::nullopt;
}

Reading meant_by(const std::string& text, const Place& place, const RecipeJob& job) {
  Reading reading{std::nullopt, true, false};
  if (std::any_of(place.nothing.begin(), place.nothing.end(),
                  [&](const auto& word) { return same_word(word, text); })) {
    reading.value = place.otherwise;
    return reading;
  }
  if (!place.values.empty()) {
    const auto found = std::find_if(place.values.begin(), place.values.end(),
                                    [&](const auto& entry) { return is_named_by(entry.second, text); });
    if (found != place.values.end()) reading.value = found->first;
    reading.is_unknown = !reading.value;
    return reading;
  }
  const space::Value value = as_value(text);
  if (place.is_groups) {
    reading.value = size_of_groups(value, job);
    reading.is_unknown = !reading.value;
    return reading;
  }
  const std::optional<double> factor = factor_of(place, job);
  if (factor == 1.0 && place.rounded_up == 0 && place.rounded_down == 0) {
    reading.value = value;
  } else if (factor && space::is_number(value)) {
    reading.value = space::number_value(rounded(space::as_number(value) * *factor, place));
  }
  if (reading.value && place.is_shared && !space::integer_of(*reading.value)) reading.value.reset();
  reading.is_unknown = !reading.value;
  return reading;
}

Reading read_operand(const Place& place, const RecipeJob& job) {
  const std::vector<std::string>& words = job.command.argv;
  const Region region = region_of(job.command, false);
  for (std::size_t i = region.begin; i < region.end; ++i) {
    if (!is_flag(words[i])) return meant_by(words[i], place, job);
    const auto at = occurrences(words, i, region.end, words[i].substr(0, words[i].find('='))).front();
    i = at.value_word.value_or(i);
  }
  return {};
}

// All values of a flag, up to the next one: "q_proj,v_proj" of --lora_target_modules q_proj v_proj.
std::string values_at(const Place& place, const RecipeJob& job, const FlagAt& at) {
  const Texts& words = job.command.argv;
  const Region region = region_of(job.command, place.of_launcher);
  std::string all = value_at(words, at);
  for (std::size_t i = *at.value_word + 1; i < region.end && !is_flag(words[i]); ++i) all += "," + words[i];
  return all;
}

Reading read_flag(const Place& place, const RecipeJob& job) {
  const std::optional<FlagAt> at = last_of(place.flags, place, job);
  if (!at) return {};
  if (at->value_word && place.is_list) return meant_by(values_at(place, job, *at), place, job);
  if (at->value_word) return meant_by(value_at(job.command.argv, *at), place, job);
  const bool takes_bare = std::any_of(place.values.begin(), place.values.end(),
                                      [](const auto& entry) { return same_word(entry.second, kBare); });
  if (takes_bare) return meant_by(kBare, place, job);
  throw UserError(fmt::format("the command's flag {} has no value", place.flags.front()), "write one after it");
}

// Unknown if the number is no divisor, or if what it divides is not known.
Reading read_quotient(const Place& place, const RecipeJob& job) {
  const std::optional<FlagAt> at = last_of(place.quotient_flags, place, job);
  if (!at) return {};
  const auto whole = job.quotients.find(place.quotient_of);
  const space::Value said = at->value_word ? as_value(value_at(job.command.argv, *at)) : space::Value(kBare);
  const bool is_known = whole != job.quotients.end() && space::is_number(said) && space::as_number(said) > 0.0;
  const space::Value value = is_known ? space::number_value(whole->second / space::as_number(said)) : said;
  if (!is_known || !space::integer_of(value)) return {std::nullopt, true, true};
  return {value, true, false};
}

Reading read_override(const Place& place, const RecipeJob& job) {
  const Region region = region_of(job.command, false);
  Reading reading;
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const auto word = override_in(job.command.argv[i], job.override_prefix);
    if (word && word->key == place.override_key) reading = meant_by(word->value, place, job);
  }
  return reading;
}

Reading read_tail(const Place& place, const RecipeJob& job) {
  const Region region = region_of(job.command, false);
  Reading reading;
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const std::string& word = job.command.argv[i];
    if (word.rfind(place.tail, 0) == 0) reading = meant_by(word.substr(place.tail.size()), place, job);
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

// A list of a file has the keys "modules.0", "modules.1" and so on.
std::string elements_of(const JobFile& file, const std::string& key) {
  Texts elements;
  for (std::size_t i = 0;; ++i) {
    const auto found = file.values.find(fmt::format("{}.{}", key, i));
    if (found == file.values.end()) return join(elements, ",");
    elements.push_back(space::to_string(found->second));
  }
}

Reading read_key(const Place& place, const RecipeJob& job) {
  if (place.is_list) {
    const JobFile* lists = job.file(place.file, place.key + ".0");
    const std::string all = lists == nullptr ? "" : elements_of(*lists, place.key);
    if (!all.empty()) return meant_by(all, place, job);
  }
  const JobFile* file = job.file(place.file, place.key);
  if (file == nullptr) return {};
  const auto found = file->values.find(place.key);
  if (found == file->values.end()) return {};
  return meant_by(space::to_string(found->second), place, job);
}

Reading read_env(const Place& place, const RecipeJob& job) {
  const std::string text = job.inputs.variable ? job.inputs.variable(place.env) : "";
  return text.empty() ? Reading{} : meant_by(text, place, job);
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

std::optional<OverrideWord> override_in(const std::string& word, const std::string& prefix) {
  const std::size_t equals = word.find('=');
  if (!prefix.empty()) {
    if (word.size() <= prefix.size() || word.rfind(prefix, 0) != 0) return std::nullopt;
    const std::size_t end = std::min(equals, word.size());
    std::string key = word.substr(prefix.size(), end - prefix.size());
    std::replace(key.begin(), key.end(), '-', '_');
    return OverrideWord{key, end == word.size() ? kBare : word.substr(end + 1), prefix};
  }
  if (equals == std::string::npos || equals == 0 || is_flag(word)) return std::nullopt;
  const std::size_t start = std::min(word.find_first_not_of('+'), equals);
  return OverrideWord{word.substr(start, equals - start), word.substr(equals + 1), word.substr(0, start)};
}

bool fits(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (text.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= text.size(); ++at) {
    if (fits(rest, text.substr(at))) return true;
  }
  return false;
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
  otherwise_by(place.is_operand, read_operand);
  otherwise_by(!place.flags.empty(), read_flag);
  otherwise_by(!place.quotient_flags.empty(), read_quotient);
  otherwise_by(!place.override_key.empty(), read_override);
  otherwise_by(!place.tail.empty(), read_tail);
  otherwise_by(!place.words.empty(), read_words);
  otherwise_by(!place.env.empty(), read_env);
  otherwise_by(!place.key.empty(), read_key);
  if (place.is_of_node && !reading.is_said) {
    const std::int64_t nodes = job.command.nodes.value_or(1);
    if (!job.ranks || nodes < 1 || *job.ranks % nodes != 0) return {std::nullopt, false, true};
    return {*job.ranks / nodes, false, false};
  }
  const bool is_open = !place.key.empty() && job.unread.contains(place.file);
  if (reading.is_said || !place.otherwise || is_open) return reading;
  const Reading otherwise =
      place.is_shared ? meant_by(space::to_string(*place.otherwise), place, job) : Reading{place.otherwise};
  return {otherwise.value, false, otherwise.is_unknown};
}

bool is_named_by(const std::string& name, const std::string& text) {
  return is_any(name) ? fits(name, text) : same_word(name, text);
}

const Place* place_of(const RecipeValue& value, const RecipeJob& job) {
  const auto found = std::find_if(value.places.begin(), value.places.end(),
                                  [&](const Place& place) { return applies(place.where, job); });
  return found == value.places.end() ? nullptr : &*found;
}

std::string size_placeholder_of(const std::string& parameter) {
  return fmt::format("{{{0} + dp * ({0} == 0)}}", parameter);
}

std::string placeholder_of(const std::string& parameter, const Place& place) {
  if (place.is_groups) return fmt::format("{{dp / ({0} + dp * ({0} == 0))}}", parameter);
  if (place.is_shared) return fmt::format("{{{}*ranks}}", parameter);
  if (place.times == 1.0) return fmt::format("{{{}}}", parameter);
  return fmt::format("{{{}/{}:.0f}}", parameter, number_text(place.times));
}

namespace {

std::optional<std::string> groups_text(const space::Value& size, std::int64_t data_ranks) {
  const std::optional<std::int64_t> number = space::integer_of(size);
  if (!number || *number < 0) return std::nullopt;
  if (*number == 0 || data_ranks == 0) return "1";
  if (data_ranks % *number != 0) return std::nullopt;
  return std::to_string(data_ranks / *number);
}

}  // namespace

std::optional<std::string> text_of(const space::Value& value, const Place& place, const RanksToWrite& ranks) {
  if (place.is_groups) return groups_text(value, ranks.data);
  if (!place.values.empty()) {
    for (const auto& [known, text] : place.values) {
      if (space::same_value(known, value) && !is_any(text)) return text;
    }
    return std::nullopt;
  }
  const double factor = place.times / static_cast<double>(place.is_shared ? ranks.all : 1);
  if (factor == 1.0) return space::to_string(value);
  if (!space::is_number(value)) return std::nullopt;
  return fmt::format("{:.0f}", space::as_number(value) / factor);
}

Texts words_for(const Place& place, const std::string& text, const std::string& override_prefix) {
  if (!place.flags.empty()) return {place.flags.front(), text};
  if (!place.override_key.empty()) return {override_prefix + place.override_key + "=" + text};
  return {place.tail + text};
}

}  // namespace krigtune::jobs
