// How much better than the incumbent may any configuration still be, one that was not asked or a measured rival?
// Makarova et al. (2022, "Automatic termination for hyperparameter optimization") bound the regret by max UCB - LCB.
// Their width sqrt(beta) pays for the union over all |X| configurations as if each were the most dangerous one: on
// spaces of a few hundred points it is about five standard deviations, so no session would ever end by it. The union
// over the actual space can be summed instead. With D_x ~ Normal(mean_x - mean_best, k^2 (var_x + var_best)) the
// difference of latent values and P_x the probability that a trial of x succeeds, Boole's inequality gives
//
//   P(some x is better by more than d) <= sum_x P_x P(D_x > d)
//
// and the bound is the d at which the sum is 1 - confidence. The sum falls monotonically in d, so there is one root,
// found by Alefeld, Potra and Shi 1995, "Algorithm 748: enclosing zeros of continuous functions". Configurations far
// below add nothing, near rivals count in full, and a space of ten times as many points has a sum ten times as large.
//
// var_x is the variance of what x achieves, including what is specific to x (trial_model.cpp); so is var_best. The two
// are treated as independent (the variances add up), which makes the bound wide. k corrects what makes it narrow:
// hyperparameters are taken as known and the process as true. The errors of the session's own predictions determine k
// (trial_model.cpp).
//
// A measured rival is better by more than d with D ~ Normal(m_x - m_best, C_xx + C_best,best - 2 C_x,best), the
// posterior of what both achieve. Where values are exact it is never better. Where they are noisy the bound would be
// false without it: the second best of two values that are 2 % apart may be the better configuration.
//
// The expected gain is the largest gain that any one trial promises: P_x E[max(f_x - mean_best, 0)], with f_x as wide
// as above, divided by the trial's cost in units of a typical trial. Looking further than one trial ahead adds nothing
// as long as trials are independent: k trials together gain at most the sum of their gains, so if each is worth less
// than it costs, all are.
#include "search/model/outlook.h"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/statistics.h"
#include "krigtune/surrogate/acquisition.h"

