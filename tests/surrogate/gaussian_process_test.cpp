#include "krigtune/surrogate/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "surrogate/reference_kriging.h"

namespace krigtune::gaussian_process_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using reference::Kriging;
using reference::Real;
using reference::Vector;

/// The noise variance is 1e-4 of the signal variance, the smallest ratio for which agreement to 1e-8 is promised.
struct Problem {
  std::string name;
  surrogate::Mean mean;
  reference::CoefficientPrior prior;
  surrogate::Observations data;
  VectorXd theta;
  surrogate::Points at;

  Problem(std::string title, surrogate::Mean function, reference::CoefficientPrior coefficients, int ordered,
          int categories)
      : name(std::move(title)), mean(std::move(function)), prior(std::move(coefficients)) {
    Rng rng(31, static_cast<std::uint64_t>(ordered));
    data.points = features_added(reference::random_points(rng, 30, ordered, categories));
    at = features_added(reference::random_points(rng, 12, ordered, categories));
    data.values = VectorXd(30);
    data.variance = VectorXd(30);
    for (Index i = 0; i < 30; ++i) {
      data.values[i] = 2.0 * std::sin(5.0 * data.points.ordered(i, 0)) + data.points.ordered(i, 1) +
                       (categories > 0 ? 0.7 * data.points.categories(i, 0) : 0.0) + 0.02 * rng.normal();
      data.variance[i] = i % 3 == 0 ? 0.0 : 1e-3 * rng.uniform();
    }
    theta =
        VectorXd::NullaryExpr(ordered + categories + 2, [&rng](Index) { return std::log(0.7) + 0.3 * rng.normal(); });
    theta[ordered + categories] = std::log(2.0);
    theta[ordered + categories + 1] = 0.5 * std::log(2e-4);
  }

  static surrogate::Points features_added(surrogate::Points points) {
    points.features.resize(points.size(), 2);
    points.features.col(0) = 1.0 + (3.0 * points.ordered.col(0).array()).cos();
    points.features.col(1) = points.ordered.col(1).array().square();
    return points;
  }
  surrogate::GaussianProcess conditioned() const {
    surrogate::GaussianProcess gp(surrogate::make_kernel(surrogate::KernelKind::kMatern52), mean);
    gp.condition(data, theta);
    return gp;
  }
  reference::Matrix basis(const surrogate::Points& points) const {
    reference::Matrix h;
    for (Index i = 0; i < points.size(); ++i) {
      Vector row{1, points.features(i, 0), points.features(i, 1)};
      row.resize(prior.centre.size());
      h.push_back(row);
    }
    return h;
  }
  Vector noise(const VectorXd& known) const {
    Vector result;
    for (const double variance : known) result.push_back(variance + std::exp(2 * static_cast<Real>(theta.tail(1)[0])));
    return result;
  }
  Kriging expected(const surrogate::Observations& observations) const {
    return {observations.points,          reference::to_reference(observations.values),
            noise(observations.variance), theta.head(theta.size() - 1),
            basis(observations.points),   prior};
  }
};

std::vector<Problem> problems() {
  std::vector<Problem> result;
  for (const auto& [ordered, categories] : {std::pair{10, 0}, std::pair{3, 2}}) {
    const std::string space = ordered == 10 ? "10-D, " : "mixed, ";
    result.emplace_back(space + "zero", surrogate::Mean::zero(), reference::CoefficientPrior{}, ordered, categories);
    result.emplace_back(space + "constant", surrogate::Mean::constant(1.5), reference::CoefficientPrior{{0}, {2.25L}},
                        ordered, categories);
    result.emplace_back(space + "linear", surrogate::Mean::linear(2, 1.0, 2.0),
                        reference::CoefficientPrior{{0, 0, 0}, {1, 4, 4}}, ordered, categories);
    result.emplace_back(space + "scaled", surrogate::Mean::scaled(1.0, 0.5),
                        reference::CoefficientPrior{{0, 1}, {1, 0.25L}}, ordered, categories);
  }
  return result;
}

void expect_near(double got, Real want, const char* what) {
  EXPECT_LE(std::abs(got - static_cast<double>(want)), 1e-8 * static_cast<double>(std::abs(want))) << what;
}

