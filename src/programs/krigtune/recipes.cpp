// krigtune recipes: lists the kinds of training jobs that krigtune knows, and how each receives its parameters;
// compares them with the frameworks that are installed.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"
#include "jobs/installed/ask_python.h"
#include "jobs/recipe/name_check.h"
#include "jobs/recipe/recipe.h"
#include "jobs/recipe/recipe_page.h"
#include "jobs/recipe/shipped_recipes.h"
#include "programs/krigtune/document.h"
#include "report/table.h"

namespace krigtune::cli {
namespace {

void declare_recipes(boost::program_options::options_description& options) {
  options.add_options()(
      "check", typed_value_named("PYTHON"),
      "compare the recipes, or NAME, with the frameworks that are installed for this Python: their flags and keys");
}

void list_recipes(const Context& context) {
  std::size_t width = 0;
  for (const std::string& name : jobs::shipped_names()) width = std::max(width, name.size());
  for (const jobs::Recipe& recipe : jobs::shipped_recipes()) {
    context.console.out << fmt::format("{:<{}}  {}\n", recipe.name, width, recipe.summary);
  }
}

// Returns nothing if the Python does not have the framework.
std::optional<jobs::RecipeCheck> checked(const jobs::Recipe& recipe, const std::string& python) {
  jobs::FrameworkNames names = jobs::ask_framework(recipe.installed, python, jobs::kAskTimeoutS, SystemClock());
  if (names.packages.empty()) return std::nullopt;
  return jobs::check_recipe(recipe, std::move(names));
}

std::string packages_of(const jobs::Recipe& recipe) {
  std::vector<std::string> names;
  for (const auto& [name, version] : recipe.installed.packages) names.push_back(name);
  return join(names, ", ");
}

std::vector<jobs::RecipeCheck> check_one(const jobs::Recipe& recipe, const std::string& python) {
  if (recipe.installed.sources.empty())
    throw UserError(fmt::format("the recipe {} does not say how its framework is asked", recipe.name),
                    "add \"installed\" to it: krigtune recipes torchtitan --json shows one");
  std::optional<jobs::RecipeCheck> check = checked(recipe, python);
  if (!check)
    throw UserError(fmt::format("--check: '{}' does not have {}", python, packages_of(recipe)),
                    "name the Python that trains");
  if (check->framework.names.empty() && !check->framework.troubles.empty())
    throw UserError(fmt::format("--check: {} {} could not be asked: {}", check->packages.front().name,
                                check->packages.front().installed, check->framework.troubles.front()),
                    "");
  return {std::move(*check)};
}

std::vector<jobs::RecipeCheck> check_all(const std::string& python) {
  std::vector<jobs::RecipeCheck> checks;
  for (const jobs::Recipe& recipe : jobs::shipped_recipes()) {
    if (recipe.installed.sources.empty()) continue;
    if (std::optional<jobs::RecipeCheck> check = checked(recipe, python)) checks.push_back(std::move(*check));
  }
  if (checks.empty())
    throw UserError(fmt::format("--check: '{}' has no framework of any recipe", python), "name the Python that trains");
  return checks;
}

report::Cell count_cell(std::size_t count) {
  return report::number_cell(static_cast<double>(count), std::to_string(count));
}

report::Table check_table(const std::vector<jobs::RecipeCheck>& checks) {
  report::Table table;
  table.name = "checks";
  table.columns = {{"recipe", "recipe"},
                   {"package", "package"},
                   {"installed", "installed"},
                   {"compared", "last compared"},
                   {"names", "names", true},
                   {"sorted", "in the recipe", true},
                   {"by_pattern", "by pattern", true},
                   {"new", "new", true},
                   {"gone", "gone", true}};
  for (const jobs::RecipeCheck& check : checks) {
    const jobs::RecipeCheck::Package& package = check.packages.front();
    table.rows.push_back({report::text_cell(check.recipe), report::text_cell(package.name),
                          report::text_cell(package.installed), report::text_cell(package.compared),
                          count_cell(check.framework.names.size()), count_cell(check.names.sorted),
                          count_cell(check.names.by_pattern.size()), count_cell(check.names.unsorted.size()),
                          count_cell(check.names.gone.size())});
    for (const std::string& trouble : check.framework.troubles)
      table.notes.push_back(fmt::format("{}: could not be asked: {}", check.recipe, trouble));
  }
  table.notes.push_back("krigtune recipes NAME --check PYTHON names the new ones and those that are gone.");
  return table;
}

int check_recipes(const Context& context, const std::string& name, const std::string& python) {
  const std::vector<jobs::RecipeCheck> checks =
      name.empty() ? check_all(python) : check_one(jobs::find_recipe(name), python);
  if (context.arguments.flag("json")) {
    Json document = new_document("recipes");
    document["checks"] = Json::array();
    for (const jobs::RecipeCheck& check : checks) document["checks"].push_back(jobs::to_json(check));
    print(context, document);
  } else if (name.empty()) {
    context.console.out << report::render(check_table(checks), report::TableFormat::kTable);
  } else {
    context.console.out << jobs::check_text(checks.front());
  }
  return ExitCode::kDone;
}

int recipes(const Context& context) {
  const std::string& name = context.arguments.operand();
  const bool as_json = context.arguments.flag("json");
  if (const std::optional<std::string> python = context.arguments.text("check"))
    return check_recipes(context, name, *python);
  if (!name.empty()) {
    const jobs::Recipe recipe = jobs::find_recipe(name);
    if (!as_json) {
      context.console.out << jobs::recipe_page(recipe);
      return ExitCode::kDone;
    }
    Json document = new_document("recipes");
    document["recipe"] = recipe.json;
    print(context, document);
  } else if (as_json) {
    Json document = new_document("recipes");
    document["recipes"] = Json::array();
    for (const jobs::Recipe& recipe : jobs::shipped_recipes()) document["recipes"].push_back(recipe.json);
    print(context, document);
  } else {
    list_recipes(context);
  }
  return ExitCode::kDone;
}

}  // namespace

Command recipes_command() {
  return {"recipes",
          "[NAME]",
          "Lists the kinds of training jobs that krigtune knows",
          "Without NAME it prints one line for each recipe. NAME is the name of a recipe, or the path "
          "of your own recipe file: recipes then shows how the command is recognised, where its "
          "parameters are set, which of them trials change, what is measured, and what you should know. "
          "--json prints the recipe itself, which you can edit into one of your own.\n\n"
          "--check compares a recipe with the framework itself: it imports what is installed for that Python "
          "and asks its parsers and configuration classes for their names. It lists the flags and keys of the recipe "
          "that the framework does not have, and those of the framework that the recipe does not sort. "
          "Without NAME it is a table of all frameworks that this Python has.",
          declare_recipes,
          recipes,
          "",
          jobs::shipped_names()};
}

}  // namespace krigtune::cli
