// Reads earlier runs, and stores what was read with the new run.
#include "run/earlier_run.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "run/run_directory.h"
#include "search/trials/run_effects.h"
#include "trial/outcome.h"

namespace krigtune::run {
namespace {

constexpr const char* kSource = "source";
constexpr const char* kMetric = "metric";
constexpr const char* kMaximize = "maximize";
constexpr const char* kTrialsKey = "trials";
constexpr const char* kConfiguration = "configuration";
constexpr const char* kValue = "value";
constexpr const char* kLogPredicted = "log_predicted";

void add(forecast::EarlierRun& run, const journal::Trial& trial, std::optional<double> value) {
  if (value && std::isfinite(*value)) run.trials.push_back({trial.proposal.configuration, *value, std::nullopt});
}

forecast::EarlierRun of_study(const journal::JournalStudy& study) {
  forecast::EarlierRun run;
  run.metric = study.metric;
  run.maximize = study.maximize;
  for (const journal::Trial& trial : study.trials) {
    const auto* measured = trial.outcome ? std::get_if<trial::Measured>(&*trial.outcome) : nullptr;
    if (measured != nullptr) add(run, trial, measured->metrics.at(study.metric));
  }
  return run;
}

void add_predictions(forecast::EarlierRun& run, const session::Session& session) {
  const session::MemoryFilter filter(session);
  const auto physics = forecast::make_physics_prior(session, filter);
  if (!physics) return;
  std::vector<space::Configuration> configurations;
  for (const forecast::EarlierTrial& trial : run.trials) configurations.push_back(trial.configuration);
  const Eigen::VectorXd predicted = physics->log_values(configurations);
  for (std::size_t i = 0; i < run.trials.size(); ++i) {
    run.trials[i].log_predicted = predicted(static_cast<Eigen::Index>(i));
  }
}

forecast::EarlierRun of_directory(const std::filesystem::path& directory) {
  RunRecord record;
  try {
    record = load_run(directory);
  } catch (const UserError&) {
    // The session's table or model file is gone, but the measurements are not.
    if (!std::filesystem::exists(journal_path(directory))) throw;
    return of_study(journal::read_study(journal_path(directory), ""));
  }
  forecast::EarlierRun run;
  run.metric = record.session.objective.metric;
  run.maximize = record.session.objective.maximize;
  const search::History history = journal::read_journal(journal_path(directory));
  const search::RunEffects effects(record.session.objective, history);
  for (const journal::Trial& trial : history) add(run, trial, effects.value_of(trial));
  add_predictions(run, record.session);
  return run;
}

// Reads "FILE" or "FILE:STUDY".
forecast::EarlierRun of_file(const std::string& source) {
  if (std::filesystem::exists(source)) return of_study(journal::read_study(source, ""));
  const std::size_t colon = source.rfind(':');
  const std::string file = source.substr(0, colon);
  if (colon == std::string::npos || !std::filesystem::is_regular_file(file)) {
    throw UserError("there is no such directory or file", "name a run directory, or a journal of Optuna's");
  }
  return of_study(journal::read_study(file, source.substr(colon + 1)));
}

void check(const forecast::EarlierRun& run, const session::Session& session) {
  if (run.trials.empty()) throw UserError("it has no ok trial", "name a run that measured something");
  const std::string& ours = session.objective.metric;
  const bool alike =
      run.metric.empty() || run.metric == ours || (trial::tells_speed(run.metric) && trial::tells_speed(ours));
  if (!alike) {
    throw UserError(fmt::format("it measured '{}', this session '{}'", run.metric, ours),
                    "name a run with the same objective");
  }
  if (!forecast::shared_parameters(session.space, run).empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : run.trials.front().configuration) names.push_back(name);
  throw UserError(fmt::format("no parameter of the space varied in it; it has {}", join(names, ", ")),
                  "name a run that shares parameters with this session");
}

Json earlier_trial_json(const forecast::EarlierTrial& trial) {
  Json json = {{kConfiguration, space::to_json(trial.configuration)}, {kValue, trial.value}};
  if (trial.log_predicted) json[kLogPredicted] = *trial.log_predicted;
  return json;
}

forecast::EarlierTrial earlier_trial_from(const Json& json, const std::string& source, const std::string& pointer) {
  JsonObject block(json, source, pointer);
  forecast::EarlierTrial trial;
  trial.configuration =
      space::configuration_from_json(block.require(kConfiguration), source, block.pointer(kConfiguration));
  const std::optional<double> value = block.optional_number(kValue);
  if (!value) block.fail(kValue, "a number was expected", "restore session.json");
  trial.value = *value;
  trial.log_predicted = block.optional_number(kLogPredicted);
  block.finish();
  return trial;
}

}  // namespace

forecast::EarlierRun read_earlier_run(const std::string& source, const session::Session& session,
                                      const std::string& where) {
  try {
    forecast::EarlierRun run = std::filesystem::is_directory(source) ? of_directory(source) : of_file(source);
    run.source = source;
    check(run, session);
    return run;
  } catch (const UserError& error) {
    throw UserError(fmt::format("{} {}: {}", where, source, error.what()), "");
  }
}

Json to_json(const forecast::EarlierRuns& runs) {
  Json json = Json::array();
  for (const forecast::EarlierRun& run : runs) {
    Json trials = Json::array();
    for (const forecast::EarlierTrial& trial : run.trials) trials.push_back(earlier_trial_json(trial));
    json.push_back(
        {{kSource, run.source}, {kMetric, run.metric}, {kMaximize, run.maximize}, {kTrialsKey, std::move(trials)}});
  }
  return json;
}

forecast::EarlierRuns earlier_runs_from_json(const Json& json, const std::string& source, const std::string& pointer) {
  forecast::EarlierRuns runs;
  if (!json.is_array()) throw UserError(fmt::format("{}: {}: a list was expected", source, pointer), "restore it");
  for (const Json& item : json) {
    const std::string here = fmt::format("{}/{}", pointer, runs.size());
    JsonObject block(item, source, here);
    forecast::EarlierRun run;
    run.source = block.text(kSource, "");
    run.metric = block.text(kMetric, "");
    run.maximize = block.boolean(kMaximize, true);
    for (const Json& trial : block.require(kTrialsKey)) {
      run.trials.push_back(
          earlier_trial_from(trial, source, fmt::format("{}/{}/{}", here, kTrialsKey, run.trials.size())));
    }
    block.finish();
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace krigtune::run
