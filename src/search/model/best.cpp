#include "search/model/best.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "core/statistics.h"
#include "search/model/front.h"
#include "search/model/limit_models.h"
#include "search/model/trial_model.h"
#include "search/trials/run_effects.h"
#include "space/well_known.h"

namespace krigtune::search {
namespace {

constexpr double kWorthwhileGain = 1.01;  // of the rule "patience"

// The running mean of each configuration's measurements, on the scale of the latest run.
class RunningMeans {
 public:
  explicit RunningMeans(const RunEffects& effects) : effects_(effects) {}

  void add(const session::Objective& objective, const History& history, std::size_t index) {
    const double value = *effects_.value_of(history[index]);
    if (!std::isfinite(value)) return;
    const auto [its, is_new] = entry_.emplace(history[index].proposal.configuration.text(), means_.size());
    if (is_new) means_.push_back({0.0, 0, index});
    MeasuredMean& mean = means_[its->second];
    ++mean.measurements;
    mean.value += (value - mean.value) / mean.measurements;
    if (objective.better(value, *effects_.value_of(history[mean.best]))) mean.best = index;
    if (best_ && *best_ == its->second && !is_new) {
      find_best(objective);  // the mean may have become worse
    } else if (!best_ || objective.better(mean.value, means_[*best_].value)) {
      best_ = its->second;
    }
  }
  const std::vector<MeasuredMean>& all() const { return means_; }
  std::optional<double> best() const { return best_ ? std::optional(means_[*best_].value) : std::nullopt; }

 private:
  void find_best(const session::Objective& objective) {
    for (std::size_t i = 0; i < means_.size(); ++i) {
      if (objective.better(means_[i].value, means_[*best_].value)) best_ = i;
    }
  }

  const RunEffects& effects_;
  std::vector<MeasuredMean> means_;
  std::optional<std::size_t> best_;  ///< index into means_
  std::unordered_map<std::string, std::size_t> entry_;
};

RunningMeans means_of(const session::Objective& objective, const History& history, const RunEffects& effects) {
  RunningMeans means(effects);
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (value_of(history[i], objective)) means.add(objective, history, i);
  }
  return means;
}

}  // namespace

std::vector<MeasuredMean> measured_means(const session::Objective& objective, const History& history) {
  const RunEffects effects(objective, history);
  return means_of(objective, history, effects).all();
}

std::optional<double> best_value(const session::Objective& objective, const History& history) {
  const RunEffects effects(objective, history);
  return means_of(objective, history, effects).best();
}

std::optional<journal::Trial> reference_trial(const session::Objective& objective, const History& history) {
  // An interrupted baseline is asked again under another number.
  std::optional<journal::Trial> first_ok;
  for (const journal::Trial& trial : history) {
    if (!value_of(trial, objective)) continue;
    if (trial.proposal.strategy == kBaselineStrategy) return trial;
    if (!first_ok) first_ok = trial;
  }
  return first_ok;
}

int trials_without_gain(const session::Objective& objective, const History& history) {
  const RunEffects effects(objective, history);
  RunningMeans means(effects);
  std::optional<double> last_gain;
  int without = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (!history[i].outcome || !counts(history[i])) continue;
    if (value_of(history[i], objective)) means.add(objective, history, i);
    const std::optional<double> best = means.best();
    if (best && (!last_gain || gain_over(objective, *best, *last_gain) > kWorthwhileGain)) {
      last_gain = best;
      without = 0;
    } else if (last_gain) {
      ++without;
    }
  }
  return without;
}

double gain_over(const session::Objective& objective, double value, double reference) {
  return objective.maximize ? value / reference : reference / value;
}

