#include "search/model/trial_model.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "krigtune/surrogate/acquisition.h"
#include "search/model/best.h"

namespace krigtune::search {

// A smooth surrogate explains what it cannot follow as noise. There are two kinds: errors of measurement, which another
// measurement would not repeat, and effects that are specific to a configuration (a kernel that suits just this size),
// which it would. With y the observed values and g the smooth function,
//
//   y_c = f_c + e_c,   f_c = g(x_c) + d_c,   e_c ~ N(0, V_c),   d_c ~ N(0, D_c)
//
// the surrogate's process observes y with noise V + D. With K_y the covariance of y and alpha = K_y^-1 (y - m),
//
//   E[f | y]   = y - V alpha
//   Cov[f | y] = V - V K_y^-1 V
//   Cov[f, g(x) | y] = V K_y^-1 k(X, x)
//
// If the effects of runs (run_effects.cpp) are not known, F z with z ~ N(0, I) is part of e, and V + F F^T replaces V.
// (The derivation conditions e on y and subtracts it from y; Rasmussen & Williams 2006, equations 2.23-2.24.) If V = 0,
// the observed values are exactly what is achieved; if D = 0, the result is the surrogate's own posterior.

namespace {

// Repeated points share one row of the process.
Eigen::Index row_of(const surrogate::GaussianProcess& process, const surrogate::Points& points, Eigen::Index i) {
  const surrogate::Points& rows = process.points();
  for (Eigen::Index row = i < process.observed() ? i : 0; row >= 0; --row) {
    if (rows.ordered.row(row) == points.ordered.row(i) && rows.categories.row(row) == points.categories.row(i)) {
      return row;
    }
  }
  return 0;
}

Eigen::MatrixXd solve(const surrogate::GaussianProcess& process, Eigen::MatrixXd right) {
  process.lower().triangularView<Eigen::Lower>().solveInPlace(right);
  process.lower().triangularView<Eigen::Lower>().transpose().solveInPlace(right);
  return right;
}

}  // namespace

AchievedValues::AchievedValues(const surrogate::Surrogate& surrogate, const surrogate::Points& points,
                               const Eigen::VectorXd& measurement, double offset, const Eigen::MatrixXd& runs)
    : surrogate_(surrogate), measurement_(measurement.asDiagonal()) {
  if (runs.cols() > 0) measurement_ += runs * runs.transpose();
  measurement_ /= surrogate.scale() * surrogate.scale();
  const surrogate::GaussianProcess& process = surrogate.processes().front();
  const surrogate::Points standardised = surrogate.standardised(points);
  for (Eigen::Index i = 0; i < points.size(); ++i) rows_.push_back(row_of(process, standardised, i));
  const Eigen::Index count = process.points().size();
  const Eigen::MatrixXd inverse = solve(process, Eigen::MatrixXd::Identity(count, count));
  const Eigen::VectorXd alpha = process.lower().triangularView<Eigen::Lower>().transpose().solve(process.whitened());
  mean_ = process.values()(rows_) - measurement_ * alpha(rows_);
  mean_ = offset + surrogate.shift() + surrogate.scale() * mean_.array();
  covariance_ = measurement_ - measurement_ * inverse(rows_, rows_) * measurement_;
  covariance_ *= surrogate.scale() * surrogate.scale();
}

Eigen::VectorXd AchievedValues::covariance_with(const surrogate::Points& point) const {
  const surrogate::GaussianProcess& process = surrogate_.processes().front();
  const Eigen::VectorXd k = process.prior_covariance(process.points(), surrogate_.standardised(point)).col(0);
  const double square = surrogate_.scale() * surrogate_.scale();
  return square * (measurement_ * solve(process, k).col(0)(rows_));
}

// Trials of one configuration become one observation: the plain mean of their latent values, each converted to the
// scale of the latest run (run_effects.cpp). The differences between runs outweigh the errors that the trials state
// (objective_scale.cpp), so weights by stated errors would be random.
namespace {

struct Sums {
  double values = 0.0;
  double variances = 0.0;
  Eigen::RowVectorXd runs;
};

Sums sums_of(const session::Objective& objective, const History& history, const std::vector<std::size_t>& trials,
             const ObjectiveScale& scale, const TrialNoise& noise, const RunEffects& effects) {
  Sums sums;
  sums.runs = Eigen::RowVectorXd::Zero(effects.columns());
  for (const std::size_t index : trials) {
    const double value = *value_of(history[index], objective);
    const double sem = noise.total_sem(value, std::get<trial::Measured>(*history[index].outcome).value_sem);
    const int run = history[index].proposal.run;
    sums.values += scale.to_latent(value) + effects.shift(run);
    sums.runs += effects.uncertainty(run);
    sums.variances += scale.latent_variance(value, sem);
  }
  return sums;
}

}  // namespace

MeasuredConfigurations measured_configurations(const session::Objective& objective, const Candidates& candidates,
                                               const History& history, const RunEffects& effects) {
  MeasuredConfigurations all;
  std::unordered_map<std::string, std::size_t> entry;
  std::vector<space::Configuration> configurations;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const journal::Trial& trial = history[i];
    const auto value = trial.outcome && counts(trial) ? value_of(trial, objective) : std::nullopt;
    if (!value || !std::isfinite(*value)) continue;
    const auto [its, is_new] = entry.emplace(candidates.key(trial.proposal.configuration), all.trials.size());
    if (is_new) {
      all.trials.emplace_back();
      configurations.push_back(trial.proposal.configuration);
    }
    all.trials[its->second].push_back(i);
    all.stated = all.stated && std::get<trial::Measured>(*trial.outcome).value_sem > 0.0;
  }
  const ObjectiveScale scale(objective, history);
  const TrialNoise noise(objective, history);
  const auto count = static_cast<Eigen::Index>(configurations.size());
  all.latent = {candidates.encode(configurations), Eigen::VectorXd(count), Eigen::VectorXd(count)};
  all.one_more.resize(count);
  all.runs.resize(count, effects.columns());
  for (Eigen::Index row = 0; row < count; ++row) {
    const std::vector<std::size_t>& trials = all.trials[static_cast<std::size_t>(row)];
    const auto repeats = static_cast<double>(trials.size());
    const Sums sums = sums_of(objective, history, trials, scale, noise, effects);
    all.latent.values(row) = sums.values / repeats;
    all.latent.variance(row) = sums.variances / (repeats * repeats);
    all.one_more(row) = sums.variances / repeats;
    all.runs.row(row) = sums.runs / repeats;
  }
  return all;
}

