// Multi-start maximum a posteriori. Marginal likelihoods of a few points have several modes (much noise and a smooth
// function, or little noise and a rough one): one start finds the wrong one in about a tenth of the cases.
#include "krigtune/surrogate/hyperparameters.h"

#include <cmath>
#include <string>
#include <vector>

#include "hyperparameter_posterior.h"
#include "krigtune/core/error.h"
#include "nlopt_minimizer.h"

namespace krigtune {
namespace {

using Eigen::VectorXd;

void check_start(const HyperparameterPosterior& posterior, const VectorXd& start) {
  if (start.size() != posterior.size())
    throw UserError("a fit cannot start at a theta of " + std::to_string(start.size()) + " numbers, it has " +
                    std::to_string(posterior.size()));
}

std::vector<VectorXd> starting_points(const HyperparameterPosterior& posterior, int random_starts, Rng& rng,
                                      const std::optional<VectorXd>& start) {
  std::vector<VectorXd> starts{posterior.prior_mode()};
  if (start) {
    check_start(posterior, *start);
    starts.push_back(*start);
  }
  for (int i = 0; i < random_starts; ++i) starts.push_back(posterior.draw(rng));
  return starts;
}

void check(const LogNormalPrior& prior, const char* name) {
  if (!std::isfinite(prior.log_median)) throw UserError(std::string(name) + ": the prior's median must be finite");
  if (!(prior.log_stddev > 0.0 && std::isfinite(prior.log_stddev)))
    throw UserError(std::string(name) + ": the prior's stddev must be positive");
}

FittedHyperparameters fit_from(const HyperparameterPosterior& posterior, const std::vector<VectorXd>& starts) {
  const DifferentiableFunction negative = [&posterior](const VectorXd& theta, VectorXd& gradient) {
    const double value = posterior.log_density(theta, &gradient);
    gradient = -gradient;
    return -value;
  };
  const VectorXd lower = posterior.lower_bound();
  const VectorXd upper = posterior.upper_bound();

  Minimum best;
  int evaluations = 0;
  std::size_t winner = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    Minimum found = minimize_in_box(negative, starts[i], lower, upper);
    evaluations += found.evaluations;
    if (i > 0 && !(found.value < best.value)) continue;
    best = std::move(found);
    winner = i + 1;
  }

  FittedHyperparameters fitted;
  fitted.theta = best.point.size() > 0 ? best.point : posterior.prior_mode();
  fitted.report.termination = best.termination;
  fitted.report.message = best.message + ", start " + std::to_string(winner) + " of " + std::to_string(starts.size());
  fitted.report.evaluations = evaluations;
  fitted.report.log_posterior = -best.value;
  return fitted;
}

}  // namespace

void HyperparameterPriors::validate() const {
  check(lengthscale, "lengthscale");
  check(signal_stddev, "signal_stddev");
  check(noise_stddev, "noise_stddev");
  if (!(loading_stddev > 0.0)) throw UserError("loading_stddev must be positive");
}

VectorXd uniform_theta(const std::vector<Hyperparameter>& parameters, double lengthscale, double signal_stddev) {
  VectorXd theta(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    double& entry = theta[static_cast<Eigen::Index>(i)];
    switch (parameters[i].role) {
      case Hyperparameter::Role::kLengthscale:
        entry = std::log(lengthscale);
        break;
      case Hyperparameter::Role::kSignalVariance:
        entry = 2.0 * std::log(signal_stddev);
        break;
      case Hyperparameter::Role::kLoading:
        entry = parameters[i].centre;
        break;
    }
  }
  return theta;
}

VectorXd uniform_theta(const Kernel& kernel, const Points& points, double lengthscale, double signal_stddev,
                       double noise_stddev) {
  const VectorXd of_kernel = uniform_theta(kernel.hyperparameters(points.ordered.cols(), points.categories.cols()),
                                           lengthscale, signal_stddev);
  VectorXd theta(of_kernel.size() + 1);
  theta << of_kernel, std::log(noise_stddev);
  return theta;
}

LogNormalPrior dimension_scaled_lengthscale(Eigen::Index dims) {
  if (dims < 1) throw UserError("dimension_scaled_lengthscale: there must be one dimension at least");
  // The density of l has its mode at exp(mu - variance); as one of log l, the same bell around log(mode).
  constexpr double kVariance = 3.0;
  return {std::sqrt(2.0) + 0.5 * std::log(static_cast<double>(dims)) - kVariance, std::sqrt(kVariance)};
}

FittedHyperparameters fit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                          int random_starts, Rng& rng, const std::optional<VectorXd>& start) {
  const HyperparameterPosterior posterior(structure, observations);
  return fit_from(posterior, starting_points(posterior, random_starts, rng, start));
}

FittedHyperparameters refit_hyperparameters(const GpStructure& structure, const Observations& observations,
                                            const VectorXd& start) {
  const HyperparameterPosterior posterior(structure, observations);
  check_start(posterior, start);
  return fit_from(posterior, {start});
}

}  // namespace krigtune
