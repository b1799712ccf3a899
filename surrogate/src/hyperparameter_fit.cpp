// Multi-start maximum a posteriori. Marginal likelihoods of a few points have several modes (much noise and a smooth
// function, or little noise and a rough one): one start finds the wrong one in about a tenth of the cases.
#include "hyperparameter_fit.h"

#include <cassert>
#include <cmath>
#include <string>
#include <vector>

#include "nlopt_minimizer.h"

namespace krigtune {
namespace {

using Eigen::VectorXd;

std::vector<VectorXd> starting_points(const HyperparameterPosterior& posterior, int random_starts, Rng& rng,
                                      const std::optional<VectorXd>& start) {
  std::vector<VectorXd> starts{posterior.prior_mode()};
  if (start) {
    assert(start->size() == posterior.size());
    starts.push_back(*start);
  }
  for (int i = 0; i < random_starts; ++i) starts.push_back(posterior.draw(rng));
  return starts;
}

}  // namespace

FittedHyperparameters fit_hyperparameters(const HyperparameterPosterior& posterior, int random_starts, Rng& rng,
                                          const std::optional<VectorXd>& start) {
  const DifferentiableFunction negative = [&posterior](const VectorXd& theta, VectorXd& gradient) {
    const double value = posterior.log_density(theta, &gradient);
    gradient = -gradient;
    return -value;
  };
  const std::vector<VectorXd> starts = starting_points(posterior, random_starts, rng, start);
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

}  // namespace krigtune
