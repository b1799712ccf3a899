#include "jobs/result/training_command.h"

#include <cstdlib>

#include "core/files.h"
#include "jobs/recipe/rewriting.h"
#include "jobs/session/varied_command.h"
#include "runner/command.h"
#include "runner/in_place_edit.h"
#include "runner/job_command.h"

namespace krigtune::jobs {
namespace {

constexpr std::int64_t kUsualPort = 29500;  // torchrun's own: which one is free then, nobody knows

runner::JobCommand::Start started(const runner::CommandSpec& spec, const session::Session& session,
                                  const space::Configuration& configuration, const TrainingPlace& place) {
  return runner::JobCommand(spec, session.space)
      .start(configuration, {.dir = place.directory.string(),
                             .config = place.config.string(),
                             .result = place.result.string(),
                             .trial = place.trial,
                             .port = kUsualPort});
}

// The user's own words, with the values of what the recipe does not know.
runner::CommandSpec without_recipe(const runner::CommandSpec& spec, const Recipe& recipe) {
  runner::CommandSpec own = spec;
  own.argv = spec.users_command;
  own.environment.clear();
  own.job.set.clear();
  std::erase_if(own.job.flags, [&](const runner::JobFlag& flag) { return recipe.find(flag.parameter) != nullptr; });
  return own;
}

std::string changed_file(const std::filesystem::path& file,
                         const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text = read_text(file);
  const runner::FileFormat format = runner::file_format_of(file).value_or(runner::FileFormat::kYaml);
  for (const auto& [key, value] : values) {
    text = runner::with_value(format, text, key, {value, false}, runner::IfMissing::kAdd);
  }
  return text;
}

// The recipe names the copies of files in {dir}.
void put_in_place(std::string& word, const std::filesystem::path& directory) {
  constexpr std::string_view kDir = "{dir}/";
  const std::size_t at = word.find(kDir);
  if (at != std::string::npos) word.replace(at, kDir.size(), (directory / "").string());
}

std::string variable_of(const trial::Environment& assigned, const std::string& name) {
  for (const auto& [known, value] : assigned) {
    if (known == name) return value;
  }
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

TrainingCommand by_recipe(const runner::CommandSpec& spec, const session::Session& session,
                          const space::Configuration& configuration, const TrainingPlace& place) {
  const Recipe recipe = find_recipe(spec.recipe);
  std::vector<std::string> words = started(without_recipe(spec, recipe), session, configuration, place).argv;
  TrainingCommand made;
  const std::size_t assigned = leading_assignments(words);
  for (std::size_t i = 0; i < assigned; ++i) {
    const std::size_t equals = words[i].find('=');
    made.environment.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(assigned));
  const RecipeJob job = read_job(
      recipe, {words, spec.working_directory,
               [&](const std::string& name) { return variable_of(made.environment, name); }, session.cluster.ranks()});
  OptimalCommand optimal = optimal_command(recipe, job, configuration);
  for (auto& [name, value] : optimal.env) {
    std::erase_if(made.environment, [&, &name = name](const auto& known) { return known.first == name; });
    made.environment.emplace_back(name, value);
  }
  made.argv = std::move(optimal.argv);
  for (const auto& [file, values] : optimal.set) {
    const std::filesystem::path path = spec.working_directory / file;
    made.files.emplace_back(path.filename().string(), changed_file(path, values));
    for (std::string& word : made.argv) put_in_place(word, place.directory);
  }
  return made;
}

}  // namespace

TrainingCommand training_command(const session::Session& session, const space::Configuration& configuration,
                                 const TrainingPlace& place) {
  const auto& spec = std::get<runner::CommandSpec>(session.runner);
  if (!spec.recipe.empty() && !spec.users_command.empty()) return by_recipe(spec, session, configuration, place);
  runner::JobCommand::Start start = started(spec, session, configuration, place);
  return {std::move(start.argv), std::move(start.environment), std::move(start.files)};
}

}  // namespace krigtune::jobs
