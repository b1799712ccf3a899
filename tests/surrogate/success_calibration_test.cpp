// Are the probabilities of success calibrated, with 3 to 60 outcomes?
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "krigtune/surrogate/success_model.h"
#include "surrogate/gaussian_integrals.h"
#include "surrogate/reference_gp.h"

namespace krigtune::success_calibration_test {

using Eigen::Index;
using Eigen::VectorXd;

/// Forecasts for outcomes drawn from the model's own prior.
struct Forecasts {
  std::vector<double> probability;
  std::vector<bool> outcome;
};

Forecasts forecasts(int seen, int asked, int draws) {
  Forecasts result;
  for (int draw = 0; draw < draws; ++draw) {
    Rng rng(52, static_cast<std::uint64_t>(1000 * seen + draw));
    const surrogate::Points points = reference::random_points(rng, seen + asked, 2, 0);
    const VectorXd mean = VectorXd::NullaryExpr(points.size(), [&rng](Index) { return 0.5 + 0.5 * rng.normal(); });
    VectorXd theta = VectorXd::Constant(3, std::log(0.5));
    theta[2] = 2.0 * std::log(1.2);
    Eigen::MatrixXd k =
        surrogate::make_kernel(surrogate::KernelKind::kMatern52)->gram(points, points, theta).array() + 0.36;
    k.diagonal().array() += 1e-9;
    const VectorXd latent =
        mean + k.llt().matrixL() * VectorXd::NullaryExpr(points.size(), [&rng](Index) { return rng.normal(); });
    std::vector<bool> outcome;
    for (const double f : latent) outcome.push_back(f + rng.normal() >= 0.0);
    surrogate::SuccessModel model(surrogate::make_kernel(surrogate::KernelKind::kMatern52));
    EXPECT_TRUE(model.fit(points.slice(0, seen), mean.head(seen), {outcome.begin(), outcome.begin() + seen}).converged);
    for (const double p : model.probability(points.slice(seen, asked), mean.tail(asked)))
      result.probability.push_back(p);
    result.outcome.insert(result.outcome.end(), outcome.begin() + seen, outcome.end());
  }
  return result;
}

struct Bin {
  double predicted = 0.0;
  double happened = 0.0;
  int count = 0;
};

void expect_calibrated(const Forecasts& asked) {
  std::vector<Bin> bins(10);
  double spread = 0.0;
  double score = 0.0;  // Brier
  for (std::size_t i = 0; i < asked.probability.size(); ++i) {
    const double p = asked.probability[i];
    const double happened = asked.outcome[i] ? 1.0 : 0.0;
    Bin& bin = bins[static_cast<std::size_t>(std::min(9.0, 10.0 * p))];
    bin.predicted += p;
    bin.happened += happened;
    ++bin.count;
    spread += p * (1.0 - p);
    score += (p - happened) * (p - happened);
  }
  for (const Bin& bin : bins) {
    if (bin.count < 200) continue;
    // For independent outcomes the frequency has an error of 0.5 / sqrt(count): allow three of these, and 0.02.
    EXPECT_LE(std::abs(bin.predicted - bin.happened) / bin.count, 0.02 + 1.5 / std::sqrt(bin.count))
        << bin.predicted / bin.count;
  }
  EXPECT_LE(std::abs(score / spread - 1.0), 0.05);  // a calibrated forecast has the Brier score that it implies
}

TEST(SuccessCalibration, HoldsOnDrawsFromItsOwnPrior) {
  for (const int seen : {3, 10, 30, 60}) {
    SCOPED_TRACE(seen);
    expect_calibrated(forecasts(seen, 10, 600));
  }
}

// The trend consists of a coefficient for the distance of column c from its centre.
TEST(SuccessModel, SharedShiftsAreTheTrendWhenTheirFeaturesAreItsColumns) {
  Rng rng(52, 0);
  const surrogate::Points x = reference::random_points(rng, 10, 2, 1);
  const surrogate::Points at = reference::random_points(rng, 15, 2, 1);
  const auto with_columns = [](const surrogate::Points& points) {
    Eigen::MatrixXd prior = Eigen::MatrixXd::Constant(points.size(), 3, 0.4);
    prior.rightCols(2) = points.ordered.array() - 0.5;
    return prior;
  };
  std::vector<bool> succeeded;
  for (int i = 0; i < 10; ++i) succeeded.push_back(rng.uniform() < 0.5);
  surrogate::SuccessOptions shifts;
  shifts.shift_stddevs = {1.2, 1.2};
  surrogate::SuccessModel shifted =
      surrogate::SuccessModel(surrogate::make_kernel(surrogate::KernelKind::kMatern52), shifts);
  shifted.fit(x, with_columns(x), succeeded);
  surrogate::SuccessOptions slope;
  slope.slope_stddev = 1.2;
  surrogate::SuccessModel trend =
      surrogate::SuccessModel(surrogate::make_kernel(surrogate::KernelKind::kMatern52), slope);
  trend.fit(x, Eigen::VectorXd::Constant(10, 0.4), succeeded);
  const Eigen::VectorXd difference =
      shifted.probability(at, with_columns(at)) - trend.probability(at, Eigen::VectorXd::Constant(15, 0.4));
  EXPECT_LE(difference.cwiseAbs().maxCoeff(), 1e-9);
}

}  // namespace krigtune::success_calibration_test
