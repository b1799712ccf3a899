#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "krigtune/surrogate/points.h"
#include "krigtune/surrogate/surrogate.h"
#include "search/candidates/candidates.h"
#include "search/model/job_belief.h"
#include "search/model/objective_model.h"
#include "search/model/relevant_trials.h"
#include "search/model/trial_success.h"
#include "search/trials/history.h"
#include "search/trials/objective_scale.h"
#include "search/trials/run_effects.h"

namespace krigtune::search {

/// What the measured configurations achieve, as distinct from what one measurement said and from what the neighbours
/// suggest. In latent units.
class AchievedValues {
 public:
  /// `points`: those of the configurations. `measurement`: the variance of each one's observed value about what it
  /// achieves; the rest of the noise in `surrogate` is specific to the configuration. `offset` is added to means.
  /// `runs`: one row per configuration, whose product with a shared vector of independent standard normal numbers is
  /// the error from run effects. `surrogate` must outlive it and must not change.
  AchievedValues(const surrogate::Surrogate& surrogate, const surrogate::Points& points,
                 const Eigen::VectorXd& measurement, double offset = 0.0, const Eigen::MatrixXd& runs = {});

  const Eigen::VectorXd& mean() const { return mean_; }
  const Eigen::MatrixXd& covariance() const { return covariance_; }
  /// Returns the covariance with what another point achieves.
  Eigen::VectorXd covariance_with(const surrogate::Points& point) const;

 private:
  const surrogate::Surrogate& surrogate_;
  std::vector<Eigen::Index> rows_;  ///< of the surrogate's process
  Eigen::MatrixXd measurement_;     ///< covariance of observed values about what is achieved, standardised
  Eigen::VectorXd mean_;
  Eigen::MatrixXd covariance_;
};

/// The successful trials of a history, one entry per configuration in the order of their first measurements, on the
/// scale of the latest run.
struct MeasuredConfigurations {
  std::vector<std::vector<std::size_t>> trials;  ///< indices into the history, at least one each
  surrogate::Observations latent;  ///< means of the latent values; their variance is that of these means, as stated
  Eigen::VectorXd one_more;        ///< latent variance of one more measurement, as stated
  Eigen::MatrixXd runs;            ///< what is unknown of the effects of runs: RunEffects::uncertainty
  bool stated = true;              ///< every trial states a spread

  Eigen::Index size() const { return latent.values.size(); }
};

MeasuredConfigurations measured_configurations(const session::Objective& objective, const Candidates& candidates,
                                               const History& history, const RunEffects& effects);
/// Selects some of them; `stated` still refers to all.
MeasuredConfigurations rows_of(const MeasuredConfigurations& measured, const std::vector<Eigen::Index>& rows);

/// Returns whether measuring a configuration again always gives the same value: true for a table that is looked up,
/// unless it returns several rows of a configuration one after another.
bool values_are_exact(const session::Session& session);

/// What the trials of a history say about the objective and about failures. The strategy bayes, the recommendation and
/// the predictions all use it. Up to kMostExact measured configurations it is one exact Gaussian process. Beyond that,
/// the process knows kMostExact representative ones (relevant_rows), and a prediction also uses its nearest neighbours
/// among the others (NearbyObservations). Not thread-safe.
class TrialModel {
 public:
  /// The arguments must outlive it. `most_exact`: the number of measured configurations that the process may know.
  TrialModel(const session::Objective& objective, const Candidates& candidates, const History& history,
             Eigen::Index most_exact = kMostExact);

  bool has_values() const { return measured_.size() > 0; }
  /// Returns what the trials say about the job; nullptr if nothing is known of it, or if it is only guessed from
  /// values and probably no training step.
  const JobBelief* job() const { return job_.get(); }
  /// Returns whether memory_of() averages over what the job may be.
  bool job_plans_memory() const { return job_ != nullptr && search::job_plans_memory(candidates_); }
  /// Returns whether memory is predicted, but not exactly.
  bool plans_memory() const;
  /// Returns whether anything is believed about the objective before its values are measured.
  bool has_priors() const { return !priors_.empty(); }
  /// Encodes configurations in the form that all functions below expect.
  surrogate::Points encode(const std::vector<space::Configuration>& configurations) const;
  surrogate::Points points_of(const CandidateList& list) const;
  /// Returns whether configurations fit into memory, for probability().
  std::vector<std::optional<plan::MemoryVerdict>> memory_of(
      const std::vector<space::Configuration>& configurations) const;
  std::vector<std::optional<plan::MemoryVerdict>> memory_of(const CandidateList& list) const;
  /// Returns whether a trial failed unexpectedly, so that failures are possible.
  bool has_failures() const { return has_failures_; }
  const ObjectiveScale& scale() const { return scale_; }
  /// The configurations that the process knows: all, or the representative ones.
  const MeasuredConfigurations& measured() const { return measured_; }

