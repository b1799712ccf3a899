// Expected improvement per second of trial (Snoek, Larochelle & Adams 2012, section 3.2): if trials differ in duration,
// a(x) - log E[s(x)] replaces a(x). Log seconds are a Gaussian process,
//
//   log s(x) = a + b m(x) + GP(0.5^2, Matern 5/2, l = 0.7) + N(0, 0.1^2),   a ~ N(median, 1),   b ~ N(0, 1)
//   log E[s] = mean + variance / 2
//
// with m the posterior mean of the objective's latent value. Trials with a fixed number of steps take as long as their
// steps (b = -1 for a throughput); trials with a fixed number of seconds all take the same (b = 0). The hyperparameters
// are fixed, because there are few trials and their duration is smooth. Failed trials are excluded, because failing
// early saves nothing: counting it would cancel the probability of success, E[gain] P / (P s). A trial that timed out
// has used its time and is included.
//
// Seconds below 1 count as 1, because looking up or simulating a result takes no time and the rule must not react to
// the noise of a clock. If the standard deviation of log s is below a third, trials take about the same time and a(x)
// is not changed.
#include "search/model/trial_cost.h"

#include <algorithm>
#include <cmath>

#include "core/statistics.h"
#include "search/model/relevant_trials.h"

namespace krigtune::search {
namespace {

constexpr double kLeastSeconds = 1.0;
constexpr double kLeastSpread = 0.3;
constexpr int kFewestTrials = 3;
constexpr double kLengthscale = 0.7;
constexpr double kSignal = 0.5;
constexpr double kNoise = 0.1;

surrogate::SurrogateOptions cost_options() {
  surrogate::SurrogateOptions options;
  options.standardise = false;
  options.mean = surrogate::Mean::weighted(1.0, Eigen::VectorXd::Zero(1), Eigen::VectorXd::Ones(1));
  return options;
}

bool took_its_time(const trial::Outcome& outcome) {
  const auto* failed = std::get_if<trial::Failed>(&outcome);
  if (failed != nullptr) return failed->reason == trial::FailureReason::kTimeout;
  return !std::holds_alternative<trial::OutOfMemory>(outcome);
}

}  // namespace

TrialCost::TrialCost(const History& history, const TrialModel& model) : surrogate_(cost_options()) {
  std::vector<space::Configuration> configurations;
  std::vector<double> log_seconds;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial) || !took_its_time(*trial.outcome)) continue;
    configurations.push_back(trial.proposal.configuration);
    log_seconds.push_back(std::log(std::max(trial.wall_s, kLeastSeconds)));
  }
  const auto count = static_cast<Eigen::Index>(log_seconds.size());
  if (count < kFewestTrials) return;
  const Eigen::Map<const Eigen::VectorXd> values(log_seconds.data(), count);
  const double mean = values.mean();
  const double spread = (values.array() - mean).matrix().norm() / std::sqrt(static_cast<double>(count - 1));
  if (!(spread > kLeastSpread)) return;
  differs_ = true;
  offset_ = median(log_seconds);
  const surrogate::Points all = model.encode(configurations);
  const std::vector<Eigen::Index> rows = spread_rows(all, kMostExact);
  const surrogate::Points points = all.rows(rows);
  const Eigen::VectorXd latent = model.predict(points).mean;
  latent_shift_ = latent.mean();
  const surrogate::Points known = with_feature(points, latent);
  surrogate_.condition({known, values(rows).array() - offset_, Eigen::VectorXd::Zero(points.size())},
                       surrogate::uniform_theta(*surrogate::make_kernel(surrogate::KernelKind::kMatern52), known,
                                                kLengthscale, kSignal, kNoise));
}

surrogate::Points TrialCost::with_feature(const surrogate::Points& points, const Eigen::VectorXd& latent) const {
  surrogate::Points result{points.ordered, points.categories, {}};
  result.features = latent.array() - latent_shift_;
  return result;
}

Eigen::VectorXd TrialCost::log_seconds(const surrogate::Points& points, const Eigen::VectorXd& latent) const {
  if (!differs_) return Eigen::VectorXd::Zero(points.size());
  const surrogate::Prediction prediction = surrogate_.predict(with_feature(points, latent));
  return offset_ + prediction.mean.array() + 0.5 * prediction.variance.array();
}

double TrialCost::ratio(const surrogate::Points& a, const surrogate::Points& b, const TrialModel& model) const {
  if (!differs_) return 1.0;
  return std::exp(log_seconds(a, model.predict(a).mean)(0) - log_seconds(b, model.predict(b).mean)(0));
}

}  // namespace krigtune::search
