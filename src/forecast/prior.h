#pragma once
#include <Eigen/Core>
#include <memory>
#include <string>
#include <vector>

#include "forecast/forecast.h"
#include "space/space.h"
#include "space/well_known.h"

namespace krigtune::forecast {

class Hypotheses;

/// A belief about the objective before anything is measured here: a model of the machine, or earlier runs.
class Prior {
 public:
  /// The coefficient b ~ Normal(centre, stddev^2) of this prior in the surrogate's mean, a + sum_k b_k prior_k.
  struct Coefficient {
    double centre = 1.0;
    double stddev = 0.2;
  };

  virtual ~Prior() = default;
  /// Returns the natural logarithm of the objective (of its inverse if it is minimised) up to a constant: larger is
  /// better. The values are always finite; where the prior knows nothing they are typical ones. Safe from several
  /// threads.
  virtual Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const = 0;
  virtual Coefficient coefficient() const = 0;
  /// Returns what the job may be, if this prior is an average over that; otherwise nullptr.
  virtual const Hypotheses* hypotheses() const { return nullptr; }
};

/// Priors of the objective, in the order of the surrogate's features.
using Priors = std::vector<std::shared_ptr<const Prior>>;

/// Returns what is known of step times: averages over what the job may be, with its hypotheses. Its own values are
/// those of the told job, or else the rules of thumb. Without any hypothesis it is the rules of thumb. Empty if the
/// objective does not follow from times (a metric of the user's own). `filter` must outlive it; the session is copied.
std::shared_ptr<const Prior> make_physics_prior(const session::Session& session, const session::MemoryFilter& filter);
/// Returns what the usual names of parameters imply about speed. Empty if they imply nothing.
std::shared_ptr<const Prior> make_rules_of_thumb(const session::Session& session);

// What the names of parameters imply if there is no workload:

/// Returns the rule of a parameter with numbers, by any of its names ("tensor_parallel", "tp", ...), or nullptr.
const space::RuleOfThumb* rule_of_thumb(const std::string& name);
/// Returns the numeric parameters with more than one value that split the model over ranks.
std::vector<std::string> model_splits(const space::Space& space);

}  // namespace krigtune::forecast
