// krigtune recipes: lists the kinds of training jobs that krigtune knows, and how each receives its parameters.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "jobs/recipe/recipe.h"
#include "jobs/recipe/recipe_page.h"
#include "jobs/recipe/shipped_recipes.h"
#include "programs/krigtune/document.h"

namespace krigtune::cli {
namespace {

void declare_recipes(boost::program_options::options_description& /*options*/) {}

void list_recipes(const Context& context) {
  std::size_t width = 0;
  for (const std::string& name : jobs::shipped_names()) width = std::max(width, name.size());
  for (const jobs::Recipe& recipe : jobs::shipped_recipes()) {
    context.console.out << fmt::format("{:<{}}  {}\n", recipe.name, width, recipe.summary);
  }
}

int recipes(const Context& context) {
  const std::string& name = context.arguments.operand();
  const bool as_json = context.arguments.flag("json");
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
          "--json prints the recipe itself, which you can edit into one of your own.",
          declare_recipes,
          recipes,
          "",
          jobs::shipped_names()};
}

}  // namespace krigtune::cli
