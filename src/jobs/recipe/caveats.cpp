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
#include "jobs/recipe/known_names.h"
#include "jobs/recipe/places.h"
#include "jobs/recipe/shipped_recipes.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

// A word that is a number is a value, as in "--offset -1".
bool is_flag_word(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0 &&
         word[1] != '.';
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

// What a recipe knows of the names in a command. What it ignores because another recipe does ("caveats_of") may be a
// name that the other one reads: that is known only if this recipe has some use for it too.
class CommandNames {
 public:
  explicit CommandNames(const Recipe& recipe) : all_(recipe), own_(without_borrowed(recipe)) {
    for (const std::string& base : recipe.bases) bases_.emplace_back(find_recipe(base));
  }

  bool know(const std::string& name) const {
    const auto reads = [&](const KnownNames& base) { return base.reads(name); };
    return own_.knows(name) || (all_.knows(name) && std::none_of(bases_.begin(), bases_.end(), reads));
  }

 private:
  static Recipe without_borrowed(Recipe recipe) {
    for (const std::string& name : recipe.bases) {
      const Texts borrowed = find_recipe(name).ignored;
      std::erase_if(recipe.ignored, [&](const std::string& one) { return is_one_of(one, borrowed); });
    }
    return recipe;
  }

  KnownNames all_;
  KnownNames own_;
  std::vector<KnownNames> bases_;
};

// Returns the unknown ones, as they are written, in their order. What follows "--" is another program's, as the
// launcher's in "axolotl train FILE.yml --launcher torchrun -- --nproc_per_node=2".
Texts unknown_names(const Recipe& recipe, const RecipeJob& job) {
  const CommandNames names(recipe);
  std::set<std::string> seen;
  Texts unknown;
  const auto look_at = [&](const std::string& name, const std::string& written) {
    if (names.know(name) || !seen.insert(name).second) return;
    unknown.push_back(written);
  };
  const Region region = region_of(job.command, false);
  for (std::size_t i = region.begin; i < region.end; ++i) {
    const std::string& word = job.command.argv[i];
    if (word == "--") break;
    if (is_flag_word(word)) {
      look_at(plain_name(word), word.substr(0, word.find('=')));
    } else if (const auto said = override_in(word, job.override_prefix)) {
      look_at(plain_name(said->key), said->key);
    }
  }
  for (const JobFile& file : job.files) {
    for (const auto& [key, value] : file.values) look_at(plain_name(element_free(key)), element_free(key));
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
    if (!states(gap, job, trained)) continue;
    workload::add_once(text, gap.changes_memory() ? caveats.not_modelled : caveats.also_not_modelled);
  }
  const Texts unknown = unknown_names(recipe, job);
  if (unknown.empty()) return caveats;
  caveats.assumed.push_back(fmt::format("{} {} neither time nor memory, because krigtune does not know {}",
                                        join(unknown, ", "), unknown.size() == 1 ? "changes" : "change",
                                        unknown.size() == 1 ? "it" : "them"));
  return caveats;
}

}  // namespace krigtune::jobs