MeasuredConfigurations rows_of(const MeasuredConfigurations& measured, const std::vector<Eigen::Index>& rows) {
  MeasuredConfigurations some;
  for (const Eigen::Index row : rows) some.trials.push_back(measured.trials[static_cast<std::size_t>(row)]);
  some.latent = {measured.latent.points.rows(rows), measured.latent.values(rows), measured.latent.variance(rows)};
  some.one_more = measured.one_more(rows);
  some.runs = measured.runs(rows, Eigen::all);
  some.stated = measured.stated;
  return some;
}

bool values_are_exact(const session::Session& session) {
  return session.table != nullptr && runner::repeats_exactly(session.runner);
}

// Beyond kMostExact the candidates are first predicted by the process alone, and only those with the largest expected
// improvement (EI) are predicted with their neighbours. With B the knowledge of the process and N the neighbours
//
//   EI given B = E[EI given B and N | B]       (the tower rule: each is the mean of max(f - best, 0))
//   P(EI given B and N >= c) <= EI given B / c (Markov's inequality)
//
// so the skipped candidates are unlikely to be the best.
namespace {

constexpr Eigen::Index kMostRefined = 2048;
constexpr int kStaleShare = 20;  // hyperparameters are fitted again after one twentieth more trials
constexpr Eigen::Index kMostBounds = 128;

// Predictions of so many values, over all hypotheses together, take about a second.
constexpr std::size_t kMostValues = 12'000;
constexpr std::size_t kMostShares = 12;
constexpr std::size_t kMostDoubted = 20'000;  // of longer lists, only the likeliest hypothesis predicts all values
constexpr std::size_t kFewestShares = 6;

std::vector<space::Configuration> configurations_of(const History& history, const MeasuredConfigurations& measured) {
  std::vector<space::Configuration> configurations;
  for (const std::vector<std::size_t>& trials : measured.trials) {
    configurations.push_back(history[trials.front()].proposal.configuration);
  }
  return configurations;
}

std::shared_ptr<const JobBelief> belief_of(const Candidates& candidates, const History& history,
                                           const ObjectiveScale& scale, const MeasuredConfigurations& measured) {
  if (candidates.hypotheses() == nullptr) return nullptr;
  const std::vector<space::Configuration> configurations = configurations_of(history, measured);
  const surrogate::Observations latent = scale.logarithmic() ? measured.latent : surrogate::Observations{};
  const bool is_short = candidates.listed() && candidates.size() > 0 && candidates.size() <= kMostDoubted;
  const std::size_t most =
      is_short ? std::clamp(kMostValues / candidates.size(), kFewestShares, kMostShares) : std::size_t{1};
  auto belief = std::make_shared<const JobBelief>(candidates, history, MeasuredValues{configurations, latent}, most);
  const bool is_stranger = candidates.hypotheses()->guess_roles() && belief->probability_of_no_step() > 0.5;
  return is_stranger ? nullptr : belief;
}

// The job's prior is the first one. Without a belief about the job there is none.
forecast::Priors priors_of(const Candidates& candidates, const JobBelief* job) {
  forecast::Priors priors = candidates.priors();
  if (candidates.hypotheses() != nullptr && job == nullptr) priors.erase(priors.begin());
  return priors;
}

bool has_unforeseen_failure(const History& history) {
  return std::any_of(history.begin(), history.end(), [](const journal::Trial& trial) {
    return trial.outcome && counts(trial) && trial::is_unforeseen_failure(*trial.outcome);
  });
}

}  // namespace

