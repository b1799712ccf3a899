// Failures. A trial succeeds with probability P(x), a Gaussian-process classifier whose latent has the prior mean m(x),
// Phi(m) being its probability of success (probits). Without a memory plan m = 1.17 (88 %). With the bench runner's
// plan, exact to the byte, what does not fit was never a candidate and m = 1.65 (95 %): other things fail. If memory
// runs out all the same, the device has less than was said: the smallest planned peak that failed bounds it from above
// (a censored observation of the wall), the largest that ran bounds it from below, and
//
//   m(x) = min(log(wall / memory(x)) / 0.15, 1.65)  below it: a normal error of 15 % of log memory,
//   m(x) = -5                                       at and above it: planned bytes are exact, who needs as many fails,
//
// unless something larger did run: then the planned peak is not what decides, and the first line holds everywhere.
// For other programs memory is predicted with a probability p of fitting: m = Phi^-1(p), within [-1.65, 1.65].
#include "model/trial_model.h"

#include <algorithm>
#include <cmath>

namespace krigtune {
namespace {

constexpr double kPriorMean = 1.17;
constexpr double kPlannedMean = 1.65;
constexpr double kLogMemoryError = 0.15;
constexpr double kCannotRunMean = -5.0;

// Failing is mostly a matter of direction (more of this, less of that): a trend says so after two failures.
SuccessOptions success_options() {
  SuccessOptions options;
  options.slope_stddev = 1.2;
  return options;
}

// Throughput over a training configuration is smoother than what strangers optimise: lengthscales of about the whole
// range.
SurrogateOptions surrogate_options() {
  SurrogateOptions options;
  options.priors.lengthscale = {0.0, 0.7};
  return options;
}

// Where the priors are, what is left to the process is the error of their sum: residuals of half a nat, in nats. Three
// constants of the search recipe, fitted on the tuning tables of experiments/data by trials to the best.
SurrogateOptions residual_options(const Priors& priors) {
  Eigen::VectorXd centre(static_cast<Eigen::Index>(priors.size()));
  Eigen::VectorXd stddev(centre.size());
  for (std::size_t k = 0; k < priors.size(); ++k) {
    const Prior::Coefficient coefficient = priors[k]->coefficient();
    centre(static_cast<Eigen::Index>(k)) = coefficient.centre;
    stddev(static_cast<Eigen::Index>(k)) = coefficient.stddev;
  }
  SurrogateOptions options;
  options.standardise = false;
  options.mean = Mean::weighted(1.0, centre, stddev);
  options.priors.lengthscale = {std::log(0.6), 0.7};
  options.priors.signal_stddev = {std::log(0.5), 0.7};
  options.priors.noise_stddev = {std::log(0.03), 0.5};
  return options;
}

SurrogateOptions options_for(const Priors& priors) {
  return priors.empty() ? surrogate_options() : residual_options(priors);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of trials that count.
bool is_unforeseen_failure(const Outcome& outcome) {
  if (const auto* oom = std::get_if<OutOfMemory>(&outcome)) return !oom->predicted;
  return std::holds_alternative<Failed>(outcome);
}

bool is_unforeseen_oom(const Outcome& outcome) {
  return std::holds_alternative<OutOfMemory>(outcome) && is_unforeseen_failure(outcome);
}

bool ran(const Outcome& outcome) {
  return std::holds_alternative<Measured>(outcome) || std::holds_alternative<Bounded>(outcome);
}

}  // namespace

TrialModel::TrialModel(const Objective& objective, const Candidates& candidates, const History& history)
    : objective_(objective),
      candidates_(candidates),
      history_(history),
      scale_(objective, history),
      measured_(measured_configurations(objective, candidates, history)),
      surrogate_(options_for(candidates.priors())),
      success_(make_kernel(KernelKind::kMatern52), success_options()) {
  prior_centres_.resize(static_cast<Eigen::Index>(candidates.priors().size()));
  for (std::size_t k = 0; k < candidates.priors().size(); ++k) {
    prior_centres_(static_cast<Eigen::Index>(k)) = candidates.priors()[k]->coefficient().centre;
  }
  read_outcomes();
  fit_success();
}

Eigen::VectorXd TrialModel::prior_values(const Points& points) const {
  if (prior_centres_.size() == 0) return Eigen::VectorXd::Zero(points.size());
  return points.features * prior_centres_;
}

Points TrialModel::centred(const Points& points) const {
  Points result = points;
  result.features.rowwise() -= prior_shifts_;
  return result;
}

Prediction TrialModel::predict(const Points& points) const {
  Prediction prediction = surrogate_.predict(centred(points));
  prediction.mean.array() += offset_;
  return prediction;
}

void TrialModel::read_outcomes() {
  double most_that_ran = 0.0;
  for (const Trial& trial : history_) {
    if (!trial.outcome || !counts(trial)) continue;
    has_failures_ = has_failures_ || is_unforeseen_failure(*trial.outcome);
    const std::optional<MemoryVerdict> memory = candidates_.memory_of(trial.proposal.configuration);
    if (!memory) continue;
    const auto bytes = static_cast<double>(memory->predicted.count);
    if (is_unforeseen_oom(*trial.outcome)) memory_wall_ = std::min(memory_wall_.value_or(bytes), bytes);
    if (ran(*trial.outcome)) most_that_ran = std::max(most_that_ran, bytes);
  }
  wall_is_sharp_ = memory_wall_ && most_that_ran < *memory_wall_;
  if (memory_wall_) memory_wall_ = std::max(*memory_wall_, most_that_ran);
}

double TrialModel::prior_mean(const std::optional<MemoryVerdict>& memory) const {
  if (!memory) return kPriorMean;
  if (!candidates_.filter().is_exact()) {
    constexpr double kLeast = 1e-3;
    const double probability = std::clamp(memory->probability_fits, kLeast, 1.0 - kLeast);
    return std::clamp(probit(probability), -kPlannedMean, kPlannedMean);
  }
  if (!memory_wall_) return kPlannedMean;
  const auto bytes = static_cast<double>(memory->predicted.count);
  if (wall_is_sharp_ && bytes >= *memory_wall_) return kCannotRunMean;
  return std::min(std::log(*memory_wall_ / bytes) / kLogMemoryError, kPlannedMean);
}

void TrialModel::fit_success() {
  std::vector<Configuration> configurations;
  std::vector<bool> succeeded;
  std::vector<double> prior;
  for (const Trial& trial : history_) {
    if (!trial.outcome || !counts(trial) || (!ran(*trial.outcome) && !is_unforeseen_failure(*trial.outcome))) continue;
    configurations.push_back(trial.proposal.configuration);
    succeeded.push_back(ran(*trial.outcome));
    prior.push_back(prior_mean(candidates_.memory_of(trial.proposal.configuration)));
  }
  success_.fit(candidates_.encode(configurations),
               Eigen::Map<const Eigen::VectorXd>(prior.data(), static_cast<Eigen::Index>(prior.size())), succeeded);
}

Eigen::VectorXd TrialModel::probability(const Points& points,
                                        const std::vector<std::optional<MemoryVerdict>>& memory) const {
  Eigen::VectorXd prior(points.size());
  for (Eigen::Index i = 0; i < prior.size(); ++i) prior(i) = prior_mean(memory[static_cast<std::size_t>(i)]);
  return success_.probability(points, prior);
}

std::optional<Eigen::VectorXd> TrialModel::last_fit() const {
  const auto length = static_cast<Eigen::Index>(
      make_kernel(KernelKind::kMatern52)
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
  prior_shifts_ = measured_.latent.points.features.colwise().mean();
  const Points points = centred(measured_.latent.points);
  const Eigen::VectorXd over_priors = measured_.latent.values - prior_values(points);
  offset_ = candidates_.priors().empty() ? 0.0 : median({over_priors.begin(), over_priors.end()});
  surrogate_.fit({points, measured_.latent.values.array() - offset_, measured_.latent.variance}, rng, last_fit());
  incumbent_ = predict_measured().mean.maxCoeff();
}

AchievedValues TrialModel::achieved(bool exact) const {
  const double learned = surrogate_.noise_stddev();
  const Eigen::VectorXd measurement = measured_.latent.variance.array() + learned * learned - own_variance(exact);
  return {surrogate_, centred(measured_.latent.points), measurement, offset_};
}

double TrialModel::own_variance(bool exact) const {
  const double learned = surrogate_.noise_stddev();
  return exact || measured_.stated ? learned * learned : 0.0;
}

void TrialModel::believe_pending() {
  std::vector<Configuration> pending;
  for (const Trial& trial : history_) {
    if (!trial.outcome && counts(trial)) pending.push_back(trial.proposal.configuration);
  }
  if (!pending.empty()) surrogate_.believe(centred(candidates_.encode(pending)));
}

std::vector<double> TrialModel::hyperparameters() const {
  const Eigen::VectorXd& fitted = surrogate_.theta();
  return {fitted.begin(), fitted.end()};
}

}  // namespace krigtune
