#include "krigtune/surrogate/mean.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "krigtune/surrogate/surrogate.h"
#include "surrogate/reference_gp.h"

namespace krigtune::mean_test {

using Eigen::Index;
using Eigen::VectorXd;

TEST(Mean, HasTheBasisOfItsKind) {
  surrogate::Points points = surrogate::Points::zero(2, 1, 0, 3);
  points.features << 1.0, 2.0, 3.0, 4.0, 5.0, 6.0;
  EXPECT_EQ(surrogate::Mean::zero().basis(points).cols(), 0);
  EXPECT_EQ(surrogate::Mean::constant().basis(points), Eigen::MatrixXd::Ones(2, 1));
  EXPECT_EQ(surrogate::Mean::linear(2).basis(points), (Eigen::MatrixXd(2, 3) << 1, 1, 2, 1, 4, 5).finished());
  EXPECT_EQ(surrogate::Mean::scaled().basis(points), (Eigen::MatrixXd(2, 2) << 1, 1, 1, 4).finished());
  EXPECT_EQ(surrogate::Mean::zero().features(), 0);
  EXPECT_EQ(surrogate::Mean::constant().features(), 0);
  EXPECT_EQ(surrogate::Mean::linear(2).features(), 2);
  EXPECT_EQ(surrogate::Mean::scaled(0.5, 0.1).centre(), Eigen::Vector2d(0.0, 1.0));
  EXPECT_EQ(surrogate::Mean::scaled(0.5, 0.1).stddev(), Eigen::Vector2d(0.5, 0.1));
  EXPECT_TRUE(surrogate::Mean::scaled().predicts_the_function());
  EXPECT_FALSE(surrogate::Mean::linear(1).predicts_the_function());
}

TEST(Mean, RefusesWhatItCannotUse) {
  for (const double stddev : {-1.0, 1e4, std::nan("")}) EXPECT_THROW(surrogate::Mean::constant(stddev), UserError);
  const surrogate::Points points = surrogate::Points::zero(2, 1, 0, 1);
  EXPECT_NO_THROW(surrogate::Mean::scaled().validate(points));
  EXPECT_THROW(surrogate::Mean::linear(2).validate(points), UserError);
  EXPECT_THROW(surrogate::Mean::linear(2).basis(points), UserError);
  surrogate::GaussianProcess gp(surrogate::make_kernel(surrogate::KernelKind::kMatern52), surrogate::Mean::linear(2));
  EXPECT_THROW(gp.condition({points, VectorXd::Zero(2), {}}, VectorXd::Zero(3)), UserError);
}

TEST(Mean, OfASurrogateAsksForItsFeaturesEverywhere) {
  surrogate::SurrogateOptions options;
  options.mean = surrogate::Mean::scaled();
  surrogate::Surrogate surrogate(options);
  const surrogate::Points with = surrogate::Points::zero(2, 1, 0, 1);
  const surrogate::Points without = surrogate::Points::zero(2, 1, 0);
  EXPECT_THROW(surrogate.condition({without, Eigen::Vector2d(1.0, 2.0), {}}, VectorXd::Zero(3)), UserError);
  surrogate.condition({with, Eigen::Vector2d(1.0, 2.0), {}}, VectorXd::Zero(3));
  EXPECT_THROW(surrogate.predict(without), UserError);
  EXPECT_THROW(surrogate.predict_with_gradient(without.slice(0, 1)), UserError);
  EXPECT_THROW(surrogate.believe(without), UserError);
  EXPECT_THROW(surrogate.append({without, Eigen::Vector2d(1.0, 2.0), {}}), UserError);
}

double truth(double x) { return 50.0 + 20.0 * std::sin(4.0 * x) + 30.0 * x; }

/// Measurements on [0, 0.6] with the user's function f, and points beyond.
struct Problem {
  surrogate::Observations data{surrogate::Points::zero(8, 1, 0, 1), VectorXd(8), {}};
  surrogate::Points beyond = surrogate::Points::zero(5, 1, 0, 1);
  VectorXd want{5};
  VectorXd theta{3};

  template <class Function>
  explicit Problem(Function f) {
    for (Index i = 0; i < 8; ++i) {
      const double x = 0.6 * static_cast<double>(i) / 7.0;
      data.points.ordered(i, 0) = x;
      data.points.features(i, 0) = f(x);
      data.values[i] = truth(x);
    }
    for (Index i = 0; i < 5; ++i) {
      const double x = 0.7 + 0.3 * static_cast<double>(i) / 4.0;
      beyond.ordered(i, 0) = x;
      beyond.features(i, 0) = f(x);
      want[i] = truth(x);
    }
    theta << std::log(0.3), std::log(0.25), std::log(0.01);
  }
  surrogate::Surrogate surrogate(double scale_stddev) const {
    surrogate::SurrogateOptions options;
    options.mean = surrogate::Mean::scaled(1.0, scale_stddev);
    surrogate::Surrogate result(options);
    result.condition(data, theta);
    return result;
  }
  double scale_learned(double scale_stddev) const {
    return surrogate(scale_stddev).processes().front().coefficients().mean[1];
  }
  double error(double scale_stddev) const {
    return (surrogate(scale_stddev).predict(beyond).mean - want).cwiseAbs().maxCoeff();
  }
};

TEST(ScaledMean, IsBelievedWhereItIsRight) {
  const Problem p([](double x) { return truth(x); });
  EXPECT_LE(std::abs(p.scale_learned(0.5) - 1.0), 1e-3);
  EXPECT_LE(p.error(0.5), 0.1);
  // A constant offset is as good.
  const Problem shifted([](double x) { return truth(x) + 10.0; });
  EXPECT_LE(shifted.error(0.5), 0.1);
}

TEST(ScaledMean, IsDiscountedByTheDataWhereItIsWrong) {
  const Problem thrice([](double x) { return 3.0 * truth(x); });
  EXPECT_LE(std::abs(thrice.scale_learned(1.0) - 1.0 / 3.0), 0.02);
  EXPECT_LE(thrice.error(1.0), 0.05 * thrice.error(0.0));
  const Problem upside_down([](double x) { return -truth(x); });
  EXPECT_LE(upside_down.scale_learned(1.0), 0.0);
  EXPECT_LE(upside_down.error(1.0), 0.5 * upside_down.error(0.0));
  const Problem unrelated([](double x) { return 50.0 + 40.0 * std::cos(25.0 * x); });
  EXPECT_LE(std::abs(unrelated.scale_learned(1.0)), 0.2);
  EXPECT_LE(unrelated.error(1.0), 0.7 * unrelated.error(0.0));
}

}  // namespace krigtune::mean_test