TrialModel::TrialModel(const session::Objective& objective, const Candidates& candidates, const History& history,
                       Eigen::Index most_exact)
    : candidates_(candidates),
      history_(history),
      scale_(objective, history),
      effects_(objective, history),
      measured_(measured_configurations(objective, candidates, history, effects_)),
      job_(belief_of(candidates, history, scale_, measured_)),
      priors_(priors_of(candidates, job_.get())),
      closed_(closed_trials(history)),
      has_failures_(has_unforeseen_failure(history)),
      widening_(learned_widening(objective, scale_, history)),
      values_(priors_, scale_.logarithmic(), effects_.columns(), !candidates.space().listable(),
              job_ ? static_cast<Eigen::Index>(job_->shares().size()) : 0) {
  measured_.latent.points = with_job(std::move(measured_.latent.points), configurations_of(history, measured_));
  if (measured_.size() <= most_exact) return;
  const std::vector<Eigen::Index> rows = relevant_rows(measured_.latent.points, measured_.latent.values, most_exact);
  others_ = rows_of(measured_, other_rows(rows, measured_.size()));
  measured_ = rows_of(measured_, rows);
}

surrogate::Points TrialModel::with_job(surrogate::Points points,
                                       const std::vector<space::Configuration>& configurations) const {
  if (job_ == nullptr) {
    if (candidates_.hypotheses() == nullptr) return points;
    const Eigen::MatrixXd others = points.features.rightCols(points.features.cols() - 1);
    points.features = others;
    return points;
  }
  const Eigen::MatrixXd values = job_->log_values(configurations);
  const Eigen::Index priors = points.features.cols();
  points.features.conservativeResize(points.size(), priors + values.cols() - 1);
  points.features.col(0) = values.col(0);  // the job's prior is the first one
  points.features.rightCols(values.cols() - 1) = values.rightCols(values.cols() - 1);
  return points;
}