namespace krigtune::search {
namespace {

constexpr double kMostConfigurations = 1e6;  // of a sampled space; in larger spaces neighbours are alike
constexpr double kFarBelow = 5.0;            // standard deviations at which a gain is negligible
constexpr double kLeastStddev = 1e-6;

double chance_above(const Challenger& one, double difference) {
  return normal_cdf((one.mean - difference) / one.stddev);
}

double chance_above(const std::vector<Challenger>& challengers, double difference) {
  double sum = 0.0;
  for (const Challenger& one : challengers) {
    sum += one.probability * chance_above(one, difference);
  }
  return sum;
}

// The candidates that matter for d >= 0. Together the others have less than a thousandth of the probability.
std::vector<Challenger> dangerous(const std::vector<Challenger>& challengers, double chance) {
  const double least = 1e-3 * chance / static_cast<double>(std::max<std::size_t>(challengers.size(), 1));
  std::vector<Challenger> result;
  for (const Challenger& one : challengers) {
    if (one.probability * chance_above(one, 0.0) >= least) result.push_back(one);
  }
  return result;
}

// The bound of a space that cannot be listed uses a sample, each member of which represents many configurations.
double weight_of(const Candidates& candidates, std::size_t scored) {
  if (candidates.listed() || scored == 0) return 1.0;
  const space::Space& space = candidates.space();
  const double count = space.listable() ? static_cast<double>(space.lattice_count()) : kMostConfigurations;
  return std::max(1.0, std::min(count, kMostConfigurations) / static_cast<double>(scored));
}

// Returns a difference of latent values as a fraction of the best value.
double as_fraction(const ObjectiveScale& scale, double difference, double incumbent) {
  if (scale.logarithmic()) return std::expm1(difference);
  return difference / std::max(std::abs(incumbent), std::numeric_limits<double>::min());
}

// Returns the expected improvement of a trial with latent value Normal(mean, stddev^2), as a fraction of the best
// value.
double expected_improvement(const ObjectiveScale& scale, double mean, double stddev, double incumbent) {
  if (mean + kFarBelow * stddev < incumbent) return 0.0;
  const double best = std::max(std::abs(scale.from_latent(incumbent)), std::numeric_limits<double>::min());
  return std::exp(scale.log_expected_improvement(mean, stddev, incumbent)) / best;
}

Eigen::Index best_within(const AchievedValues& achieved, const std::vector<bool>& within) {
  Eigen::Index best = -1;
  for (Eigen::Index i = 0; i < achieved.mean().size(); ++i) {
    if (within[static_cast<std::size_t>(i)] && (best < 0 || achieved.mean()(i) > achieved.mean()(best))) best = i;
  }
  return best;
}

// The measured configurations other than the best one. What is not known of their differences are errors of their
// measurements, and these need no widening. Each stands for itself, so `weight` does not apply to them.
std::vector<Challenger> rivals_of(const AchievedValues& achieved, Eigen::Index best, const std::vector<bool>& within,
                                  double weight) {
  const Eigen::MatrixXd& covariance = achieved.covariance();
  std::vector<Challenger> rivals;
  for (Eigen::Index i = 0; i < achieved.mean().size(); ++i) {
    if (i == best || !within[static_cast<std::size_t>(i)]) continue;
    const double variance = covariance(i, i) + covariance(best, best) - 2.0 * covariance(i, best);
    rivals.push_back({achieved.mean()(i) - achieved.mean()(best),
                      std::max(std::sqrt(std::max(variance, 0.0)), kLeastStddev), 1.0 / weight});
  }
  return rivals;
}

}  // namespace

double largest_difference(const std::vector<Challenger>& challengers, double weight, double confidence) {
  const double chance = (1.0 - confidence) / weight;
  const std::vector<Challenger> left = dangerous(challengers, chance);
  if (chance_above(left, 0.0) <= chance) return 0.0;
  // The logarithm is nearly a parabola, so about ten evaluations over all candidates find the root.
  const auto excess = [&](double difference) {
    return std::log(std::max(chance_above(left, difference), std::numeric_limits<double>::min()) / chance);
  };
  double low = 0.0;
  double high = 0.01;
  while (excess(high) > 0.0) {
    low = high;
    high *= 2.0;
  }
  constexpr int kBits = 40;
  std::uintmax_t most_looks = 100;
  return boost::math::tools::toms748_solve(excess, low, high, boost::math::tools::eps_tolerance<double>(kBits),
                                           most_looks)
      .second;
}

journal::Outlook outlook_of(const TrialModel& model, const session::Session& session, const Candidates& candidates,
                            const ScoredCandidates& scored) {
  const bool exact = values_are_exact(session);
  const AchievedValues& achieved = model.achieved(exact);
  const Eigen::Index best = best_within(achieved, scored.within);
  const double incumbent = achieved.mean()(best);
  const double of_the_best = std::max(achieved.covariance()(best, best), 0.0);
  const Eigen::VectorXd variance = scored.prediction.variance.array().max(0.0) + model.own_variance(exact);
  journal::Outlook outlook;
  outlook.confidence = session.budget.confidence;
  std::vector<Challenger> challengers;
  for (std::size_t i = 0; i < scored.list.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    if (!scored.open[i]) continue;
    const double mean = scored.prediction.mean(row);
    const double probability = scored.probability(row);
    if (scored.wanted[i]) {
      const double stddev = model.widening() * std::sqrt(variance(row));
      const double gain = probability * expected_improvement(model.scale(), mean, stddev, incumbent);
      outlook.expected_gain = std::max(outlook.expected_gain, gain * std::exp(-scored.log_cost(row)));
    }
    challengers.push_back({mean - incumbent,
                           std::max(model.widening() * std::sqrt(variance(row) + of_the_best), kLeastStddev),
                           probability});
  }
  const double weight = weight_of(candidates, scored.list.size());
  const auto bound = [&] {
    return as_fraction(model.scale(), largest_difference(challengers, weight, outlook.confidence), incumbent);
  };
  outlook.bound_of_new = bound();
  const std::vector<Challenger> rivals = rivals_of(achieved, best, scored.within, weight);
  challengers.insert(challengers.end(), rivals.begin(), rivals.end());
  outlook.regret_bound = bound();
  return outlook;
}

// The knowledge gradient over the measured configurations (Frazier, Powell & Dayanik 2009, "The knowledge-gradient
// policy for correlated normal beliefs"; the recommendation is the largest posterior mean among the measured). With
// posterior means m and covariance C of the noise-free values, one more measurement of x with noise variance s^2
// changes the means to
//
//   m + b Z,   b_j = C(j, x) / sqrt(C(x, x) + s^2),   Z ~ N(0, 1)
//   gain(x) = E[max_j (m_j + b_j Z)] - max_j m_j,     j over the measured, and x where it is new
//
// The maximum is piecewise linear in Z. Sorted by ascending slope, the lines that are the largest somewhere take over
// from each other at c_1 < c_2 < ..., and the gain is sum_k (b_(k+1) - b_k) h(-|c_k|) with h(u) = phi(u) + u Phi(u).
//
// So the choice between measuring the leader again, its rival again, or something new compares gains in the same unit.
// A repeat is proposed only if its result can differ: trials state a spread, or a replayed table has further rows.
namespace {

/// Returns one flag per measured configuration: whether measuring it again can give a different result.
std::vector<bool> repeatable(const session::Session& session, const Candidates& candidates, const History& history,
                             const MeasuredConfigurations& measured) {
  std::unordered_map<std::string, int> closed;
  std::unordered_set<std::string> pending;
  for (const journal::Trial& trial : history) {
    if (!counts(trial)) continue;
    const std::string key = candidates.key(trial.proposal.configuration);
    if (trial.outcome) ++closed[key];
    if (!trial.outcome) pending.insert(key);
  }
  std::vector<bool> flags;
  for (Eigen::Index i = 0; i < measured.size(); ++i) {
    const journal::Trial& first = history[measured.trials[static_cast<std::size_t>(i)].front()];
    const std::string key = candidates.key(first.proposal.configuration);
    const bool rows_are_left =
        session.table == nullptr || closed[key] < session.table->measurements(first.proposal.configuration);
    flags.push_back(measured.one_more(i) > 0.0 && pending.count(key) == 0 && rows_are_left);
  }
  return flags;
}

}  // namespace

double expected_gain_of_choice(const Eigen::VectorXd& means, const Eigen::VectorXd& slopes) {
  std::vector<Eigen::Index> order(static_cast<std::size_t>(means.size()));
  std::iota(order.begin(), order.end(), Eigen::Index{0});
  std::sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) {
    return slopes(a) != slopes(b) ? slopes(a) < slopes(b) : means(a) < means(b);
  });
  struct Piece {
    Eigen::Index line;
    double from;  // the Z at which it becomes the largest
  };
  std::vector<Piece> largest;
  for (const Eigen::Index line : order) {
    double from = -std::numeric_limits<double>::infinity();
    while (!largest.empty()) {
      const Piece& last = largest.back();
      const double steeper = slopes(line) - slopes(last.line);
      if (steeper > 0.0) {
        from = (means(last.line) - means(line)) / steeper;
        if (from > last.from) break;
      }
      largest.pop_back();  // it is nowhere the largest
      from = -std::numeric_limits<double>::infinity();
    }
    largest.push_back({line, from});
  }
  double gain = 0.0;
  for (std::size_t k = 1; k < largest.size(); ++k) {
    const double steeper = slopes(largest[k].line) - slopes(largest[k - 1].line);
    gain += steeper * std::exp(surrogate::log_h(-std::abs(largest[k].from)));
  }
  return gain;
}

