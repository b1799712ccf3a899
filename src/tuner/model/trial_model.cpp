#include "model/trial_model.h"

#include <cmath>

#include "model/calibration.h"

namespace krigtune {

TrialModel::TrialModel(const Objective& objective, const Candidates& candidates, const History& history)
    : candidates_(candidates),
      history_(history),
      scale_(objective, history),
      effects_(objective, history),
      measured_(measured_configurations(objective, candidates, history, effects_)),
      widening_(learned_widening(objective, scale_, history)),
      values_(candidates.beliefs(), scale_.logarithmic(), effects_.columns(), !candidates.space().listable()),
      success_(candidates, history) {}

std::optional<Eigen::VectorXd> TrialModel::last_fit() const {
  const auto length = static_cast<Eigen::Index>(
      make_kernel(values_.kernel())
          ->hyperparameters(measured_.latent.points.ordered.cols(), measured_.latent.points.categories.cols())
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
  values_.fit(measured_.latent, rng, last_fit(), measured_.runs);
  learn_from_bounded();
  incumbent_ = predict_measured().mean.maxCoeff();
}

void TrialModel::learn_from_bounded() {
  std::vector<Configuration> configurations;
  std::vector<double> bounds;
  std::vector<Eigen::RowVectorXd> uncertainties;
  for (const Trial& trial : history_) {
    const auto* bounded = trial.outcome && counts(trial) ? std::get_if<Bounded>(&*trial.outcome) : nullptr;
    if (bounded == nullptr || (scale_.logarithmic() && !(bounded->at_best > 0.0))) continue;
    configurations.push_back(trial.proposal.configuration);
    bounds.push_back(scale_.to_latent(bounded->at_best) + effects_.shift(trial.proposal.run));
    uncertainties.push_back(effects_.uncertainty(trial.proposal.run));
  }
  if (bounds.empty()) return;
  Eigen::MatrixXd runs(static_cast<Eigen::Index>(bounds.size()), effects_.columns());
  for (std::size_t i = 0; i < bounds.size(); ++i) runs.row(static_cast<Eigen::Index>(i)) = uncertainties[i];
  values_.bound_from_above(candidates_.encode(configurations),
                           Eigen::Map<const Eigen::VectorXd>(bounds.data(), static_cast<Eigen::Index>(bounds.size())),
                           runs);
}

AchievedValues TrialModel::achieved(bool exact) const {
  const double learned = values_.surrogate().noise_stddev();
  const Eigen::VectorXd measurement = measured_.latent.variance.array() + learned * learned - own_variance(exact);
  return {values_.surrogate(), values_.centred(measured_.latent.points), measurement, values_.offset(), measured_.runs};
}

double TrialModel::own_variance(bool exact) const {
  const double learned = values_.surrogate().noise_stddev();
  return exact || measured_.stated ? learned * learned : 0.0;
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
