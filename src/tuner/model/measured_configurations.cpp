// Trials of one configuration are one observation: the plain mean of their latent values, each brought to the scale of
// the latest run (run_effects.cpp). What runs differ by outweighs
// what each states of itself (trial_noise.cpp), so that weights by stated errors would be weights by chance.
#include "model/measured_configurations.h"

#include <cmath>
#include <unordered_map>

namespace krigtune {
namespace {

struct Sums {
  double values = 0.0;
  double variances = 0.0;
  Eigen::RowVectorXd runs;
};

Sums sums_of(const Objective& objective, const History& history, const std::vector<std::size_t>& trials,
             const ObjectiveScale& scale, const TrialNoise& noise, const RunEffects& effects) {
  Sums sums;
  sums.runs = Eigen::RowVectorXd::Zero(effects.columns());
  for (const std::size_t index : trials) {
    const double value = *value_of(history[index], objective);
    const double sem = noise.total_sem(value, std::get<Measured>(*history[index].outcome).value_sem);
    const int run = history[index].proposal.run;
    sums.values += scale.to_latent(value) + effects.shift(run);
    sums.runs += effects.uncertainty(run);
    sums.variances += scale.latent_variance(value, sem);
  }
  return sums;
}

}  // namespace

MeasuredConfigurations measured_configurations(const Objective& objective, const Candidates& candidates,
                                               const History& history, const RunEffects& effects) {
  MeasuredConfigurations all;
  std::unordered_map<std::string, std::size_t> entry;
  std::vector<Configuration> configurations;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Trial& trial = history[i];
    const auto value = trial.outcome && counts(trial) ? value_of(trial, objective) : std::nullopt;
    if (!value || !std::isfinite(*value)) continue;
    const auto [its, is_new] = entry.emplace(candidates.key(trial.proposal.configuration), all.trials.size());
    if (is_new) {
      all.trials.emplace_back();
      configurations.push_back(trial.proposal.configuration);
    }
    all.trials[its->second].push_back(i);
    all.stated = all.stated && std::get<Measured>(*trial.outcome).value_sem > 0.0;
  }
  const ObjectiveScale scale(objective, history);
  const TrialNoise noise(objective, candidates, history);
  const auto count = static_cast<Eigen::Index>(configurations.size());
  all.latent = {candidates.encode(configurations), Eigen::VectorXd(count), Eigen::VectorXd(count)};
  all.one_more.resize(count);
  all.runs.resize(count, effects.columns());
  for (Eigen::Index row = 0; row < count; ++row) {
    const std::vector<std::size_t>& trials = all.trials[static_cast<std::size_t>(row)];
    const auto repeats = static_cast<double>(trials.size());
    const Sums sums = sums_of(objective, history, trials, scale, noise, effects);
    all.latent.values(row) = sums.values / repeats;
    all.latent.variance(row) = sums.variances / (repeats * repeats);
    all.one_more(row) = sums.variances / repeats;
    all.runs.row(row) = sums.runs / repeats;
  }
  return all;
}

bool values_are_exact(const Session& session) {
  return session.table != nullptr && std::get<ReplaySpec>(session.runner).repeats != ReplaySpec::Repeats::kCycle;
}

}  // namespace krigtune