surrogate::Points TrialModel::encode(const std::vector<space::Configuration>& configurations) const {
  return with_job(candidates_.encode(configurations), configurations);
}

surrogate::Points TrialModel::points_of(const CandidateList& list) const {
  return with_job(list.points, list.configurations);
}

bool TrialModel::plans_memory() const {
  return job_plans_memory() || (candidates_.filter().knows_memory() && !candidates_.filter().is_exact());
}

std::vector<std::optional<plan::MemoryVerdict>> TrialModel::memory_of(
    const std::vector<space::Configuration>& configurations) const {
  if (job_plans_memory()) return job_->memory(configurations);
  std::vector<std::optional<plan::MemoryVerdict>> memory;
  for (const space::Configuration& one : configurations) memory.push_back(candidates_.filter().planned(one));
  return memory;
}

std::vector<std::optional<plan::MemoryVerdict>> TrialModel::memory_of(const CandidateList& list) const {
  return job_plans_memory() ? job_->memory(list.configurations) : list.memory;
}

std::optional<TrialModel::LastFit> TrialModel::last_fit() const {
  const auto length = static_cast<Eigen::Index>(
      surrogate::make_kernel(values_.kernel())
          ->hyperparameters(measured_.latent.points.ordered.cols(), measured_.latent.points.categories.cols())
          .size() +
      1);
  for (auto trial = history_.rbegin(); trial != history_.rend(); ++trial) {
    const std::vector<double>& stored = trial->proposal.hyperparameters;
    if (!counts(*trial) || static_cast<Eigen::Index>(stored.size()) != length) continue;
    return LastFit{Eigen::Map<const Eigen::VectorXd>(stored.data(), length), trial->proposal.fitted_to};
  }
  return std::nullopt;
}

bool TrialModel::is_recent(const LastFit& last, bool may_reuse) const {
  if (last.fitted_to == 0 || last.fitted_to > closed_) return false;
  if (measured_.size() + others_.size() > kMostExact) return kStaleShare * (closed_ - last.fitted_to) < closed_;
  return may_reuse && last.fitted_to == closed_;
}

void TrialModel::fit(Rng& rng, bool may_reuse) {
  const std::optional<LastFit> last = last_fit();
  if (last && is_recent(*last, may_reuse)) {
    values_.condition(measured_.latent, last->theta, measured_.runs);
    fitted_to_ = last->fitted_to;
  } else {
    const std::optional<Eigen::VectorXd> start = last ? std::optional(last->theta) : std::nullopt;
    values_.fit(measured_.latent, rng, start, measured_.runs);
    fitted_to_ = closed_;
  }
  knows_others_ = false;
  achieved_.reset();
  learn_from_bounded();
  incumbent_ = predict_measured().mean.maxCoeff();
}

void TrialModel::learn_from_others() const {
  if (!knows_others_) values_.add_nearby(others_.latent, others_.runs);
  knows_others_ = true;
}

surrogate::Prediction TrialModel::predict(const surrogate::Points& points) const {
  learn_from_others();
  return values_.predict(points);
}

void TrialModel::keep(const surrogate::Points& candidates) {
  learn_from_others();
  coarse_ = values_.predict_coarsely(candidates);
  const Eigen::VectorXd promise = surrogate::log_expected_improvement(coarse_, incumbent_);
  refined_.resize(static_cast<std::size_t>(candidates.size()));
  for (std::size_t i = 0; i < refined_.size(); ++i) refined_[i] = static_cast<Eigen::Index>(i);
  const auto precedes = [&](Eigen::Index a, Eigen::Index b) {
    return promise(a) != promise(b) ? promise(a) > promise(b) : a < b;
  };
  if (candidates.size() > kMostRefined) {
    std::nth_element(refined_.begin(), refined_.begin() + kMostRefined, refined_.end(), precedes);
    refined_.resize(static_cast<std::size_t>(kMostRefined));
  }
  values_.keep(candidates.rows(refined_));
}

