#pragma once
#include <Eigen/Core>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/model/objective_model.h"
#include "search/trials/history.h"
#include "search/trials/objective_scale.h"

namespace krigtune::search {

/// The model of one further objective of a session with several (Session::others): a Gaussian process on the same
/// points as that of the first objective, without its priors, because these are about speed. If the objective is the
/// peak of memory and memory is planned, the process models what the plan gets wrong. Hyperparameters are learned anew
/// for every history. Beyond kMostExact measured configurations it knows a representative part.
class OtherObjective {
 public:
  /// The arguments must outlive it.
  OtherObjective(const session::Objective& objective, const Candidates& candidates, const History& history);

  bool has_values() const { return latent_.size() > 0; }
  /// Learns from the successful trials, of which there must be one.
  void fit(Rng& rng);
  /// Conditions on configurations that are running, at their posterior mean. Call after fit, like those below.
  void believe(const std::vector<space::Configuration>& pending);
  /// Predicts the noise-free function in latent units, where larger is better.
  surrogate::Prediction predict(const CandidateList& list) const;
  surrogate::Prediction predict(const std::vector<space::Configuration>& configurations) const;
  const ObjectiveScale& scale() const { return scale_; }
  /// Returns the variance of what the smooth function does not explain.
  double noise_variance() const;

 private:
  surrogate::Points with_plan(surrogate::Points points, const std::vector<std::optional<Bytes>>& planned) const;
  surrogate::Points encode(const std::vector<space::Configuration>& configurations) const;

  const Candidates& candidates_;
  ObjectiveScale scale_;
  bool is_planned_;  ///< the plan's memory is the mean
  ObjectiveModel model_;
  surrogate::Observations latent_;  ///< one per configuration
};

/// Returns the objective's mean over the successful trials of each of these configurations, in its own unit. Every
/// configuration needs such a trial.
std::vector<double> mean_values(const session::Objective& objective, const History& history,
                                const std::vector<space::Configuration>& configurations);

}  // namespace krigtune::search
