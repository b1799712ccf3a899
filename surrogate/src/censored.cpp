// Bounds beside values. Given the values, the latent f at the bounds' points is Gaussian; expectation propagation
// puts Gaussian observations in the place of the bounds:
//
//   log p(values, bounds) = log p(values) + log E[ prod_i Phi(t_i (f_i - c_i) / noise stddev) | values ]
#include "krigtune/surrogate/censored.h"

#include <cmath>
#include <utility>

#include "expectation_propagation.h"
#include "krigtune/core/error.h"
#include "merged_observations.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

void validate(const Observations& observations, const Bounds& bounds) {
  if (observations.size() + bounds.points.size() == 0)
    throw UserError("no observations: there must be one value or one bound at least");
  if (observations.size() > 0) observations.validate();
  if (bounds.bounds.size() != bounds.points.size()) throw UserError("bounds: every point needs one");
  if (bounds.sign.size() != 0 &&
      (bounds.sign.size() != bounds.points.size() || !(bounds.sign.array().abs() == 1.0).all()))
    throw UserError("bounds: every point needs a sign of 1 or -1, or none does");
  if (!bounds.bounds.allFinite() || !bounds.points.ordered.allFinite() || !bounds.points.features.allFinite())
    throw UserError("bounds: points, features and bounds must be finite");
}

/// log p(values | theta), every repetition counted.
double log_evidence_of_values(const GaussianProcess& process, const Observations& observations) {
  const double noise = process.noise_stddev();
  return process.log_marginal_likelihood() + MergedObservations(observations).at(noise * noise).log_spread;
}

}  // namespace

CensoredFit condition_on_bounds(std::shared_ptr<const Kernel> kernel, const Mean& mean,
                                const Observations& observations, const Bounds& bounds, const VectorXd& theta) {
  validate(observations, bounds);
  CensoredFit fit{GaussianProcess(std::move(kernel), mean), {}};
  const bool has_values = observations.size() > 0;
  fit.process.condition(has_values ? observations : Observations{bounds.points.slice(0, 0), {}, {}}, theta);
  if (has_values) fit.log_evidence = log_evidence_of_values(fit.process, observations);
  const Index count = bounds.points.size();
  fit.converged = true;
  if (count == 0) return fit;

  const VectorXd sign = bounds.sign.size() == 0 ? VectorXd::Ones(count) : bounds.sign;
  const SiteSubstitutes sites =
      propagate_expectations(fit.process, bounds.points, {sign, bounds.bounds, fit.process.noise_stddev()});
  fit.substitutes = {bounds.points, sites.value, sites.variance};
  fit.converged = sites.converged;
  fit.sweeps = sites.sweeps;
  fit.log_evidence += sites.log_evidence;
  Observations all = observations;
  all.append(fit.substitutes);
  fit.process.condition(all, theta);
  return fit;
}

}  // namespace krigtune
