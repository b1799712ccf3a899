// What each of several changes is worth: the later configuration x against x with one change taken back, x_i. With f
// the surrogate's latent function (the logarithm of the objective), m its posterior mean and C its covariance,
//
//   f(x) - f(x_i) ~ N(m(x) - m(x_i),  C(x, x) + C(x_i, x_i) - 2 C(x, x_i))
//
// and exp of it is how many times better x is. The covariance between the two counts: what is not known of both alike
// is no doubt about their ratio.
#include "model/change_study.h"

#include <algorithm>
#include <cmath>

#include "krigtune/core/statistics.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

std::optional<Value> value_in(const Configuration& configuration, const std::string& name) {
  const Value* value = configuration.find(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

bool differ(const std::optional<Value>& a, const std::optional<Value>& b) {
  return a.has_value() != b.has_value() || (a && !same_value(*a, *b));
}

std::vector<Change> listed_changes(const Space& space, const Configuration& before, const Configuration& after) {
  std::vector<Change> changes;
  const auto add = [&](const std::string& name) {
    Change change{name, value_in(before, name), value_in(after, name), Change::Alone::kPossible, std::nullopt};
    if (!differ(change.before, change.after)) return;
    if (name == kAccumulation && space.facts().accumulation_follows()) change.alone = Change::Alone::kFollows;
    changes.push_back(std::move(change));
  };
  for (const auto& [name, value] : after) add(name);
  for (const auto& [name, value] : before) {
    if (!after.has(name)) add(name);
  }
  return changes;
}

// `after` with these changes taken back; what then has no meaning any more goes, what then exists has its earlier
// value. The earlier values need not be of the space. Empty: there is no such configuration.
std::optional<Configuration> taken_back(const Space& space, const std::vector<const Change*>& changes,
                                        const Configuration& before, const Configuration& after) {
  Configuration moved = after;
  for (const auto& [name, value] : before) {
    if (!moved.has(name)) moved.set(name, value);
  }
  for (const Change* change : changes) {
    if (!change->before) return std::nullopt;
    moved.set(change->parameter, *change->before);
  }
  if (space.facts().accumulation_follows()) moved.erase(kAccumulation);
  if (space.complete(moved) != Exclusion::kNone) return std::nullopt;
  const bool is_back = std::none_of(changes.begin(), changes.end(), [&](const Change* change) {
    return differ(value_in(moved, change->parameter), change->before);
  });
  return is_back ? std::optional(moved) : std::nullopt;
}

// `change` taken back; where a constraint then needs another one to follow (the accumulation of a kept batch), with the
// first of the later ones that does, which is marked.
std::optional<Configuration> taken_back(const Space& space, const Change& change, std::vector<Change>& all,
                                        const Configuration& before, const Configuration& after) {
  std::optional<Configuration> alone = taken_back(space, {&change}, before, after);
  if (!alone || space.meets_constraints(*alone) || !space.meets_constraints(before)) return alone;
  for (Change& other : all) {
    if (&other == &change || other.alone != Change::Alone::kPossible) continue;
    std::optional<Configuration> both = taken_back(space, {&change, &other}, before, after);
    if (!both || !space.meets_constraints(*both)) continue;
    other.alone = Change::Alone::kFollows;
    return both;
  }
  return std::nullopt;
}

bool is_too_large(const Candidates& candidates, const History& history, const Configuration& configuration) {
  const std::optional<MemoryVerdict> planned = candidates.memory_of(configuration);
  if (planned && planned->verdict == Verdict::kTooLarge) return true;
  const std::string key = candidates.key(configuration);
  return std::any_of(history.begin(), history.end(), [&](const Trial& trial) {
    return trial.outcome && std::holds_alternative<OutOfMemory>(*trial.outcome) &&
           candidates.key(trial.proposal.configuration) == key;
  });
}

}  // namespace

std::vector<Gain> gains_over_others(const TrialModel& model, const Candidates& candidates,
                                    const std::vector<Configuration>& configurations) {
  if (!model.scale().logarithmic()) return {};
  const Points points = candidates.encode(configurations);
  const Eigen::VectorXd mean = model.predict(points).mean;
  const Eigen::MatrixXd covariance = model.process().posterior_covariance(model.known_points(points));
  const double unit = model.latent_unit() * model.latent_unit();
  std::vector<Gain> gains;
  for (Eigen::Index i = 1; i < mean.size(); ++i) {
    const double variance = unit * (covariance(0, 0) + covariance(i, i) - 2.0 * covariance(0, i));
    const double half = kNormal975 * std::sqrt(std::max(variance, 0.0));
    const double gain = mean(0) - mean(i);
    gains.push_back({std::exp(gain), std::exp(gain - half), std::exp(gain + half)});
  }
  return gains;
}

Changes changes_between(const TrialModel& model, const Candidates& candidates, const History& history,
                        const Configuration& before, const Configuration& after) {
  const Space& space = candidates.space();
  Changes changes{listed_changes(space, before, after), std::nullopt};
  if (changes.each.empty()) return changes;
  std::vector<Configuration> points = {after, before};
  std::vector<Change*> known;
  for (Change& change : changes.each) {
    if (change.alone == Change::Alone::kFollows) continue;
    std::optional<Configuration> back = taken_back(space, change, changes.each, before, after);
    if (!back) {
      change.alone = Change::Alone::kNeedsAnother;
    } else if (is_too_large(candidates, history, *back)) {
      change.alone = Change::Alone::kTooLarge;
    } else {
      points.push_back(std::move(*back));
      known.push_back(&change);
    }
  }
  const std::vector<Gain> gains = gains_over_others(model, candidates, points);
  if (gains.empty()) return changes;
  changes.together = gains.front();
  for (std::size_t i = 0; i < known.size(); ++i) known[i]->gain = gains[i + 1];
  return changes;
}

}  // namespace krigtune
