#include "jobs/recipe/known_names.h"

#include <algorithm>
#include <array>

#include "core/text.h"
#include "jobs/recipe/places.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

bool is_launchers(const Recipe& recipe, const std::string& file) {
  return std::any_of(recipe.files.begin(), recipe.files.end(),
                     [&](const RecipeFile& one) { return one.name == file && one.of_launcher; });
}

// Flags, and keys of words key=value.
Texts names_in(const Texts& words) {
  Texts names;
  for (const FlagWords& flag : flags_in(words)) names.push_back(flag.flag);
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (!word.starts_with('-') && equals != std::string::npos && equals > 0) names.push_back(word.substr(0, equals));
  }
  return names;
}

}  // namespace

std::string plain_name(std::string_view word) {
  while (!word.empty() && (word.front() == '-' || word.front() == '+')) word.remove_prefix(1);
  std::string name = lower_case(std::string(word.substr(0, word.find_first_of("= "))));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string element_free(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  const bool is_element = dot != std::string::npos && key.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  return is_element ? element_free(key.substr(0, dot)) : key;
}

KnownNames::KnownNames(const Recipe& recipe) {
  const std::vector<std::pair<const char*, const std::vector<RecipeValue>*>> groups = {
      {"parameters/", &recipe.parameters}, {"model/", &recipe.model}, {"training/", &recipe.training}};
  for (const auto& [part, values] : groups) {
    for (const RecipeValue& value : *values) add(value, part + value.name, recipe);
  }
  add(recipe.train_batch_size, "train_batch_size", recipe);
  add(recipe.data_parallel, "data_parallel", recipe);
  for (const RecipeFile& file : recipe.files) add(file.flags, "files", file.of_launcher);
  for (const CommandPattern& pattern : recipe.recognise) add(pattern, "recognise");
  for (const RecipeGap& gap : recipe.not_modelled) add(gap.where, "not_modelled");
  for (const RecipeWords& added : recipe.add) add(names_in(added.words), "add");
  for (const RecipeKey& key : recipe.set) add(key.key, "set");
  add(recipe.remove, "remove");
  add(recipe.ignored, "ignored");
}

bool KnownNames::knows_below(const std::string& group) const {
  const auto next = names_.lower_bound(group + ".");
  return next != names_.end() && next->starts_with(group + ".");
}

bool KnownNames::knows(const std::string& name) const {
  return knows_exactly(name) ||
         std::any_of(prefixes_.begin(), prefixes_.end(), [&](const auto& prefix) { return name.starts_with(prefix); });
}

bool KnownNames::reads(const std::string& name) const {
  constexpr std::array<std::string_view, 5> kRead = {"parameters/", "model/", "training/", "train_batch_size",
                                                     "data_parallel"};
  return std::any_of(all_.begin(), all_.end(), [&](const KnownName& known) {
    return known.name == name && known.use == KnownName::Use::kValue &&
           std::any_of(kRead.begin(), kRead.end(), [&](const auto& part) { return known.part.starts_with(part); });
  });
}

void KnownNames::add(const std::string& word, const std::string& part, bool of_launcher, KnownName::Use use) {
  const std::string name = plain_name(word);
  if (name.empty()) return;
  all_.push_back({name, word, part, of_launcher, use});
  if (name.ends_with('*')) {
    prefixes_.push_back(name.substr(0, name.size() - 1));
  } else {
    names_.insert(name);
  }
}

void KnownNames::add(const Texts& words, const std::string& part, bool of_launcher, KnownName::Use use) {
  for (const std::string& word : words) add(word, part, of_launcher, use);
}

void KnownNames::add(const CommandPattern& pattern, const std::string& part) {
  for (const auto* words : {&pattern.flags, &pattern.any_flag, &pattern.bare, &pattern.keys})
    add(*words, part, false, KnownName::Use::kCondition);
  for (const auto* words : {&pattern.without, &pattern.without_keys})
    add(*words, part, false, KnownName::Use::kExcluded);
}

void KnownNames::add(const RecipeValue& value, const std::string& part, const Recipe& recipe) {
  for (const Place& place : value.places) {
    add(place.where, part);
    for (const auto* words : {&place.flags, &place.quotient_flags, &place.copy_flags, &place.size_flags})
      add(*words, part, place.of_launcher);
    add(flags_of(place), part, place.of_launcher);
    for (const auto* keys : {&place.copy_keys, &place.size_keys}) add(*keys, part, is_launchers(recipe, place.file));
    add(place.override_key, part);
    add(place.key, part, is_launchers(recipe, place.file));
  }
}

}  // namespace krigtune::jobs
