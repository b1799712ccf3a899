// The knowledge gradient over what has been measured (Frazier, Powell & Dayanik 2009, "The knowledge-gradient policy
// for correlated normal beliefs"; the recommendation is the largest posterior mean among the measured). With posterior
// means m and covariance C of the noise-free values, one more measurement of x with noise variance s^2 will change the
// means to
//
//   m + b Z,   b_j = C(j, x) / sqrt(C(x, x) + s^2),   Z ~ N(0, 1)
//   gain(x) = E[max_j (m_j + b_j Z)] - max_j m_j,     j over the measured, and x where it is new
//
// The maximum is piecewise linear in Z: of the lines, by ascending slope, those that are the largest somewhere change
// places at c_1 < c_2 < ..., and the gain is sum_k (b_(k+1) - b_k) h(-|c_k|) with h(u) = phi(u) + u Phi(u).
//
// Whether to measure the leader or its rival again, or something new, is then one question in one currency. A repeat is
// asked only where its result can differ: the trials state a spread, and a replayed table has rows left.
#include "model/repeat_gain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune {
namespace {

/// One flag a measured configuration: it may be measured again, with another result.
std::vector<bool> repeatable(const Session& session, const Candidates& candidates, const History& history,
                             const MeasuredConfigurations& measured) {
  std::unordered_map<std::string, int> closed;
  std::unordered_set<std::string> pending;
  for (const Trial& trial : history) {
    if (!counts(trial)) continue;
    const std::string key = candidates.key(trial.proposal.configuration);
    if (trial.outcome) ++closed[key];
    if (!trial.outcome) pending.insert(key);
  }
  std::vector<bool> flags;
  for (Eigen::Index i = 0; i < measured.size(); ++i) {
    const Trial& first = history[measured.trials[static_cast<std::size_t>(i)].front()];
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
    double from;  // the Z at which it takes over
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
      largest.pop_back();  // nowhere the largest
      from = -std::numeric_limits<double>::infinity();
    }
    largest.push_back({line, from});
  }
  double gain = 0.0;
  for (std::size_t k = 1; k < largest.size(); ++k) {
    const double steeper = slopes(largest[k].line) - slopes(largest[k - 1].line);
    gain += steeper * std::exp(log_h(-std::abs(largest[k].from)));
  }
  return gain;
}

RepeatGain::RepeatGain(const Session& session, const Candidates& candidates, const History& history,
                       const TrialModel& model)
    : model_(model),
      exact_(values_are_exact(session)),
      achieved_(model.achieved(exact_)),
      repeatable_(repeatable(session, candidates, history, model.measured())) {}

std::optional<RepeatGain::Repeat> RepeatGain::best() const {
  std::optional<Repeat> best;
  for (std::size_t i = 0; i < repeatable_.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    if (!repeatable_[i]) continue;
    const double variance = achieved_.covariance()(row, row) + model_.measured().one_more(row);
    const Eigen::VectorXd slopes = achieved_.covariance().col(row) / std::sqrt(variance);
    const double gain = expected_gain_of_choice(achieved_.mean(), slopes);
    if (best && gain <= best->gain) continue;
    best = {row, model_.measured().trials[i].front(), gain, achieved_.mean()(row)};
  }
  return best;
}

double RepeatGain::of_new(const Points& candidate) const {
  const Prediction smooth = model_.predict(candidate);
  const Eigen::Index count = achieved_.mean().size();
  const double variance = smooth.variance(0) + model_.own_variance(exact_);
  Eigen::VectorXd means(count + 1);
  Eigen::VectorXd covariances(count + 1);
  means << achieved_.mean(), smooth.mean(0);
  covariances << achieved_.covariance_with(model_.centred(candidate)), variance;
  const Eigen::VectorXd slopes = covariances / std::sqrt(variance + model_.measured().one_more.mean());
  return expected_gain_of_choice(means, slopes) + means.maxCoeff() - achieved_.mean().maxCoeff();
}

}  // namespace krigtune
