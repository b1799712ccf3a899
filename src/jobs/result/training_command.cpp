#include "jobs/result/training_command.h"

#include "core/environment.h"
#include "core/files.h"
#include "jobs/recipe/rewriting.h"
#include "jobs/session/varied_command.h"
#include "runner/command.h"
#include "runner/in_place_edit.h"
#include "runner/job_command.h"

namespace krigtune::jobs {
namespace {

constexpr std::int64_t kUsualPort = 29500;  // torchrun's default, because nobody knows which port will be free

runner::JobCommand::Start started(const runner::CommandSpec& spec, const session::Session& session,
                                  const space::Configuration& configuration, const TrainingPlace& place) {
  return runner::JobCommand(spec, session.space)
      .start(configuration, {.dir = place.directory.string(),
                             .config = place.config.string(),
                             .result = place.result.string(),
                             .trial = place.trial,
                             .port = kUsualPort});
}

// The user's own words, with values for the parameters that the recipe does not know.
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
    const std::string name = key.substr(key.rfind('+', 0) == 0 ? 1 : 0);  // "+key" is a missing one
    text = runner::with_value(format, text, name, {value, false}, runner::IfMissing::kAdd);
  }
  return text;
}

// The recipe names the copies of files in {dir}; replaces that by the real directory.
void put_in_place(std::string& word, const std::filesystem::path& directory) {
  constexpr std::string_view kDir = "{dir}/";
  const std::size_t at = word.find(kDir);
  if (at != std::string::npos) word.replace(at, kDir.size(), (directory / "").string());
}

std::string variable_of(const trial::Environment& assigned, const std::string& name) {
  for (const auto& [known, value] : assigned) {
    if (known == name) return value;
  }
  return environment_variable(name).value_or("");
}

// The user's words, with leading assignments separated.
TrainingCommand users_words(const runner::CommandSpec& spec, const Recipe& recipe, const session::Session& session,
                            const space::Configuration& configuration, const TrainingPlace& place) {
  TrainingCommand made;
  made.argv = started(without_recipe(spec, recipe), session, configuration, place).argv;
  const std::size_t assigned = leading_assignments(made.argv);
  for (std::size_t i = 0; i < assigned; ++i) {
    const std::size_t equals = made.argv[i].find('=');
    made.environment.emplace_back(made.argv[i].substr(0, equals), made.argv[i].substr(equals + 1));
  }
  made.argv.erase(made.argv.begin(), made.argv.begin() + static_cast<std::ptrdiff_t>(assigned));
  return made;
}

// Of all equivalent configurations returns the one with the most of the command's own values, so settings without
// effect stay as the user wrote them.
space::Configuration nearest_to_own(const session::Session& session, const OwnValues& own,
                                    space::Configuration configuration) {
  space::Configuration meant = configuration;
  session.space.complete(meant);
  for (const auto& [name, value] : own.configuration) {
    if (session.space.find(name) == nullptr || !configuration.has(name)) continue;
    space::Configuration nearer = configuration;
    nearer.set(name, value);
    space::Configuration meaning = nearer;
    if (session.space.complete(meaning) == space::Exclusion::kNone && meaning == meant)
      configuration = std::move(nearer);
  }
  return configuration;
}

OptimalCommand optimal_of(const runner::CommandSpec& spec, const Recipe& recipe, const TrainingCommand& own,
                          const session::Session& session, const space::Configuration& configuration) {
  const auto variable = [&](const std::string& name) { return variable_of(own.environment, name); };
  const RecipeJob job = read_job(recipe, {own.argv, spec.working_directory, variable, session.cluster.ranks()});
  return optimal_command(recipe, job, nearest_to_own(session, own_values(recipe, job), configuration));
}

TrainingCommand by_recipe(const runner::CommandSpec& spec, const session::Session& session,
                          const space::Configuration& configuration, const TrainingPlace& place) {
  const Recipe recipe = find_recipe(spec.recipe);
  TrainingCommand made = users_words(spec, recipe, session, configuration, place);
  OptimalCommand optimal = optimal_of(spec, recipe, made, session, configuration);
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

bool is_by_recipe(const runner::CommandSpec& spec) { return !spec.recipe.empty() && !spec.users_command.empty(); }

}  // namespace

TrainingCommand training_command(const session::Session& session, const space::Configuration& configuration,
                                 const TrainingPlace& place) {
  const runner::CommandSpec& spec = *runner::command_of(session.runner);
  if (is_by_recipe(spec)) return by_recipe(spec, session, configuration, place);
  runner::JobCommand::Start start = started(spec, session, configuration, place);
  return {std::move(start.argv), std::move(start.environment), std::move(start.files)};
}

TrainingCommand own_command(const session::Session& session, const space::Configuration& baseline,
                            const space::Configuration& best, const TrainingPlace& place) {
  const runner::CommandSpec& spec = *runner::command_of(session.runner);
  if (!is_by_recipe(spec)) return training_command(session, baseline, place);
  const Recipe recipe = find_recipe(spec.recipe);
  TrainingCommand own = users_words(spec, recipe, session, baseline, place);
  for (const auto& [file, values] : optimal_of(spec, recipe, own, session, best).set) {
    const std::filesystem::path path = spec.working_directory / file;
    own.files.emplace_back(path.filename().string(), read_text(path));
  }
  return own;
}

}  // namespace krigtune::jobs
