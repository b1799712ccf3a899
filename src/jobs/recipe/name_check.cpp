#include "jobs/recipe/name_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/text.h"
#include "jobs/recipe/known_names.h"
#include "jobs/recipe/shipped_recipes.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

// Removes the "no_" of a switch that is turned off: "no_bf16", "checkpoint.no_enable".
std::string affirmed(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::size_t last = dot == std::string::npos ? 0 : dot + 1;
  return name.compare(last, 3, "no_") == 0 ? name.substr(0, last) + name.substr(last + 3) : name;
}

// The names of an installed framework.
class TheirNames {
 public:
  explicit TheirNames(const FrameworkNames& framework) : open_(framework.open) {
    for (const auto* names : {&framework.names, &framework.launcher_names}) {
      for (const Texts& spellings : *names) {
        for (const std::string& name : spellings) add(plain_name(name));
      }
    }
    for (std::string& key : open_) key = plain_name(key);
  }

  bool have(const std::string& name) const {
    const std::string key = element_free(name);
    const auto is_below = [&](const std::string& open) { return open.empty() || key.starts_with(open + "."); };
    return names_.contains(key) || names_.contains(affirmed(key)) || std::any_of(open_.begin(), open_.end(), is_below);
  }

 private:
  void add(const std::string& name) {  // with the groups that it is in: "training" of "training.seed"
    for (std::size_t dot = name.size(); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
      names_.insert(name.substr(0, dot));
    }
  }

  std::set<std::string> names_;
  Texts open_;
};

bool matches(const std::string& name, const std::string& pattern) {
  const std::string plain = plain_name(pattern);
  if (!plain.ends_with('*')) return name == plain;
  return name.starts_with(plain.substr(0, plain.size() - 1));
}

std::set<std::string> inherited_names(const Recipe& recipe) {
  std::set<std::string> names;
  for (const std::string& base : recipe.bases) {
    const KnownNames others(find_recipe(base));
    for (const KnownName& known : others.all()) names.insert(known.name);
  }
  return names;
}

// Names of a launcher can only be compared where the recipe says how to ask for them.
bool is_comparable(const KnownName& known, const FrameworkNames& framework) {
  return known.name.find('*') == std::string::npos && known.use != KnownName::Use::kExcluded && known.part != "files" &&
         (!known.of_launcher || !framework.launcher_names.empty());
}

void find_gone(const Recipe& recipe, const KnownNames& known, const FrameworkNames& framework, NameCheck& check) {
  const TheirNames theirs(framework);
  const std::set<std::string> inherited = inherited_names(recipe);
  std::map<std::string, std::size_t> positions;
  std::set<std::string> elsewhere;
  for (const KnownName& one : known.all()) {
    if (!is_comparable(one, framework) || inherited.contains(one.name) || theirs.have(one.name)) continue;
    const auto& others = recipe.installed.elsewhere;
    if (std::any_of(others.begin(), others.end(), [&](const auto& other) { return matches(one.name, other.first); })) {
      if (elsewhere.insert(one.name).second) check.elsewhere.push_back(one.written);
      continue;
    }
    const auto [position, is_new] = positions.emplace(one.name, check.gone.size());
    if (is_new) check.gone.push_back({one.written.substr(0, one.written.find(' ')), {}});
    Texts& parts = check.gone[position->second].parts;
    if (!is_one_of(one.part, parts)) parts.push_back(one.part);
  }
}

bool mentions(const KnownNames& known, const std::string& spelling) {
  const std::string name = plain_name(spelling);
  return known.knows_exactly(name) || known.knows_exactly(affirmed(name)) || known.knows_exactly("no_" + name) ||
         known.knows_below(name);
}

void sort_names(const KnownNames& known, const FrameworkNames& framework, NameCheck& check) {
  for (const Texts& spellings : framework.names) {
    const auto is_any = [&](const auto& predicate) {
      return std::any_of(spellings.begin(), spellings.end(), predicate);
    };
    if (is_any([&](const std::string& name) { return mentions(known, name); })) {
      ++check.sorted;
    } else if (is_any([&](const std::string& name) { return known.knows(plain_name(name)); })) {
      check.by_pattern.push_back(spellings.front());
    } else {
      check.unsorted.push_back(spellings.front());
    }
  }
}

std::string packages_text(const RecipeCheck& check) {
  Texts texts;
  for (const RecipeCheck::Package& package : check.packages) {
    const bool is_same = package.installed == package.compared;
    const std::string compared = package.compared.empty() ? "never compared" : "last compared with " + package.compared;
    texts.push_back(fmt::format("{} {}{}", package.name, package.installed, is_same ? "" : " (" + compared + ")"));
  }
  return join(texts, ", ");
}

std::string list_text(const char* title, const Texts& names) {
  if (names.empty()) return "";
  std::string text = fmt::format("\n{}:\n", title);
  for (const std::string& name : names) text += "  " + name + "\n";
  return text;
}

}  // namespace

NameCheck check_names(const Recipe& recipe, const FrameworkNames& framework) {
  const KnownNames known(recipe);
  NameCheck check;
  sort_names(known, framework, check);
  if (framework.troubles.empty()) find_gone(recipe, known, framework, check);
  return check;
}

RecipeCheck check_recipe(const Recipe& recipe, FrameworkNames framework) {
  RecipeCheck check;
  check.recipe = recipe.name;
  check.written_for = recipe.versions;
  const auto& compared = recipe.installed.packages;
  for (const auto& installed : framework.packages) {
    const auto& [package, version] = installed;
    const auto found =
        std::find_if(compared.begin(), compared.end(), [&](const auto& one) { return one.first == installed.first; });
    check.packages.push_back({package, version, found == compared.end() ? "" : found->second});
  }
  check.names = check_names(recipe, framework);
  check.framework = std::move(framework);
  return check;
}

std::string check_text(const RecipeCheck& check) {
  const NameCheck& names = check.names;
  std::string text =
      fmt::format("{}, written for {}\nInstalled: {}\n", check.recipe, check.written_for, packages_text(check));
  text += fmt::format("{} of the framework: {} in the recipe, {} only by a pattern, {} not; {} of the recipe gone\n",
                      counted(static_cast<std::int64_t>(check.framework.names.size()), "name"), names.sorted,
                      names.by_pattern.size(), names.unsorted.size(), names.gone.size());
  Texts gone;
  for (const GoneName& one : names.gone) gone.push_back(fmt::format("{}  ({})", one.written, join(one.parts, ", ")));
  text += list_text("Gone: the recipe has them, the framework does not", gone);
  text += list_text("New: the framework has them, the recipe does not", names.unsorted);
  text += list_text("Could not be asked", check.framework.troubles);
  return text;
}

Json to_json(const RecipeCheck& check) {
  Json json = {{"recipe", check.recipe}, {"written_for", check.written_for}, {"packages", Json::array()}};
  for (const RecipeCheck::Package& package : check.packages) {
    json["packages"].push_back({{"name", package.name},
                                {"installed", package.installed},
                                {"compared", package.compared.empty() ? Json() : Json(package.compared)}});
  }
  json["sorted"] = check.names.sorted;
  json["by_pattern"] = check.names.by_pattern;
  json["new"] = check.names.unsorted;
  json["gone"] = Json::array();
  for (const GoneName& one : check.names.gone) json["gone"].push_back({{"name", one.written}, {"parts", one.parts}});
  json["elsewhere"] = check.names.elsewhere;
  json["framework"] = to_json(check.framework);
  return json;
}

}  // namespace krigtune::jobs