surrogate::Prediction TrialModel::kept() const {
  surrogate::Prediction prediction = coarse_;
  const surrogate::Prediction refined = values_.kept();
  prediction.mean(refined_) = refined.mean;
  prediction.variance(refined_) = refined.variance;
  return prediction;
}

Eigen::VectorXd TrialModel::probability(const surrogate::Points& points,
                                        const std::vector<std::optional<plan::MemoryVerdict>>& memory) const {
  if (!success_) {
    TrialSuccess::MemoryOf memory_of;
    if (job_plans_memory()) {
      memory_of = [this](const std::vector<space::Configuration>& of) { return job_->memory(of); };
    }
    success_ = std::make_shared<const TrialSuccess>(candidates_, history_, memory_of);
  }
  return success_->probability(points, memory);
}

void TrialModel::learn_from_bounded() {
  std::vector<space::Configuration> configurations;
  std::vector<double> bounds;
  std::vector<Eigen::RowVectorXd> uncertainties;
  for (const journal::Trial& trial : history_) {
    const auto* bounded = trial.outcome && counts(trial) ? std::get_if<trial::Bounded>(&*trial.outcome) : nullptr;
    if (bounded == nullptr || (scale_.logarithmic() && !(bounded->at_best > 0.0))) continue;
    configurations.push_back(trial.proposal.configuration);
    bounds.push_back(scale_.to_latent(bounded->at_best) + effects_.shift(trial.proposal.run));
    uncertainties.push_back(effects_.uncertainty(trial.proposal.run));
  }
  if (bounds.empty()) return;
  Eigen::MatrixXd runs(static_cast<Eigen::Index>(bounds.size()), effects_.columns());
  for (std::size_t i = 0; i < bounds.size(); ++i) runs.row(static_cast<Eigen::Index>(i)) = uncertainties[i];
  const Eigen::Map<const Eigen::VectorXd> all(bounds.data(), static_cast<Eigen::Index>(bounds.size()));
  const surrogate::Points points = encode(configurations);
  if (all.size() <= kMostBounds) return values_.bound_from_above(points, all, runs);
  // With many bounds, the model uses the largest ones, those near the largest, and some that fill the gaps.
  const std::vector<Eigen::Index> rows = relevant_rows(points, all, kMostBounds);
  values_.bound_from_above(points.rows(rows), all(rows), runs(rows, Eigen::all));
}

const AchievedValues& TrialModel::achieved(bool exact) const {
  if (achieved_ && achieved_->first == exact) return achieved_->second;
  const double learned = values_.surrogate().noise_stddev();
  const Eigen::VectorXd measurement = measured_.latent.variance.array() + learned * learned - own_variance(exact);
  achieved_.emplace(exact, AchievedValues(values_.surrogate(), values_.centred(measured_.latent.points), measurement,
                                          values_.offset(), measured_.runs));
  return achieved_->second;
}

double TrialModel::own_variance(bool exact) const {
  const double learned = values_.surrogate().noise_stddev();
  return exact || measured_.stated ? learned * learned : 0.0;
}

void TrialModel::believe_pending() {
  std::vector<space::Configuration> pending;
  for (const journal::Trial& trial : history_) {
    if (!trial.outcome && counts(trial)) pending.push_back(trial.proposal.configuration);
  }
  believe(pending);
}

