// Draws from the posterior of the hyperparameters, one coordinate at a time (Neal 2003, "Slice sampling", figures 3 and
// 5): a level uniformly under the density at the present point, an interval of the prior's width around it stepped out
// until both ends lie below the level, then shrunk towards the point until a draw lies above.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "hyperparameter_posterior.h"

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int kBurnInSweeps = 10;  // from the mode, which is inside the posterior's bulk already
constexpr int kSweepsPerDraw = 3;
constexpr int kMostSteps = 8;

class SliceSampler {
 public:
  SliceSampler(const HyperparameterPosterior& posterior, const VectorXd& start, Rng& rng)
      : posterior_(posterior),
        lower_(posterior.lower_bound()),
        upper_(posterior.upper_bound()),
        theta_(start.cwiseMax(lower_).cwiseMin(upper_)),
        density_(posterior.log_density(theta_, nullptr)),
        rng_(rng) {
    if (!std::isfinite(density_)) throw std::domain_error("no likelihood where the sampling is to start");
  }

  void sweep() {
    for (Index i = 0; i < theta_.size(); ++i) update(i);
  }
  const VectorXd& theta() const { return theta_; }

 private:
  // Outside the box and where the covariance cannot be factorised, nothing has any density.
  double density_at(Index i, double value) {
    if (value < lower_[i] || value > upper_[i]) return -HUGE_VAL;
    VectorXd moved = theta_;
    moved[i] = value;
    const double density = posterior_.log_density(moved, nullptr);
    return std::isfinite(density) ? density : -HUGE_VAL;
  }

  void update(Index i) {
    constexpr double kWidth = 1.0;  // about a stddev of the default priors
    const double level = density_ + std::log(1.0 - rng_.uniform());
    double left = theta_[i] - kWidth * rng_.uniform();
    double right = left + kWidth;
    const int steps_left = static_cast<int>(rng_.below(kMostSteps));
    for (int step = 0; step < steps_left && density_at(i, left) > level; ++step) left -= kWidth;
    for (int step = 0; step < kMostSteps - 1 - steps_left && density_at(i, right) > level; ++step) right += kWidth;
    constexpr int kMostShrinks = 100;  // rounding may leave no draw above the level: then nothing moves
    for (int shrink = 0; shrink < kMostShrinks; ++shrink) {
      const double drawn = left + (right - left) * rng_.uniform();
      const double density = density_at(i, drawn);
      if (density >= level) {
        theta_[i] = drawn;
        density_ = density;
        return;
      }
      (drawn < theta_[i] ? left : right) = drawn;
    }
  }

  const HyperparameterPosterior& posterior_;
  VectorXd lower_;
  VectorXd upper_;
  VectorXd theta_;
  double density_;
  Rng& rng_;
};

}  // namespace

std::vector<VectorXd> sample_hyperparameters(const GpStructure& structure, const Observations& observations,
                                             const VectorXd& start, int count, Rng& rng) {
  const HyperparameterPosterior posterior(structure, observations);
  SliceSampler sampler(posterior, start, rng);
  for (int sweep = 0; sweep < kBurnInSweeps; ++sweep) sampler.sweep();
  std::vector<VectorXd> draws;
  for (int draw = 0; draw < count; ++draw) {
    for (int sweep = 0; sweep < kSweepsPerDraw; ++sweep) sampler.sweep();
    draws.push_back(sampler.theta());
  }
  return draws;
}

}  // namespace krigtune
