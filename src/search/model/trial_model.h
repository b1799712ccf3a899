#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "krigtune/surrogate/points.h"
#include "krigtune/surrogate/surrogate.h"
#include "search/candidates/candidates.h"
#include "search/model/objective_model.h"
#include "search/model/relevant_trials.h"
#include "search/model/trial_success.h"
#include "search/trials/history.h"
#include "search/trials/objective_scale.h"
#include "search/trials/run_effects.h"

namespace krigtune::search {

/// What the measured configurations achieve, as distinct from what one measurement of them said and from what their
/// neighbours make of them. In latent units.
class AchievedValues {
 public:
  /// `points`: of the configurations; `measurement`: the variance of each one's observed value about what it achieves.
  /// The rest of the noise that `surrogate` knows is theirs to keep. `offset` is added to means. `runs`: a row each,
  /// the part of the observed value that is the clock's, times independent standard normal numbers that they share.
  /// `surrogate` must outlive it and stay as it is.
  AchievedValues(const surrogate::Surrogate& surrogate, const surrogate::Points& points,
                 const Eigen::VectorXd& measurement, double offset = 0.0, const Eigen::MatrixXd& runs = {});

  const Eigen::VectorXd& mean() const { return mean_; }
  const Eigen::MatrixXd& covariance() const { return covariance_; }
  /// With what another point achieves.
  Eigen::VectorXd covariance_with(const surrogate::Points& point) const;

 private:
  const surrogate::Surrogate& surrogate_;
  std::vector<Eigen::Index> rows_;  ///< of the surrogate's process
  Eigen::MatrixXd measurement_;     ///< covariance of observed values about what is achieved, standardised
  Eigen::VectorXd mean_;
  Eigen::MatrixXd covariance_;
};

/// The ok trials of a history, one entry a configuration in the order of their first measurements, on the scale of
/// the latest run.
struct MeasuredConfigurations {
  std::vector<std::vector<std::size_t>> trials;  ///< indices into the history, at least one each
  surrogate::Observations latent;                ///< means of the latent values; variance: of these means, as stated
  Eigen::VectorXd one_more;                      ///< latent variance of one more measurement, as stated
  Eigen::MatrixXd runs;                          ///< what the effects of runs leave unknown: RunEffects::uncertainty
  bool stated = true;                            ///< every trial states a spread

  Eigen::Index size() const { return latent.values.size(); }
};

MeasuredConfigurations measured_configurations(const session::Objective& objective, const Candidates& candidates,
                                               const History& history, const RunEffects& effects);
/// Some of them; `stated` is said of all.
MeasuredConfigurations rows_of(const MeasuredConfigurations& measured, const std::vector<Eigen::Index>& rows);

/// Whether a trial measured again gives the same value again: a table that is looked up, but for one that has several
/// rows in turn.
bool values_are_exact(const session::Session& session);

/// What the trials of a history say of the objective and of failing: the strategy bayes, the
/// recommendation and the predictions all ask this one. Up to kMostExact measured configurations it is one exact
/// Gaussian process. Beyond, the process knows as many that stand for all (relevant_rows), and a prediction knows its
/// nearest among the others besides (NearbyObservations). For one thread at a time.
class TrialModel {
 public:
  /// The arguments must outlive it. `most_exact`: measured configurations that the process may know.
  TrialModel(const session::Objective& objective, const Candidates& candidates, const History& history,
             Eigen::Index most_exact = kMostExact);

  bool has_values() const { return measured_.size() > 0; }
  /// A trial ended as it was not foreseen: failing is possible.
  bool has_failures() const { return has_failures_; }
  const ObjectiveScale& scale() const { return scale_; }
  /// Those that the process knows: all of them, or the best and what stands for the others.
  const MeasuredConfigurations& measured() const { return measured_; }