namespace {

// Fills in the mean of the measurements and its standard error, from their scatter or, for a single one, as it states.
void fill_evidence(const session::Objective& objective, const History& history, const std::vector<std::size_t>& trials,
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
  const journal::Trial& first = history[trials.front()];
  best.value_sem = std::get<trial::Measured>(*first.outcome).value_sem * effects.factor(first.proposal.run);
  if (trials.size() < 2) return;
  double squares = 0.0;
  for (const std::size_t index : trials) {
    const double off = *effects.value_of(history[index]) - best.value;
    squares += off * off;
  }
  best.value_sem = std::sqrt(squares / (count - 1.0) / count);
}

// Returns the mean of the successful measurements of a configuration, on the scale of the latest run.
MeasuredMean mean_of(const History& history, const space::Configuration& configuration,
                     const session::Objective& objective, const RunEffects& effects) {
  MeasuredMean mean;
  for (const journal::Trial& trial : history) {
    if (!value_of(trial, objective) || !(trial.proposal.configuration == configuration)) continue;
    ++mean.measurements;
    mean.value += (*effects.value_of(trial) - mean.value) / mean.measurements;
  }
  return mean;
}

std::optional<Eigen::Index> measured_row(const MeasuredConfigurations& measured, const History& history,
                                         const space::Configuration& configuration) {
  for (Eigen::Index row = 0; row < measured.size(); ++row) {
    const std::size_t first = measured.trials[static_cast<std::size_t>(row)].front();
    if (history[first].proposal.configuration == configuration) return row;
  }
  return std::nullopt;
}

// Returns the median and the 95 % interval of exp(f), where f ~ N(mean, variance) is the difference of two latent
// values.
Gain gain_of(double mean, double variance) {
  const double half = kNormal975 * std::sqrt(std::max(variance, 0.0));
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

// Returns the gain of one measured configuration over another. It is that of what they achieve, because the surrogate
// alone does not believe a value that differs from all its neighbours: a baseline that is five times as slow would be
// taken for one that is 1.5 times as slow. The scale must be logarithmic.
Gain achieved_gain(const AchievedValues& achieved, Eigen::Index row, Eigen::Index other) {
  const Eigen::MatrixXd& covariance = achieved.covariance();
  return gain_of(achieved.mean()(row) - achieved.mean()(other),
                 covariance(row, row) + covariance(other, other) - 2.0 * covariance(row, other));
}

struct MeasuredReference {
  const session::Objective& objective;
  const journal::Trial& trial;
  MeasuredMean mean;
};

// Returns the gain of the configuration of that row over the reference.
Gain gain_over_reference(const TrialModel& model, const AchievedValues& achieved, Eigen::Index row,
                         const History& history, const MeasuredReference& reference) {
  const space::Configuration& its = reference.trial.proposal.configuration;
  if (const std::optional<Eigen::Index> other = measured_row(model.measured(), history, its))
    return achieved_gain(achieved, row, *other);
  // Among many trials, the model may be conditioned on a selection without this one. Then its mean is what it achieves.
  const double stated = std::get<trial::Measured>(*reference.trial.outcome).value_sem;
  const double sem = TrialNoise(reference.objective, history).total_sem(reference.mean.value, stated);
  return gain_of(achieved.mean()(row) - model.scale().to_latent(reference.mean.value),
                 achieved.covariance()(row, row) +
                     model.scale().latent_variance(reference.mean.value, sem) / reference.mean.measurements);
}

}  // namespace

std::optional<JobSummary> job_summary(const session::Objective& objective, const Candidates& candidates,
                                      const History& history) {
  if (candidates.hypotheses() == nullptr) return std::nullopt;
  const TrialModel model(objective, candidates, history);
  if (model.job() == nullptr) return std::nullopt;
  return summary_of(*candidates.hypotheses(), model.job()->probabilities());
}

std::optional<Recommendation> recommend(const session::Session& session, const Candidates& candidates,
                                        const History& history, std::uint64_t seed) {
  return recommend(session, candidates, history, *fitted_model(session.objective, candidates, history, seed));
}

namespace {

// With several objectives, only members of the front are recommended, because the best may be beyond a limit. The user
// prefers one by what was measured, as in every list of the front. Empty if all measured configurations break a limit
// of the session.
std::optional<Eigen::Index> recommended_row(const session::Session& session, const History& history,
                                            const TrialModel& model, const AchievedValues& achieved) {
  const std::vector<FrontMember> front = front_of(session, history);
  if (const std::optional<std::size_t> pick = preferred(session, front)) {
    const auto row = measured_row(model.measured(), history, front[*pick].configuration);
    if (row) return *row;
  }
  std::optional<Eigen::Index> best;
  const auto consider = [&](const std::optional<Eigen::Index>& row) {
    if (row && (!best || achieved.mean()(*row) > achieved.mean()(*best))) best = row;
  };
  for (const FrontMember& member : front) {
    consider(measured_row(model.measured(), history, member.configuration));
  }
  if (session.others.empty() && !session.limits.empty()) {
    const std::vector<bool> within = measured_within(session, history, model.measured());
    for (std::size_t i = 0; i < within.size(); ++i) {
      if (within[i]) consider(static_cast<Eigen::Index>(i));
    }
  }
  if (best || !session.limits.empty()) return best;
  Eigen::Index row = 0;
  achieved.mean().maxCoeff(&row);
  return row;
}

}  // namespace

std::optional<Recommendation> recommend(const session::Session& session, const Candidates& candidates,
                                        const History& history, const TrialModel& model) {
  if (!model.has_values()) return std::nullopt;
  const session::Objective& objective = session.objective;
  const AchievedValues& achieved = model.achieved(values_are_exact(session));
  const std::optional<Eigen::Index> chosen = recommended_row(session, history, model, achieved);
  if (!chosen) return std::nullopt;
  const Eigen::Index row = *chosen;
  const double mean = achieved.mean()(row);
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
  const std::optional<journal::Trial> reference = reference_trial(objective, history);
  best.reference_trial = reference->number;
  const MeasuredMean before_it = mean_of(history, reference->proposal.configuration, objective, effects);
  best.reference_value = before_it.value;
  best.reference_measurements = before_it.measurements;
  best.gain = gain_over(objective, best.value, best.reference_value);
  const space::Configuration& before = session.baseline ? *session.baseline : reference->proposal.configuration;
  if (model.job() != nullptr) best.job = summary_of(*candidates.hypotheses(), model.job()->probabilities());
  best.changes = changes_between(model, candidates, history, before, best.configuration);
  if (model.scale().logarithmic() && best.configuration != reference->proposal.configuration)
    best.gain_by_model = gain_over_reference(model, achieved, row, history, {objective, *reference, before_it});
  if (!best.changes.together) return best;
  if (before == reference->proposal.configuration) {
    best.changes.together = best.gain_by_model;
  } else if (const std::optional<Eigen::Index> other = measured_row(model.measured(), history, before)) {
    best.changes.together = achieved_gain(achieved, row, *other);
  }
  return best;
}

// How much each of several changes contributes: compares the later configuration x with x_i, which is x with one change
// reverted. With f the surrogate's latent function (the logarithm of the objective), m its posterior mean and C its
// covariance,
//
//   f(x) - f(x_i) ~ N(m(x) - m(x_i),  C(x, x) + C(x_i, x_i) - 2 C(x, x_i))
//
// and exp of it is how many times better x is. The covariance between the two matters: uncertainty that they share does
// not make their ratio uncertain.
namespace {

std::optional<space::Value> value_in(const space::Configuration& configuration, const std::string& name) {
  const space::Value* value = configuration.find(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

bool differ(const std::optional<space::Value>& a, const std::optional<space::Value>& b) {
  return a.has_value() != b.has_value() || (a && !space::same_value(*a, *b));
}

std::vector<Change> listed_changes(const space::Space& space, const space::Configuration& before,
                                   const space::Configuration& after) {
  std::vector<Change> changes;
  const auto add = [&](const std::string& name) {
    Change change{name, value_in(before, name), value_in(after, name), Change::Alone::kPossible, std::nullopt};
    if (!differ(change.before, change.after)) return;
    if (name == space::kAccumulation && space.facts().accumulation_follows()) change.alone = Change::Alone::kFollows;
    changes.push_back(std::move(change));
  };
  for (const auto& [name, value] : after) add(name);
  for (const auto& [name, value] : before) {
    if (!after.has(name)) add(name);
  }
  return changes;
}

// Returns `after` with these changes reverted. Parameters that no longer have a meaning are removed, and those that now
// exist get their earlier value. The earlier values need not be in the space. Empty if there is no such configuration.
std::optional<space::Configuration> taken_back(const space::Space& space, const std::vector<const Change*>& changes,
                                               const space::Configuration& before, const space::Configuration& after) {
  space::Configuration moved = after;
  for (const auto& [name, value] : before) {
    if (!moved.has(name)) moved.set(name, value);
  }
  for (const Change* change : changes) {
    if (!change->before) return std::nullopt;
    moved.set(change->parameter, *change->before);
  }
  if (space.facts().accumulation_follows()) moved.erase(space::kAccumulation);
  if (space.complete(moved) != space::Exclusion::kNone) return std::nullopt;
  const bool is_back = std::none_of(changes.begin(), changes.end(), [&](const Change* change) {
    return differ(value_in(moved, change->parameter), change->before);
  });
  return is_back ? std::optional(moved) : std::nullopt;
}

// Returns `after` with `change` reverted. If a constraint then requires another change (gradient accumulation with a
// fixed batch), the first of the other changes that satisfies it is reverted too and marked.
std::optional<space::Configuration> taken_back(const space::Space& space, const Change& change,
                                               std::vector<Change>& all, const space::Configuration& before,
                                               const space::Configuration& after) {
  std::optional<space::Configuration> alone = taken_back(space, {&change}, before, after);
  if (!alone || space.meets_constraints(*alone) || !space.meets_constraints(before)) return alone;
  for (Change& other : all) {
    if (&other == &change || other.alone != Change::Alone::kPossible) continue;
    std::optional<space::Configuration> both = taken_back(space, {&change, &other}, before, after);
    if (!both || !space.meets_constraints(*both)) continue;
    other.alone = Change::Alone::kFollows;
    return both;
  }
  return std::nullopt;
}

bool is_too_large(const Candidates& candidates, const History& history, const space::Configuration& configuration) {
  const std::optional<plan::MemoryVerdict> planned = candidates.memory_of(configuration);
  if (planned && planned->verdict == plan::Verdict::kTooLarge) return true;
  const std::string key = candidates.key(configuration);
  return std::any_of(history.begin(), history.end(), [&](const journal::Trial& trial) {
    return trial.outcome && std::holds_alternative<trial::OutOfMemory>(*trial.outcome) &&
           candidates.key(trial.proposal.configuration) == key;
  });
}

}  // namespace

std::vector<Gain> gains_over_others(const TrialModel& model, const std::vector<space::Configuration>& configurations) {
  if (!model.scale().logarithmic()) return {};
  const surrogate::Points points = model.encode(configurations);
  const Eigen::VectorXd mean = model.predict_coarsely(points).mean;  // of the process, like the covariance
  const Eigen::MatrixXd covariance = model.process().posterior_covariance(model.known_points(points));
  const double unit = model.latent_unit() * model.latent_unit();
  std::vector<Gain> gains;
  for (Eigen::Index i = 1; i < mean.size(); ++i) {
    gains.push_back(gain_of(mean(0) - mean(i), unit * (covariance(0, 0) + covariance(i, i) - 2.0 * covariance(0, i))));
  }
  return gains;
}

Changes changes_between(const TrialModel& model, const Candidates& candidates, const History& history,
                        const space::Configuration& before, const space::Configuration& after) {
  const space::Space& space = candidates.space();
  Changes changes{listed_changes(space, before, after), std::nullopt};
  if (changes.each.empty()) return changes;
  std::vector<space::Configuration> points = {after, before};
  std::vector<Change*> known;
  for (Change& change : changes.each) {
    if (change.alone == Change::Alone::kFollows) continue;
    std::optional<space::Configuration> back = taken_back(space, change, changes.each, before, after);
    if (!back) {
      change.alone = Change::Alone::kNeedsAnother;
    } else if (is_too_large(candidates, history, *back)) {
      change.alone = Change::Alone::kTooLarge;
    } else {
      points.push_back(std::move(*back));
      known.push_back(&change);
    }
  }
  const std::vector<Gain> gains = gains_over_others(model, points);
  if (gains.empty()) return changes;
  changes.together = gains.front();
  for (std::size_t i = 0; i < known.size(); ++i) known[i]->gain = gains[i + 1];
  return changes;
}

}  // namespace krigtune::search
