#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hyperparameters.h"
#include "krigtune/surrogate/surrogate.h"
#include "surrogate/reference_gp.h"

namespace krigtune::slice_sampling_test {

using Eigen::Index;
using Eigen::VectorXd;

surrogate::Observations sine() {
  surrogate::Observations data{surrogate::Points::zero(7, 1, 0), VectorXd(7), {}};
  data.points.ordered.col(0) << 0.0, 0.11, 0.29, 0.47, 0.62, 0.83, 1.0;
  data.values = (7.0 * data.points.ordered.col(0).array()).sin().matrix();
  return data;
}

/// Only the lengthscale is uncertain: the priors of the other entries have a width of a thousandth.
surrogate::GpStructure lengthscale_alone() {
  surrogate::GpStructure structure{
      surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::constant(), {}};
  structure.priors.lengthscale = {-1.0, 1.0};
  structure.priors.signal_stddev = {0.0, 1e-3};
  structure.priors.noise_stddev = {-1.5, 1e-3};
  return structure;
}

/// Distribution function of the first entry of theta by the midpoint rule, with the others at their prior's mode.
struct Integral {
  VectorXd grid;
  VectorXd cumulative;

  explicit Integral(const surrogate::HyperparameterPosterior& posterior) : grid(4000), cumulative(4000) {
    VectorXd theta = posterior.prior_mode();
    const double step = (posterior.upper_bound()[0] - posterior.lower_bound()[0]) / 4000.0;
    double sum = 0.0;
    for (Index i = 0; i < grid.size(); ++i) {
      theta[0] = posterior.lower_bound()[0] + (static_cast<double>(i) + 0.5) * step;
      sum += std::exp(posterior.log_density(theta, nullptr));
      grid[i] = theta[0] + 0.5 * step;
      cumulative[i] = sum;
    }
    cumulative /= sum;
  }
  double at(double value) const {
    const auto place = std::distance(grid.begin(), std::ranges::lower_bound(grid, value));
    return cumulative[std::min<Index>(place, grid.size() - 1)];
  }
};

TEST(SliceSampling, DrawsFromThePosterior) {
  const surrogate::GpStructure structure = lengthscale_alone();
  const surrogate::HyperparameterPosterior posterior(structure, sine());
  const Integral integral(posterior);
  Rng rng(61, 0);
  constexpr int kDraws = 2000;
  VectorXd start = posterior.prior_mode();
  start[0] = 1.5;  // in the tail
  std::vector<double> probability;
  for (const VectorXd& theta : surrogate::sample_hyperparameters(structure, sine(), start, kDraws, rng))
    probability.push_back(integral.at(theta[0]));
  std::ranges::sort(probability);
  // Kolmogorov & Smirnov: for 2000 independent draws the distance exceeds 0.044 once in a thousand cases. The draws of
  // a chain are worth somewhat less.
  double distance = 0.0;
  for (std::size_t i = 0; i < probability.size(); ++i)
    distance = std::max(distance, std::abs(probability[i] - (static_cast<double>(i) + 0.5) / kDraws));
  EXPECT_LE(distance, 0.05);
  // The prior alone would fail: half of it lies below -1.
  EXPECT_GE(integral.at(-1.0), 0.8);
}

TEST(SliceSampling, DrawsFromThePriorWhereTheDataSayNothing) {
  surrogate::GpStructure structure{
      surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::zero(), {}};
  structure.priors.lengthscale = {-0.7, 0.6};
  structure.priors.signal_stddev = {0.2, 0.3};
  structure.priors.noise_stddev = {-3.0, 0.8};
  surrogate::Observations data = sine();
  data.variance = VectorXd::Constant(7, 1e12);
  const surrogate::HyperparameterPosterior posterior(structure, data);
  Rng rng(62, 0);
  const auto draws = surrogate::sample_hyperparameters(structure, data, posterior.prior_mode(), 1500, rng);
  const Eigen::Vector3d mean(-0.7, 0.4, -3.0);
  const Eigen::Vector3d stddev(0.6, 0.6, 0.8);  // log s^2 = 2 log s
  for (Index i = 0; i < 3; ++i) {
    double sum = 0.0;
    double square = 0.0;
    for (const VectorXd& theta : draws) {
      const double z = (theta[i] - mean[i]) / stddev[i];
      sum += z / 1500.0;
      square += z * z / 1500.0;
    }
    EXPECT_LE(std::abs(sum), 0.1) << i;  // four stddevs of a mean of 1500
    EXPECT_LE(std::abs(square - 1.0), 0.15) << i;
  }
}

TEST(SliceSampling, StaysInsideTheBounds) {
  surrogate::GpStructure structure = lengthscale_alone();
  structure.priors.lengthscale = {4.0, 3.0};
  structure.priors.noise_stddev = {3.0, 2.0};
  const surrogate::HyperparameterPosterior posterior(structure, sine());
  Rng rng(63, 0);
  for (const VectorXd& theta :
       surrogate::sample_hyperparameters(structure, sine(), VectorXd::Constant(3, 50.0), 50, rng)) {
    EXPECT_TRUE((theta.array() >= posterior.lower_bound().array()).all());
    EXPECT_TRUE((theta.array() <= posterior.upper_bound().array()).all());
  }
}

TEST(SliceSampling, IsAFunctionOfItsSeed) {
  const surrogate::GpStructure structure = lengthscale_alone();
  Rng a(64, 0);
  Rng b(64, 0);
  Rng c(64, 1);
  const VectorXd start = VectorXd::Zero(3);
  const auto first = surrogate::sample_hyperparameters(structure, sine(), start, 3, a);
  EXPECT_EQ(first, surrogate::sample_hyperparameters(structure, sine(), start, 3, b));
  EXPECT_NE(first, surrogate::sample_hyperparameters(structure, sine(), start, 3, c));
}

TEST(SliceSampling, RefusesDataWithoutALikelihood) {
  surrogate::Observations data = sine();
  data.values[2] = std::nan("");
  Rng rng(65, 0);
  EXPECT_THROW(surrogate::sample_hyperparameters(lengthscale_alone(), data, VectorXd::Zero(3), 1, rng),
               std::domain_error);
}

}  // namespace krigtune::slice_sampling_test
