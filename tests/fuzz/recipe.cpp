#include <string_view>
#include <vector>

#include "core/json.h"
#include "fuzz/fuzz.h"
#include "jobs/recipe/rewriting.h"
#include "trial/temporary_directory.h"

namespace {

using namespace krigtune;

// The words of the first line with spaces between them.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) words.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

void make_all(const jobs::Recipe& recipe, const jobs::RecipeJob& job) {
  const jobs::OwnValues own = jobs::own_values(recipe, job);
  const std::vector<std::string> varied = jobs::varied_by_default(recipe, job);
  std::string why;
  static_cast<void>(jobs::model_facts(recipe, job, &why));
  static_cast<void>(jobs::space_block(recipe, job, varied).dump());
  static_cast<void>(jobs::fixed_block(recipe, job, varied).dump());
  static_cast<void>(jobs::constraints_block(recipe, job, varied).dump());
  static_cast<void>(jobs::runner_block(recipe, job, varied).block.dump());
  static_cast<void>(jobs::optimal_command(recipe, job, own.configuration));
}

}  // namespace

// A command in one line; the recipe; and, behind a line of three dashes, the file job.yaml, job.toml or job.json that
// the command names.
KRIGTUNE_FUZZ(recipe) {
  const std::size_t command_end = std::min(text.find('\n'), text.size());
  const std::size_t recipe_end = std::min(text.find("\n---\n", command_end), text.size());
  const std::string recipe_text = text.substr(command_end, recipe_end - command_end);
  static const krigtune::TemporaryDirectory directory;
  if (recipe_end < text.size()) {
    for (const char* name : {"job.yaml", "job.toml", "job.json"}) directory.write(name, text.substr(recipe_end + 5));
  }
  const krigtune::jobs::Recipe recipe =
      krigtune::jobs::read_recipe(krigtune::parse_json(recipe_text, "recipe.json"), "recipe.json");
  const std::vector<std::string> words = words_of(std::string_view(text).substr(0, command_end));
  if (words.empty()) return;
  static_cast<void>(krigtune::jobs::recognise(words, {recipe}));
  const auto unset = [](const std::string&) { return std::string(); };
  make_all(recipe, krigtune::jobs::read_job(recipe, {words, directory.path(), unset, std::nullopt}));
}