RepeatGain::RepeatGain(const session::Session& session, const Candidates& candidates, const History& history,
                       const TrialModel& model)
    : candidates_(candidates),
      model_(model),
      exact_(values_are_exact(session)),
      achieved_(model.achieved(exact_)),
      repeatable_(repeatable(session, candidates, history, model.measured())),
      gains_(repeatable_.size()) {
  for (std::size_t row = 0; row < repeatable_.size(); ++row) {
    const std::size_t trial = model.measured().trials[row].front();
    rows_.emplace(candidates.key(history[trial].proposal.configuration), row);
  }
}

void RepeatGain::leave_out(const space::Configuration& configuration) {
  const auto found = rows_.find(candidates_.key(configuration));
  if (found != rows_.end()) repeatable_[found->second] = false;
}

std::optional<RepeatGain::Repeat> RepeatGain::best() const {
  std::optional<Repeat> best;
  for (std::size_t i = 0; i < repeatable_.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    if (!repeatable_[i]) continue;
    if (!gains_[i]) {
      const double variance = achieved_.covariance()(row, row) + model_.measured().one_more(row);
      const Eigen::VectorXd slopes = achieved_.covariance().col(row) / std::sqrt(variance);
      gains_[i] = expected_gain_of_choice(achieved_.mean(), slopes);
    }
    if (best && *gains_[i] <= best->gain) continue;
    best = {row, model_.measured().trials[i].front(), *gains_[i], achieved_.mean()(row)};
  }
  return best;
}

double RepeatGain::of_new(const surrogate::Points& candidate) const {
  const surrogate::Prediction smooth = model_.predict(candidate);
  const Eigen::Index count = achieved_.mean().size();
  const double variance = smooth.variance(0) + model_.own_variance(exact_);
  Eigen::VectorXd means(count + 1);
  Eigen::VectorXd covariances(count + 1);
  means << achieved_.mean(), smooth.mean(0);
  covariances << achieved_.covariance_with(model_.centred(candidate)), variance;
  const Eigen::VectorXd slopes = covariances / std::sqrt(variance + model_.measured().one_more.mean());
  return expected_gain_of_choice(means, slopes) + means.maxCoeff() - achieved_.mean().maxCoeff();
}

}  // namespace krigtune::search