TEST(GaussianProcess, EqualsUniversalKrigingByDenseInversesInLongDouble) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.name);
    const surrogate::GaussianProcess gp = p.conditioned();
    const Kriging want = p.expected(p.data);
    const surrogate::Prediction got = gp.predict(p.at);
    const MatrixXd covariance = gp.posterior_covariance(p.at);
    const Vector mean = want.mean(p.at, p.basis(p.at));
    const reference::Matrix want_covariance = want.covariance(p.at, p.basis(p.at));
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const auto row = static_cast<Index>(i);
      expect_near(got.mean[row], mean[i], "mean");
      expect_near(got.variance[row], want_covariance[i][i], "variance");
      for (std::size_t j = 0; j < mean.size();
           ++j)  // covariances may be almost zero: compare relative to the variances
        EXPECT_LE(std::abs(covariance(row, static_cast<Index>(j)) - static_cast<double>(want_covariance[i][j])),
                  1e-8 * std::sqrt(got.variance[row] * got.variance[static_cast<Index>(j)]));
    }
    expect_near(gp.log_marginal_likelihood(), want.log_marginal_likelihood(), "log marginal likelihood");
    EXPECT_EQ(gp.jitter(), 0.0);
  }
}

TEST(GaussianProcess, LearnsTheCoefficientsOfItsMean) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.name);
    surrogate::GaussianProcess gp = p.conditioned();
    const Kriging want = p.expected(p.data);
    gp.believe(p.at.slice(0, 4));  // points that are only believed must not change anything
    const surrogate::Coefficients got = gp.coefficients();
    ASSERT_EQ(static_cast<std::size_t>(got.mean.size()), want.beta().size());
    for (std::size_t i = 0; i < want.beta().size(); ++i) {
      const auto row = static_cast<Index>(i);
      expect_near(got.mean[row], want.beta()[i], "coefficient");
      for (std::size_t j = 0; j < want.beta().size(); ++j)
        expect_near(got.covariance(row, static_cast<Index>(j)), want.beta_covariance()[i][j], "covariance");
    }
  }
}

surrogate::Observations rows(const surrogate::Observations& data, const std::vector<Index>& which) {
  surrogate::Observations result;
  for (const Index i : which)
    result.append({data.points.slice(i, 1), data.values.segment(i, 1), data.variance.segment(i, 1)});
  return result;
}

TEST(GaussianProcess, PredictsEachObservationFromTheOthers) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.name);
    surrogate::GaussianProcess gp = p.conditioned();
    gp.believe(p.at.slice(0, 2));
    const surrogate::LeaveOneOut got = gp.leave_one_out();
    for (const Index left_out : {0, 7, 29}) {
      std::vector<Index> others;
      for (Index i = 0; i < p.data.size(); ++i)
        if (i != left_out) others.push_back(i);
      const Kriging want = p.expected(rows(p.data, others));
      const surrogate::Points point = p.data.points.slice(left_out, 1);
      expect_near(got.mean[left_out], want.mean(point, p.basis(point))[0], "mean");
      expect_near(got.variance[left_out],
                  want.covariance(point, p.basis(point))[0][0] + p.noise(p.data.variance.segment(left_out, 1))[0],
                  "variance");
    }
  }
}

TEST(LeaveOneOut, CountsTheValuesInsideTheInterval) {
  // z = 0, 1, 2, 3; the central 68.27 % end at 1 (erf(1 / sqrt 2) = 0.68269, mpmath), the central 95 % at 1.95996.
  const surrogate::LeaveOneOut left{VectorXd::Zero(4), VectorXd::Constant(4, 4.0)};
  const VectorXd values = Eigen::Vector4d(0.0, 2.0, -4.0, 6.0);
  EXPECT_EQ(left.coverage(values, 0.6826), 0.25);
  EXPECT_EQ(left.coverage(values, 0.6828), 0.5);
  EXPECT_EQ(left.coverage(values, 0.95), 0.5);
  EXPECT_EQ(left.coverage(values, 0.96), 0.75);
  // -(0 + 1 + 4 + 9) / 2 - 4 log 2 - 2 log 2 pi
  EXPECT_LE(std::abs(left.log_density(values) + 7.0 + 4.0 * std::log(2.0) + 2.0 * std::log(2.0 * std::acos(-1.0))),
            1e-14);
}