  /// Learns the objective's hyperparameters from the ok trials (at least one; bounds are then put in), starting where
  /// the last suggestion's fit ended, which its proposal holds. They are taken from there as they are where no trial
  /// was closed since (`may_reuse`), and beyond kMostExact while trials have become few more.
  void fit(Rng& rng, bool may_reuse = false);
  /// How many closed trials the hyperparameters were fitted to.
  int fitted_to() const { return fitted_to_; }
  /// Conditions on pending trials at their posterior mean, as far as they are likely to end with a value. After fit.
  void believe_pending();
  /// The same of some configurations.
  void believe(const std::vector<space::Configuration>& pending);
  /// Whether the process knows all that was measured.
  bool is_exact() const { return others_.size() == 0; }
  /// Keeps predictions of many candidates, of which only those that promise the most know their neighbours (see
  /// trial_model.cpp), while pending trials are believed: each then costs little. After fit, where not is_exact().
  void keep(const surrogate::Points& candidates);
  surrogate::Prediction kept() const;
  surrogate::Prediction predict(const surrogate::Points& points) const;
  /// What process() alone says: the same up to kMostExact.
  surrogate::Prediction predict_coarsely(const surrogate::Points& points) const {
    return values_.predict_coarsely(points);
  }
  /// Latent values of the measured configurations as the smooth function has them, in the order of measured().
  surrogate::Prediction predict_measured() const { return predict_coarsely(measured_.latent.points); }
  /// What they achieve, in the same order: what the surrogate cannot explain is theirs where trials state how far they
  /// may be wrong, or are `exact`; else it is taken for noise.
  const AchievedValues& achieved(bool exact) const;
  /// Latent variance of a configuration about the smooth function, by the same rule.
  double own_variance(bool exact) const;
  /// For draws of the latent function: its process, points as that knows them, and the latent units of its own.
  const surrogate::GaussianProcess& process() const { return values_.surrogate().processes().front(); }
  surrogate::Points known_points(const surrogate::Points& points) const {
    return values_.surrogate().standardised(centred(points));
  }
  double latent_unit() const { return values_.surrogate().scale(); }
  /// What the priors alone say, up to a constant; 0 where there is none.
  Eigen::VectorXd prior_values(const surrogate::Points& points) const { return values_.prior_values(points); }
  /// Points as achieved() takes them.
  surrogate::Points centred(const surrogate::Points& points) const { return values_.centred(points); }
  /// By what standard deviations are to be multiplied: predict() and achieved() do not.
  double widening() const { return widening_; }
  /// The largest posterior mean among the measured, before believing.
  double incumbent() const { return incumbent_; }
  std::vector<double> hyperparameters() const;

  /// Probability that a trial succeeds. `memory`: one a point.
  Eigen::VectorXd probability(const surrogate::Points& points,
                              const std::vector<std::optional<plan::MemoryVerdict>>& memory) const;
  /// What that is asked of, made when it is first needed; nullptr: it was not yet.
  const std::shared_ptr<const TrialSuccess>& success() const { return success_; }
  /// One of the same closed trials, so that it need not be made again.
  void use(std::shared_ptr<const TrialSuccess> success) { success_ = std::move(success); }

 private:
  struct LastFit {
    Eigen::VectorXd theta;
    int fitted_to = 0;
  };
  std::optional<LastFit> last_fit() const;
  bool is_recent(const LastFit& last, bool may_reuse) const;
  void learn_from_bounded();
  void learn_from_others() const;

  const Candidates& candidates_;
  const History& history_;
  ObjectiveScale scale_;
  RunEffects effects_;
  MeasuredConfigurations measured_;
  MeasuredConfigurations others_;  ///< beyond kMostExact: those that the process does not know
  int closed_;                     ///< trials
  bool has_failures_;
  int fitted_to_ = 0;
  double incumbent_ = 0.0;
  double widening_;
  surrogate::Prediction coarse_;            ///< of the candidates that are kept
  std::vector<Eigen::Index> refined_ = {};  ///< those of them that know their neighbours
  // What only some ask for is made when it is first asked.
  mutable ObjectiveModel values_;
  mutable bool knows_others_ = false;  ///< others_ are in values_
  mutable std::optional<std::pair<bool, AchievedValues>> achieved_;
  mutable std::shared_ptr<const TrialSuccess> success_;
};

/// Fitted where a trial is ok. The recommendation, predictions and importance of one history are told of one such fit:
/// the same seed gives the same again. The other arguments must outlive it.
std::unique_ptr<TrialModel> fitted_model(const session::Objective& objective, const Candidates& candidates,
                                         const History& history, std::uint64_t seed);

/// By what factor standard deviations of the surrogate are to be multiplied, so that central intervals of 90 % hold as
/// often as they say: by how far the trials of `history` were from what was predicted of them. 1.3 before any is known,
/// and never below 1. See trial_model.cpp.
double learned_widening(const session::Objective& objective, const ObjectiveScale& scale, const History& history);

}  // namespace krigtune::search
