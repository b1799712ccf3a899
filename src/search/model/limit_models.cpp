// With independent metrics c_j given the configuration, and latent values of which larger ones are better,
//
//   P(within) = prod_j Phi((m_j(x) - b_j) / s_j(x)),   b_j the latent limit
//
// which multiplies the acquisition (Gardner, Kusner, Xu, Weinberger & Cunningham 2014, "Bayesian optimization with
// inequality constraints"). s_j^2 is the variance of the smooth function and what it does not explain.
#include "search/model/limit_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/text.h"
#include "krigtune/surrogate/acquisition.h"
#include "session/objectives.h"

namespace krigtune::search {
namespace {

constexpr double kInfiniteBound = std::numeric_limits<double>::infinity();
constexpr double kLeastLimitStddev = 1e-6;

// The logarithm of a limit at or below zero does not exist: all values are above it.
double latent_bound(const ObjectiveScale& scale, double limit) {
  if (scale.logarithmic() && limit <= 0.0) return scale.maximize() ? -kInfiniteBound : kInfiniteBound;
  return scale.to_latent(limit);
}

/// The mean of each limited metric over the successful trials of a configuration; NaN: none of them reported it.
std::vector<double> means_of_limited(const session::Session& session,
                                     const std::vector<const journal::Trial*>& trials) {
  std::vector<double> means;
  for (const session::Objective& limit : session.limits) {
    double sum = 0.0;
    double count = 0.0;
    for (const journal::Trial* trial : trials) {
      const std::optional<double> value = value_of(*trial, limit);
      if (!value) continue;
      sum += *value;
      count += 1.0;
    }
    means.push_back(sum / count);  // 0 / 0 is NaN
  }
  return means;
}

bool keeps_to_all(const session::Session& session, const std::vector<double>& means) {
  for (std::size_t j = 0; j < means.size(); ++j) {
    if (std::isnan(means[j]) || !session::is_within(session.limits[j], means[j])) return false;
  }
  return true;
}

bool is_success(const journal::Trial& trial) {
  return counts(trial) && trial.outcome && std::holds_alternative<trial::Measured>(*trial.outcome);
}

}  // namespace

std::string broken_limits(const session::Session& session, const journal::Trial& trial) {
  if (session.limits.empty() || !is_success(trial)) return "";
  const std::vector<double> values = means_of_limited(session, {&trial});
  std::vector<std::string> broken;
  for (std::size_t j = 0; j < values.size(); ++j) {
    const session::Objective& limit = session.limits[j];
    if (std::isnan(values[j])) broken.push_back(limit.metric + " not reported");
    if (!std::isnan(values[j]) && !session::is_within(limit, values[j]))
      broken.push_back(fmt::format("{} {:.6g} (limit {:.6g})", limit.metric, values[j], *limit.limit));
  }
  return join(broken, ", ");
}

History without_broken(const session::Session& session, const History& history) {
  if (session.limits.empty()) return history;
  std::unordered_map<std::string, std::vector<std::size_t>> entries;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (is_success(history[i])) entries[history[i].proposal.configuration.text()].push_back(i);
  }
  History result = history;
  for (const auto& [text, indices] : entries) {
    std::vector<const journal::Trial*> trials;
    for (const std::size_t i : indices) trials.push_back(&history[i]);
    if (keeps_to_all(session, means_of_limited(session, trials))) continue;
    for (const std::size_t i : indices) {
      result[i].outcome = trial::Failed{trial::FailureReason::kBadResult, 0, "a limit is broken"};
    }
  }
  return result;
}

std::vector<bool> measured_within(const session::Session& session, const History& history,
                                  const MeasuredConfigurations& measured) {
  if (session.limits.empty()) return std::vector<bool>(measured.trials.size(), true);
  const History kept = without_broken(session, history);
  std::vector<bool> within;
  for (const std::vector<std::size_t>& trials : measured.trials) within.push_back(is_success(kept[trials.front()]));
  return within;
}

LimitModels::LimitModels(const session::Session& session, const Candidates& candidates, const History& history,
                         Rng& rng) {
  if (session.limits.empty()) return;
  std::vector<space::Configuration> pending;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome && counts(trial)) pending.push_back(trial.proposal.configuration);
  }
  for (const session::Objective& limit : session.limits) {
    OtherObjective model(limit, candidates, history);
    if (!model.has_values()) continue;
    model.fit(rng);
    model.believe(pending);
    bounds_.push_back(latent_bound(model.scale(), *limit.limit));
    models_.push_back(std::move(model));
  }
}

Eigen::VectorXd LimitModels::probability(const CandidateList& list) const {
  Eigen::VectorXd result = Eigen::VectorXd::Ones(list.points.size());
  for (std::size_t j = 0; j < models_.size(); ++j) {
    const surrogate::Prediction prediction = models_[j].predict(list);
    const double own = models_[j].noise_variance();
    for (Eigen::Index i = 0; i < result.size(); ++i) {
      const double stddev = std::max(std::sqrt(std::max(prediction.variance(i), 0.0) + own), kLeastLimitStddev);
      result(i) *= std::exp(surrogate::log_normal_cdf((prediction.mean(i) - bounds_[j]) / stddev));
    }
  }
  return result;
}

}  // namespace krigtune::search