void expect_same_predictions(const surrogate::GaussianProcess& a, const surrogate::GaussianProcess& b,
                             const surrogate::Points& at) {
  const surrogate::Prediction one = a.predict(at);
  const surrogate::Prediction other = b.predict(at);
  EXPECT_LE((one.mean - other.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LE((one.variance - other.variance).cwiseAbs().maxCoeff(), 1e-10);
}

TEST(GaussianProcess, AppendingEqualsConditioningAnew) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.name);
    const surrogate::GaussianProcess all = p.conditioned();
    surrogate::GaussianProcess grown(surrogate::make_kernel(surrogate::KernelKind::kMatern52), p.mean);
    std::vector<Index> first(20);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<Index>(i);
    grown.condition(rows(p.data, first), p.theta);
    grown.append(rows(p.data, {20}));
    grown.append(rows(p.data, {21, 22, 23, 24, 25, 26, 27, 28, 29}));
    grown.append({});
    expect_same_predictions(all, grown, p.at);
    EXPECT_LE((all.lower() - grown.lower()).cwiseAbs().maxCoeff(), 1e-10);
    EXPECT_LE((all.whitened() - grown.whitened()).cwiseAbs().maxCoeff(), 1e-8);
    EXPECT_LE(std::abs(all.log_marginal_likelihood() - grown.log_marginal_likelihood()), 1e-8);
    EXPECT_LE((all.leave_one_out().mean - grown.leave_one_out().mean).cwiseAbs().maxCoeff(), 1e-9);
  }
}

TEST(GaussianProcess, AppendingARepeatedPointEqualsConditioningAnew) {
  const Problem p = problems().back();
  surrogate::Observations again = rows(p.data, {3, 3, 8});
  again.values.array() += 0.05;
  surrogate::Observations joined = p.data;
  joined.append(again);
  surrogate::GaussianProcess at_once(surrogate::make_kernel(surrogate::KernelKind::kMatern52), p.mean);
  at_once.condition(joined, p.theta);
  surrogate::GaussianProcess grown = p.conditioned();
  grown.append(again);
  EXPECT_EQ(at_once.observed(), 30);
  EXPECT_EQ(grown.observed(), 33);
  expect_same_predictions(at_once, grown, p.at);
}

TEST(GaussianProcess, ForgetsWhatItBelieved) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.name);
    const surrogate::GaussianProcess before = p.conditioned();
    surrogate::GaussianProcess gp = before;
    gp.believe(p.at.slice(0, 2));
    gp.believe(p.at.slice(2, 3));
    EXPECT_EQ(gp.points().size(), 35);
    EXPECT_EQ(gp.observed(), 30);
    EXPECT_LE((gp.predict(p.at).mean - before.predict(p.at).mean).cwiseAbs().maxCoeff(), 1e-10);
    EXPECT_LE(gp.predict(p.at).variance[0], 1e-3 * before.predict(p.at).variance[0] + 4e-4);
    EXPECT_EQ(gp.log_marginal_likelihood(), before.log_marginal_likelihood());
    gp.forget_believed();
    EXPECT_EQ(gp.points().size(), 30);
    EXPECT_EQ(gp.predict(p.at).variance, before.predict(p.at).variance);
    gp.append(rows(p.data, {0}));
    EXPECT_EQ(gp.observed(), 31);
  }
}

TEST(GaussianProcess, RefusesObservationsAndHyperparametersThatDoNotFit) {
  const Problem p = problems().back();
  surrogate::GaussianProcess gp(surrogate::make_kernel(surrogate::KernelKind::kMatern52), p.mean);
  EXPECT_THROW(gp.condition(p.data, p.theta.head(5)), UserError);
  EXPECT_THROW(gp.condition(p.data, VectorXd::Constant(p.theta.size(), std::nan(""))), UserError);
  EXPECT_THROW(gp.condition({}, p.theta), UserError);
  surrogate::Observations broken = p.data;
  broken.points.categories.conservativeResize(3, 2);
  EXPECT_THROW(gp.condition(broken, p.theta), UserError);
  broken = p.data;
  broken.variance[2] = -1.0;
  EXPECT_THROW(gp.condition(broken, p.theta), UserError);
}

}  // namespace krigtune::gaussian_process_test
