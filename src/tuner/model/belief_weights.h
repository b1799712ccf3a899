#pragma once
#include <functional>
#include <vector>

#include "krigtune/surrogate/points.h"
#include "krigtune/tuner/prior.h"

namespace krigtune {

/// How probable each prior and its alternatives are, and what follows for the prior's values.
class BeliefWeights {
 public:
  /// The points' features: all priors, then all alternatives.
  explicit BeliefWeights(const std::vector<Belief>& beliefs);

  /// Weighs each prior against its alternatives by the log evidence of observations whose features are the priors'
  /// values, the other priors as they are.
  void learn(const Observations& latent, const std::function<double(const Observations&)>& log_evidence);
  /// The same points with one feature a prior: its values, averaged over what may be true in its place.
  Points mixed(const Points& points) const;

 private:
  // Of one prior: columns and probabilities, itself first.
  struct Hypotheses {
    std::vector<Eigen::Index> columns;
    Eigen::VectorXd before;
    Eigen::VectorXd now;
  };
  std::vector<Hypotheses> priors_;
};

}  // namespace krigtune