void TrialModel::believe(const std::vector<space::Configuration>& pending) {
  constexpr double kLeast = 0.01;  // whoever proposed it expected a value
  if (pending.empty()) return;
  learn_from_others();
  if (is_exact()) achieved_.reset();
  const surrogate::Points points = encode(pending);
  values_.believe(points,
                  has_failures() ? probability(points, memory_of(pending)).cwiseMax(kLeast) : Eigen::VectorXd());
}

std::vector<double> TrialModel::hyperparameters() const {
  const Eigen::VectorXd& fitted = values_.theta();
  return {fitted.begin(), fitted.end()};
}

// A surrogate with hyperparameters fitted to ten trials is more certain than it should be, and real clusters have
// configurations that are 2 to 30 times slower than their neighbours for reasons that no model covers. Each trial tests
// a prediction made before it ran (the prequential principle: Dawid 1984, "Statistical theory: the prequential
// approach"), so the session itself shows how wide its intervals must be. With z_i the error of trial i's prediction in
// the surrogate's standard deviations,
//
//   z_i ~ Student t with nu = 4 degrees of freedom and scale s,   s^2 starts as if kPriorTrials trials had said s = 1
//   s^2 = (kPriorTrials + sum_i w_i z_i^2) / (kPriorTrials + n),   w_i = (nu + 1) / (nu + z_i^2 / s^2)
//
// (the EM algorithm for t errors: Lange, Little & Taylor 1989, "Robust statistical modeling using the t distribution").
// The factor makes a normal interval of 90 % as wide as that of s t, but never narrower than the surrogate's own: three
// trials near their predictions are no reason for more certainty. Errors beyond 6 count as 6, so one link that
// retransmits widens the intervals but does not make them useless.
namespace {

constexpr double kDegrees = 4.0;                 // nu
constexpr double kPriorTrials = 3.0;             // weight of the prior, in trials
constexpr double kLargestError = 6.0;            // z
constexpr double kWidthRatio = 2.1318 / 1.6449;  // 95 % points of t with 4 degrees of freedom and of the normal
constexpr int kMostSteps = 50;

// Prediction errors in units of the standard deviation before widening.
std::vector<double> prediction_errors(const session::Objective& objective, const ObjectiveScale& scale,
                                      const History& history) {
  std::vector<double> errors;
  for (const journal::Trial& trial : history) {
    const journal::Proposal& proposal = trial.proposal;
    const std::optional<double> value = value_of(trial, objective);
    if (!value || proposal.repeat_of || !proposal.predicted_value || !proposal.predicted_stddev) continue;
    const double predicted = *proposal.predicted_value;
    if (scale.logarithmic() && !(predicted > 0.0)) continue;
    const double stddev = scale.latent_stddev(predicted, *proposal.predicted_stddev) / proposal.widening;
    const double error = (scale.to_latent(*value) - scale.to_latent(predicted)) / stddev;
    if (std::isfinite(error)) errors.push_back(std::min(std::abs(error), kLargestError));
  }
  return errors;
}

double student_scale(const std::vector<double>& errors) {
  double square = 1.0;
  for (int step = 0; step < kMostSteps; ++step) {
    double sum = kPriorTrials;
    for (const double error : errors) sum += (kDegrees + 1.0) / (kDegrees + error * error / square) * error * error;
    square = sum / (kPriorTrials + static_cast<double>(errors.size()));
  }
  return std::sqrt(square);
}

}  // namespace

std::unique_ptr<TrialModel> fitted_model(const session::Objective& objective, const Candidates& candidates,
                                         const History& history, std::uint64_t seed) {
  auto model = std::make_unique<TrialModel>(objective, candidates, history);
  if (model->has_values()) {
    Rng rng(seed, static_cast<std::uint64_t>(counted_trials(history)));
    model->fit(rng);
  }
  return model;
}

double learned_widening(const session::Objective& objective, const ObjectiveScale& scale, const History& history) {
  return std::max(1.0, kWidthRatio * student_scale(prediction_errors(objective, scale, history)));
}

}  // namespace krigtune::search
