#pragma once
#include <Eigen/Core>
#include <memory>
#include <string>
#include <vector>

#include "forecast/forecast.h"
#include "space/space.h"
#include "space/well_known.h"

namespace krigtune::forecast {

class Prior;

/// What may be true in the place of a prior, and with what probability.
struct Alternative {
  std::shared_ptr<const Prior> prior;
  double probability = 0.0;
};

/// What is believed of the objective before anything is measured here: a model of the machine, or runs of yesterday.
class Prior {
 public:
  /// Of the coefficient b ~ Normal(centre, stddev^2) in the surrogate's mean, a + sum of b_k times prior k.
  struct Coefficient {
    double centre = 1.0;
    double stddev = 0.2;
  };

  virtual ~Prior() = default;
  /// Natural logarithm of the objective (of its inverse where it is minimised) up to a constant: larger is better.
  /// Finite also where the prior knows nothing: then what is typical. Safe from several threads.
  virtual Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const = 0;
  virtual Coefficient coefficient() const = 0;
  /// The rest of the probability is its own. Trials decide (search/model/objective_model.h).
  virtual std::vector<Alternative> alternatives() const { return {}; }
};

/// Priors of the objective, in the order of the surrogate's features.
using Priors = std::vector<std::shared_ptr<const Prior>>;

/// A prior and what may be true in its place.
struct Belief {
  std::shared_ptr<const Prior> prior;
  std::vector<Alternative> alternatives{};
};

/// Step times by the virtual clock, and as alternatives those of links that are slower or faster than is believed;
/// where they are not predicted, the rules of thumb. Empty where the objective does not follow from times (a metric of
/// the user's own). `filter` must outlive it; the session is copied.
std::shared_ptr<const Prior> make_physics_prior(const session::Session& session, const session::MemoryFilter& filter);
/// What the usual names of parameters say of speed. Empty where they say nothing.
std::shared_ptr<const Prior> make_rules_of_thumb(const session::Session& session);

// What the names of parameters say where no workload does.

/// Of numbers, by any name of the parameter ("tensor_parallel", "tp", ...); nullptr: none.
const space::RuleOfThumb* rule_of_thumb(const std::string& name);
/// The parameters with numbers, and more than one, that split the model over ranks.
std::vector<std::string> model_splits(const space::Space& space);

}  // namespace krigtune::forecast