  /// Learns the objective's hyperparameters from the successful trials (at least one) and then includes the bounds. It
  /// starts from the last suggestion's fit, which its proposal contains. With `may_reuse` it takes those
  /// hyperparameters unchanged if no trial was closed since, and beyond kMostExact while only a few were.
  void fit(Rng& rng, bool may_reuse = false);
  /// Returns the number of closed trials that the hyperparameters were fitted to.
  int fitted_to() const { return fitted_to_; }
  /// Conditions on pending trials at their posterior mean, weighted by their probability of success. Call after fit.
  void believe_pending();
  /// Does the same for given configurations.
  void believe(const std::vector<space::Configuration>& pending);
  /// Returns whether the process knows all measured configurations.
  bool is_exact() const { return others_.size() == 0; }
  /// Keeps the predictions of many candidates while pending trials are believed, so that each of these costs little.
  /// Only the most promising candidates use their neighbours (see trial_model.cpp). Call after fit, if not is_exact().
  void keep(const surrogate::Points& candidates);
  surrogate::Prediction kept() const;
  surrogate::Prediction predict(const surrogate::Points& points) const;
  /// Predicts with process() alone, which makes a difference only beyond kMostExact.
  surrogate::Prediction predict_coarsely(const surrogate::Points& points) const {
    return values_.predict_coarsely(points);
  }
  /// Returns the smooth function's latent values at the measured configurations, in the order of measured().
  surrogate::Prediction predict_measured() const { return predict_coarsely(measured_.latent.points); }
  /// Returns what they achieve, in the same order. What the surrogate cannot explain belongs to the configuration if
  /// trials state how far they may be wrong or are `exact`; otherwise it counts as noise.
  const AchievedValues& achieved(bool exact) const;
  /// Returns the latent variance of a configuration about the smooth function, by the same rule.
  double own_variance(bool exact) const;
  /// For draws of the latent function: its process, the points that the process knows, and its unit in latent units.
  const surrogate::GaussianProcess& process() const { return values_.surrogate().processes().front(); }
  surrogate::Points known_points(const surrogate::Points& points) const {
    return values_.surrogate().standardised(centred(points));
  }
  double latent_unit() const { return values_.surrogate().scale(); }
  /// Returns the values of the priors alone, up to a constant; 0 if there are none.
  Eigen::VectorXd prior_values(const surrogate::Points& points) const { return values_.prior_values(points); }
  /// Returns the points in the form that achieved() expects.
  surrogate::Points centred(const surrogate::Points& points) const { return values_.centred(points); }
  /// Returns the factor for standard deviations; predict() and achieved() do not apply it.
  double widening() const { return widening_; }
  /// Returns the largest posterior mean among the measured configurations, before pending trials are believed.
  double incumbent() const { return incumbent_; }
  std::vector<double> hyperparameters() const;

  /// Returns the probability that a trial succeeds. `memory`: one per point.
  Eigen::VectorXd probability(const surrogate::Points& points,
                              const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;
  /// The model behind probability(), made on its first call; nullptr before.
  const std::shared_ptr<const TrialSuccess>& success() const { return success_; }
  /// Uses a model of the same closed trials, so that it need not be made again.
  void use(std::shared_ptr<const TrialSuccess> success) { success_ = std::move(success); }

 private:
  struct LastFit {
    Eigen::VectorXd theta;
    int fitted_to = 0;
  };
  std::optional<LastFit> last_fit() const;
  bool is_recent(const LastFit& last, bool may_reuse) const;
  surrogate::Points with_job(surrogate::Points points, const std::vector<space::Configuration>& configurations) const;
  void learn_from_bounded();
  void learn_from_others() const;

  const Candidates& candidates_;
  const History& history_;
  ObjectiveScale scale_;
  RunEffects effects_;
  MeasuredConfigurations measured_;
  MeasuredConfigurations others_;  ///< beyond kMostExact: the configurations that the process does not know
  std::shared_ptr<const JobBelief> job_;
  forecast::Priors priors_;
  int closed_;  ///< trials
  bool has_failures_;
  int fitted_to_ = 0;
  double incumbent_ = 0.0;
  double widening_;
  surrogate::Prediction coarse_;            ///< of the candidates that are kept
  std::vector<Eigen::Index> refined_ = {};  ///< indices of those predicted with their neighbours
  // Parts that only some callers need are made when they are first used.
  mutable ObjectiveModel values_;
  mutable bool knows_others_ = false;  ///< others_ are in values_
  mutable std::optional<std::pair<bool, AchievedValues>> achieved_;
  mutable std::shared_ptr<const TrialSuccess> success_;
};

/// Fitted if a trial succeeded. The recommendation, predictions and importance of one history share one such fit; the
/// same seed gives the same result. The other arguments must outlive it.
std::unique_ptr<TrialModel> fitted_model(const session::Objective& objective, const Candidates& candidates,
                                         const History& history, std::uint64_t seed);

/// Returns the factor by which the surrogate's standard deviations must be multiplied so that central 90 % intervals
/// have their nominal coverage, learned from how far the trials of `history` were from their predictions. 1.3 without
/// any trial, and never below 1. See trial_model.cpp.
double learned_widening(const session::Objective& objective, const ObjectiveScale& scale, const History& history);

}  // namespace krigtune::search
