#include "krigtune/tuner/best.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "krigtune/core/statistics.h"
#include "krigtune/tuner/run_effects.h"
#include "model/change_study.h"
#include "model/trial_model.h"

namespace krigtune {
namespace {

constexpr double kWorthwhileGain = 1.01;  // of the rule "patience"

// The mean of each configuration's measurements, trial by trial, on the scale of the latest run.
class RunningMeans {
 public:
  explicit RunningMeans(const RunEffects& effects) : effects_(effects) {}

  void add(const Objective& objective, const History& history, std::size_t index) {
    const double value = *effects_.value_of(history[index]);
    if (!std::isfinite(value)) return;
    const auto [its, is_new] = entry_.emplace(history[index].proposal.configuration.text(), means_.size());
    if (is_new) means_.push_back({0.0, 0, index});
    MeasuredMean& mean = means_[its->second];
    ++mean.measurements;
    mean.value += (value - mean.value) / mean.measurements;
    if (objective.better(value, *effects_.value_of(history[mean.best]))) mean.best = index;
  }
  const std::vector<MeasuredMean>& all() const { return means_; }
  std::optional<double> best(const Objective& objective) const {
    std::optional<double> best;
    for (const MeasuredMean& mean : means_) {
      if (!best || objective.better(mean.value, *best)) best = mean.value;
    }
    return best;
  }

 private:
  const RunEffects& effects_;
  std::vector<MeasuredMean> means_;
  std::unordered_map<std::string, std::size_t> entry_;
};

RunningMeans means_of(const Objective& objective, const History& history, const RunEffects& effects) {
  RunningMeans means(effects);
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (value_of(history[i], objective)) means.add(objective, history, i);
  }
  return means;
}

}  // namespace

std::vector<MeasuredMean> measured_means(const Objective& objective, const History& history) {
  const RunEffects effects(objective, history);
  return means_of(objective, history, effects).all();
}

std::optional<double> best_value(const Objective& objective, const History& history) {
  const RunEffects effects(objective, history);
  return means_of(objective, history, effects).best(objective);
}

std::optional<Trial> reference_trial(const Objective& objective, const History& history) {
  // An interrupted baseline is asked again, under another number.
  std::optional<Trial> first_ok;
  for (const Trial& trial : history) {
    if (!value_of(trial, objective)) continue;
    if (trial.proposal.strategy == kBaselineStrategy) return trial;
    if (!first_ok) first_ok = trial;
  }
  return first_ok;
}

int trials_without_gain(const Objective& objective, const History& history) {
  const RunEffects effects(objective, history);
  RunningMeans means(effects);
  std::optional<double> last_gain;
  int without = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (!history[i].outcome || !counts(history[i])) continue;
    if (value_of(history[i], objective)) means.add(objective, history, i);
    const std::optional<double> best = means.best(objective);
    if (best && (!last_gain || gain_over(objective, *best, *last_gain) > kWorthwhileGain)) {
      last_gain = best;
      without = 0;
    } else if (last_gain) {
      ++without;
    }
  }
  return without;
}

double gain_over(const Objective& objective, double value, double reference) {
  return objective.maximize ? value / reference : reference / value;
}

namespace {

// Mean of the measurements, and its standard error: by their scatter, but for a single one, which states its own.
void fill_evidence(const Objective& objective, const History& history, const std::vector<std::size_t>& trials,
                   const RunEffects& effects, Recommendation& best) {
  const auto count = static_cast<double>(trials.size());
  std::optional<double> best_of_them;
  for (const std::size_t index : trials) {
    const double value = *effects.value_of(history[index]);
    best.value += value / count;
    if (best_of_them && !objective.better(value, *best_of_them)) continue;
    best_of_them = value;
    best.trial = history[index].number;
  }
  best.measurements = static_cast<int>(trials.size());
  const Trial& first = history[trials.front()];
  best.value_sem = std::get<Measured>(*first.outcome).value_sem * effects.factor(first.proposal.run);
  if (trials.size() < 2) return;
  double squares = 0.0;
  for (const std::size_t index : trials) {
    const double off = *effects.value_of(history[index]) - best.value;
    squares += off * off;
  }
  best.value_sem = std::sqrt(squares / (count - 1.0) / count);
}

}  // namespace

std::optional<Recommendation> recommend(const Session& session, const Candidates& candidates, const History& history,
                                        std::uint64_t seed) {
  const Objective& objective = session.objective;
  TrialModel model(objective, candidates, history);
  if (!model.has_values()) return std::nullopt;
  Rng rng(seed, static_cast<std::uint64_t>(counted_trials(history)));
  model.fit(rng);
  const AchievedValues achieved = model.achieved(values_are_exact(session));
  Eigen::Index row = 0;
  const double mean = achieved.mean().maxCoeff(&row);
  const double stddev = std::sqrt(std::max(achieved.covariance()(row, row), 0.0));

  Recommendation best;
  const std::vector<std::size_t>& trials = model.measured().trials[static_cast<std::size_t>(row)];
  best.configuration = history[trials.front()].proposal.configuration;
  const RunEffects effects(objective, history);
  fill_evidence(objective, history, trials, effects, best);
  best.posterior_mean = model.scale().from_latent(mean);
  const double one_end = model.scale().from_latent(mean - kNormal975 * stddev);
  const double other_end = model.scale().from_latent(mean + kNormal975 * stddev);
  best.lower_95 = std::min(one_end, other_end);
  best.upper_95 = std::max(one_end, other_end);
  const std::optional<Trial> reference = reference_trial(objective, history);
  best.reference_trial = reference->number;
  best.reference_value = *effects.value_of(*reference);
  best.gain = gain_over(objective, best.value, best.reference_value);
  const Configuration& before = session.baseline ? *session.baseline : reference->proposal.configuration;
  best.changes = changes_between(model, candidates, history, before, best.configuration);
  return best;
}

}  // namespace krigtune
