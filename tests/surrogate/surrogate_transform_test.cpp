// How a Surrogate uses its processes: transform and standardisation, and the average over hyperparameters.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "krigtune/surrogate/surrogate.h"
#include "surrogate/reference_gp.h"

namespace krigtune::surrogate_transform_test {

using Eigen::Index;
using Eigen::VectorXd;
using Kind = surrogate::OutputTransform::Kind;

surrogate::Observations positive_data() {
  Rng rng(91, 0);
  surrogate::Observations data{reference::random_points(rng, 16, 2, 0), VectorXd(16), VectorXd(16)};
  for (Index i = 0; i < 16; ++i) {
    data.values[i] = std::exp(3.0 * data.points.ordered(i, 0) + std::sin(4.0 * data.points.ordered(i, 1)));
    data.variance[i] = 0.01 * rng.uniform() * data.values[i];
  }
  data.points.features = (0.5 * data.values.array()).matrix();  // a model that is wrong by a factor
  return data;
}

VectorXd theta() {
  VectorXd result(4);
  result << std::log(0.5), std::log(0.8), 0.0, std::log(0.1);
  return result;
}

surrogate::SurrogateOptions with(Kind kind, const surrogate::Mean& mean = surrogate::Mean::constant()) {
  surrogate::SurrogateOptions options;
  options.transform = kind;
  options.mean = mean;
  return options;
}

TEST(SurrogateTransform, OfLogarithmsIsASurrogateOfTheLogarithms) {
  for (const surrogate::Mean& mean : {surrogate::Mean::constant(), surrogate::Mean::scaled()}) {
    const surrogate::Observations data = positive_data();
    surrogate::Observations logarithms = data;
    logarithms.values = data.values.array().log();
    logarithms.points.features = data.points.features.array().log();
    logarithms.variance = data.variance.array() / data.values.array().square();
    surrogate::Surrogate a(with(Kind::kLog, mean));
    surrogate::Surrogate b(with(Kind::kIdentity, mean));
    a.condition(data, theta());
    b.condition(logarithms, theta());
    a.append({data.points.slice(0, 2), data.values.head(2), data.variance.head(2)});
    b.append({logarithms.points.slice(0, 2), logarithms.values.head(2), logarithms.variance.head(2)});
    a.believe(data.points.slice(4, 1));
    b.believe(logarithms.points.slice(4, 1));
    const surrogate::Prediction got = a.predict(data.points);
    const surrogate::Prediction want = b.predict(logarithms.points);
    EXPECT_LE((got.mean - want.mean).cwiseAbs().maxCoeff(), 1e-13);
    EXPECT_LE((got.variance - want.variance).cwiseAbs().maxCoeff(), 1e-13);
    EXPECT_LE(std::abs(a.noise_stddev() - b.noise_stddev()), 1e-14);
  }
}

TEST(SurrogateTransform, TakesPredictionsBackToValues) {
  for (const Kind kind : {Kind::kIdentity, Kind::kLog, Kind::kRankRobust}) {
    surrogate::Observations data = positive_data();
    data.variance.resize(0);
    surrogate::Surrogate surrogate(with(kind));
    VectorXd precise = theta();
    precise[3] = std::log(1e-5);
    surrogate.condition(data, precise);
    const surrogate::Prediction latent = surrogate.predict(data.points);
    const surrogate::OutputTransform& back = surrogate.transform();
    for (Index i = 0; i < data.size(); ++i) {
      EXPECT_LE(std::abs(back.output_quantile(latent.mean[i], latent.variance[i], 0.5) / data.values[i] - 1.0), 1e-4);
      EXPECT_LE(back.output_quantile(latent.mean[i], latent.variance[i], 0.001), data.values[i] * (1.0 + 1e-4));
      EXPECT_GE(back.output_quantile(latent.mean[i], latent.variance[i], 0.999), data.values[i] * (1.0 - 1e-4));
    }
  }
}

TEST(SurrogateTransform, ByRanksKeepsAnAwfulValueFromDrowningTheGoodOnes) {
  surrogate::Observations data{surrogate::Points::zero(12, 1, 0), VectorXd(12), {}};
  data.points.ordered.col(0) = VectorXd::LinSpaced(12, 0.0, 1.0);
  data.values = (4.0 * data.points.ordered.col(0).array()).sin() + 10.0;
  const VectorXd before = data.values;
  data.values[11] = -1e6;
  const auto error = [&data, &before](Kind kind) {
    surrogate::Surrogate surrogate(with(kind));
    Rng rng(92, 0);
    surrogate.fit(data, rng);
    // Half way between the good points.
    surrogate::Points at = data.points.slice(0, 5);
    at.ordered.array() += 0.5 / 11.0;
    const surrogate::Prediction latent = surrogate.predict(at);
    double worst = 0.0;
    for (Index i = 0; i < 5; ++i) {
      const double want = std::sin(4.0 * at.ordered(i, 0)) + 10.0;
      worst = std::max(worst,
                       std::abs(surrogate.transform().output_quantile(latent.mean[i], latent.variance[i], 0.5) - want));
    }
    return worst;
  };
  EXPECT_LE(error(Kind::kRankRobust), 0.3);
  EXPECT_GE(error(Kind::kIdentity), 100.0);
}

TEST(SurrogateTransform, RefusesValuesThatItsKindDoesNotHave) {
  surrogate::Observations data = positive_data();
  surrogate::Surrogate surrogate(with(Kind::kLog));
  surrogate.condition(data, theta());
  EXPECT_THROW(surrogate.append({data.points.slice(0, 1), VectorXd::Constant(1, -1.0), {}}), UserError);
  EXPECT_THROW(surrogate.append({data.points.slice(0, 1), VectorXd::Constant(1, std::nan("")), {}}), UserError);
  data.values[3] = 0.0;
  EXPECT_THROW(surrogate.condition(data, theta()), UserError);
}

TEST(SurrogateTransform, CentresAFeatureThatPredictsTheFunction) {
  const surrogate::Observations data = positive_data();
  surrogate::Observations shifted = data;
  shifted.points.features.array() += 1e3;
  surrogate::Surrogate a(with(Kind::kIdentity, surrogate::Mean::scaled()));
  surrogate::Surrogate b(with(Kind::kIdentity, surrogate::Mean::scaled()));
  a.condition(data, theta());
  b.condition(shifted, theta());
  EXPECT_LE((a.predict(data.points).mean - b.predict(shifted.points).mean).cwiseAbs().maxCoeff(), 1e-9);
  // The logarithm of a model that is wrong by a factor equals the function itself, up to a constant.
  surrogate::Surrogate c(with(Kind::kLog, surrogate::Mean::scaled(1.0, 0.2)));
  c.condition(data, theta());
  const surrogate::Coefficients coefficients = c.processes().front().coefficients();
  EXPECT_LE(std::abs(coefficients.mean[0]), 1e-6);
  EXPECT_LE(std::abs(coefficients.mean[1] - 1.0), 1e-6);
}

TEST(SurrogateTransform, WithoutStandardisationIsTheProcessItself) {
  const surrogate::Observations data = positive_data();
  surrogate::SurrogateOptions options = with(Kind::kIdentity);
  options.standardise = false;
  surrogate::Surrogate surrogate(options);
  surrogate.condition(data, theta());
  surrogate::GaussianProcess gp(surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::constant());
  gp.condition(data, theta());
  EXPECT_EQ(surrogate.predict(data.points).mean, gp.predict(data.points).mean);
  EXPECT_EQ(surrogate.scale(), 1.0);
  EXPECT_EQ(surrogate.shift(), 0.0);
}

}  // namespace krigtune::surrogate_transform_test
