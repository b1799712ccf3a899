#include "jobs/recipe/caveats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "jobs/recipe/places.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

// "--Learning-Rate=3" and the key learning_rate have one name.
std::string plain(std::string_view word) {
  while (!word.empty() && (word.front() == '-' || word.front() == '+')) word.remove_prefix(1);
  std::string name = lower_case(std::string(word.substr(0, word.find_first_of("= "))));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The names that a recipe has some use for.
class KnownNames {
 public:
  explicit KnownNames(const Recipe& recipe) {
    for (const auto* values : {&recipe.parameters, &recipe.model, &recipe.training}) {
      for (const RecipeValue& value : *values) add(value);
    }
    add(recipe.train_batch_size);
    add(recipe.data_parallel);
    for (const RecipeFile& file : recipe.files) add(file.flags);
    for (const CommandPattern& pattern : recipe.recognise) add(pattern);
    for (const RecipeGap& gap : recipe.not_modelled) add(gap.where);
    for (const RecipeWords& added : recipe.add) add_flags_in(added.words);
    for (const RecipeKey& key : recipe.set) add(key.key);
    for (const auto* names : {&recipe.remove, &recipe.ignored}) add(*names);
  }

  bool knows(const std::string& name) const {
    return names_.contains(name) || std::any_of(prefixes_.begin(), prefixes_.end(),
                                                [&](const std::string& prefix) { return name.starts_with(prefix); });
  }

 private:
  void add(const std::string& word) {
    const std::string name = plain(word);
    if (name.ends_with('*')) {
      prefixes_.push_back(name.substr(0, name.size() - 1));
    } else {
      names_.insert(name);
    }
  }
  void add(const Texts& words) {
    for (const std::string& word : words) add(word);
  }
  void add_flags_in(const Texts& words) {
    for (const FlagWords& flag : flags_in(words)) add(flag.flag);
  }
  void add(const CommandPattern& pattern) {
    for (const auto* words :
         {&pattern.flags, &pattern.any_flag, &pattern.bare, &pattern.without, &pattern.keys, &pattern.without_keys}) {
      add(*words);
    }
  }
  void add(const RecipeValue& value) {
    for (const Place& place : value.places) {
      add(place.where);
      add(place.flags);
      add(flags_of(place));
      add(place.quotient_flags);
      add(place.copy_flags);
      add(place.copy_keys);
      add(place.size_flags);
      add(place.size_keys);
      for (const std::string* name : {&place.override_key, &place.key}) {
        if (!name->empty()) add(*name);
      }
    }
  }

  std::set<std::string> names_;
  Texts prefixes_;
};

// A word that is a number is a value, as in "--offset -1".
bool is_flag_word(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0 &&
         word[1] != '.';
}

std::string element_free(const std::string& key) {  // "modules.0" is an element of the list "modules"
  const std::size_t dot = key.rfind('.');
  const bool is_element = dot != std::string::npos && key.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  return is_element ? element_free(key.substr(0, dot)) : key;
}

// A flag that is switched off, as in "--use_peft False" or "--adapter none", states nothing.
bool is_off(const RecipeJob& job, const std::string& flag) {
  constexpr std::array<std::string_view, 3> kNothing = {"none", "null", ""};
  const auto places = occurrences(job.command.argv, 0, job.command.argv.size(), flag.substr(0, flag.find(' ')));
  if (places.empty()) return true;
  if (!places.back().value_word) return false;
  const std::string value = value_at(job.command.argv, places.back());
  return same_word(value, "false") || is_one_of(lower_case(value), kNothing);
}

bool states(const RecipeGap& gap, const RecipeJob& job, const TrainingFacts& trained) {
  const auto is_read = [&](const std::string& key) { return trained.says(key); };
  if (std::any_of(gap.unless_read.begin(), gap.unless_read.end(), is_read)) return false;
  const Texts& flags = gap.where.any_flag;
  const bool is_on =
      flags.empty() || std::any_of(flags.begin(), flags.end(), [&](const auto& flag) { return !is_off(job, flag); });
  return is_on && applies(gap.where, job);
}

// Returns the unknown ones, as they are written, in their order.
Texts unknown_names(const Recipe& recipe, const RecipeJob& job) {
  const KnownNames known(recipe);
  std::set<std::string> seen;
  Texts unknown;
  const auto look_at = [&](const std::string& name, const std::string& written) {
    if (known.knows(name) || !seen.insert(name).second) return;
    unknown.push_back(written);
  };
  const Region region = region_of(job.command, false);
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const std::string& word = job.command.argv[i];
    if (is_flag_word(word)) {
      look_at(plain(word), word.substr(0, word.find('=')));
    } else if (const auto said = override_in(word, job.override_prefix)) {
      look_at(plain(said->key), said->key);
    }
  }
  for (const JobFile& file : job.files) {
    for (const auto& [key, value] : file.values) look_at(plain(element_free(key)), element_free(key));
  }
  return unknown;
}

}  // namespace

bool freezes_weights(const Recipe& recipe, const RecipeJob& job, const TrainingFacts& trained) {
  return std::any_of(recipe.not_modelled.begin(), recipe.not_modelled.end(),
                     [&](const RecipeGap& gap) { return gap.freezes && states(gap, job, trained); });
}

workload::Caveats caveats_of(const Recipe& recipe, const RecipeJob& job, const TrainingFacts& trained) {
  workload::Caveats caveats;
  caveats.assumed = trained.assumed;
  for (const RecipeGap& gap : recipe.not_modelled) {
    const std::string text = fmt::format("{}: {}", gap.what, gap.effect);
    if (states(gap, job, trained)) workload::add_once(text, caveats.not_modelled);
  }
  const Texts unknown = unknown_names(recipe, job);
  if (unknown.empty()) return caveats;
  caveats.assumed.push_back(fmt::format("{} {} neither time nor memory, because krigtune does not know {}",
                                        join(unknown, ", "), unknown.size() == 1 ? "changes" : "change",
                                        unknown.size() == 1 ? "it" : "them"));
  return caveats;
}

}  // namespace krigtune::jobs
