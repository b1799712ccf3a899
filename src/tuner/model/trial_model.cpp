#include "model/trial_model.h"

#include <cmath>

namespace krigtune {

TrialModel::TrialModel(const Objective& objective, const Candidates& candidates, const History& history)
    : objective_(objective),
      candidates_(candidates),
      history_(history),
      scale_(objective, history),
      noise_(objective, candidates, history),
      values_(candidates.priors()),
      success_(candidates, history) {
  std::vector<Configuration> configurations;
  for (std::size_t i = 0; i < history_.size(); ++i) {
    const Trial& trial = history_[i];
    const auto value = trial.outcome && counts(trial) ? value_of(trial, objective_) : std::nullopt;
    if (!value || !std::isfinite(*value)) continue;
    measured_.push_back(i);
    configurations.push_back(trial.proposal.configuration);
  }
  measured_points_ = candidates_.encode(configurations);
}

std::optional<Eigen::VectorXd> TrialModel::last_fit() const {
  const auto length = static_cast<Eigen::Index>(
      make_kernel(KernelKind::kMatern52)
          ->hyperparameters(measured_points_.ordered.cols(), measured_points_.categories.cols())
          .size() +
      1);
  for (auto trial = history_.rbegin(); trial != history_.rend(); ++trial) {
    const std::vector<double>& stored = trial->proposal.hyperparameters;
    if (!counts(*trial) || static_cast<Eigen::Index>(stored.size()) != length) continue;
    return Eigen::Map<const Eigen::VectorXd>(stored.data(), length);
  }
  return std::nullopt;
}

void TrialModel::fit(Rng& rng) {
  const auto count = static_cast<Eigen::Index>(measured_.size());
  Eigen::VectorXd values(count);
  Eigen::VectorXd variances(count);
  for (Eigen::Index row = 0; row < count; ++row) {
    const Trial& trial = history_[measured_[static_cast<std::size_t>(row)]];
    const double value = *value_of(trial, objective_);
    values(row) = scale_.to_latent(value);
    const double sem = noise_.total_sem(value, std::get<Measured>(*trial.outcome).value_sem);
    variances(row) = scale_.latent_variance(value, sem);
  }
  values_.fit({measured_points_, values, variances}, rng, last_fit());
  incumbent_ = predict_measured().mean.maxCoeff();
}

void TrialModel::believe_pending() {
  std::vector<Configuration> pending;
  for (const Trial& trial : history_) {
    if (!trial.outcome && counts(trial)) pending.push_back(trial.proposal.configuration);
  }
  if (!pending.empty()) values_.believe(candidates_.encode(pending));
}

std::vector<double> TrialModel::hyperparameters() const {
  const Eigen::VectorXd& fitted = values_.theta();
  return {fitted.begin(), fitted.end()};
}

}  // namespace krigtune
