#include "krigtune/surrogate/output_transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "krigtune/rng.h"

namespace krigtune::output_transform_test {

using Eigen::Index;
using Eigen::VectorXd;
using Kind = surrogate::OutputTransform::Kind;

VectorXd vector(std::initializer_list<double> values) {
  VectorXd result(static_cast<Index>(values.size()));
  std::ranges::copy(values, result.begin());
  return result;
}

/// Throughputs of which some are very bad: a long tail on the bad side.
VectorXd heavy_tailed(int count) {
  Rng rng(71, 0);
  return VectorXd::NullaryExpr(count, [&rng](Index) { return 100.0 + rng.normal() - std::exp(2.0 * rng.normal()); });
}

struct Case {
  std::string name;
  surrogate::OutputTransform transform;
  VectorXd values;  ///< the values from which it was learned
};

std::vector<Case> cases() {
  std::vector<Case> result;
  const auto add = [&result](const char* name, Kind kind, const VectorXd& values) {
    result.push_back({name, surrogate::OutputTransform(kind, values), values});
  };
  add("identity", Kind::kIdentity, heavy_tailed(9));
  add("log", Kind::kLog, vector({0.02, 3.0, 1e5}));
  add("heavy tail, odd", Kind::kRankRobust, heavy_tailed(41));
  add("heavy tail, even", Kind::kRankRobust, heavy_tailed(12));
  add("one value", Kind::kRankRobust, vector({-3.5}));
  add("two values", Kind::kRankRobust, vector({4.0, 1.0}));
  add("two equal values", Kind::kRankRobust, vector({4.0, 4.0}));
  add("equal values", Kind::kRankRobust, VectorXd::Constant(7, 0.1));
  add("ties", Kind::kRankRobust, vector({1.0, 1.0, 2.0, 2.0, 2.0, 5.0, 5.0, 6.0, 9.0, 1.0}));
  add("the better half all equal", Kind::kRankRobust, vector({1.0, 3.0, 7.0, 7.0, 7.0, 7.0}));
  add("an outlier", Kind::kRankRobust, vector({-1e9, 1.0, 2.0, 3.0, 4.0}));
  add("near ties", Kind::kRankRobust, vector({1.0, 1.0 + 1e-15, 1.0 + 2e-15, 2.0, 3.0, 4.0, 5.0}));
  return result;
}

/// Returns some values beyond, at and between those that were learned from.
VectorXd probes(const Case& c) {
  const double least = c.values.minCoeff();
  const double range = std::max(c.values.maxCoeff() - least, 1.0);
  const double from = c.name == "log" ? 1e-9 : least - 2.0 * range;
  VectorXd result(c.values.size() + 1000);
  result << c.values, VectorXd::LinSpaced(1000, from, c.values.maxCoeff() + 2.0 * range);
  std::ranges::sort(result);
  return result;
}

TEST(OutputTransform, TakesEveryValueBackToItself) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const VectorXd probe = probes(c);
    const double unit = probe.cwiseAbs().maxCoeff();
    for (const double value : probe)
      // The rounding error of the largest number involved; that of a logarithm is relative.
      EXPECT_LE(std::abs(c.transform.from_latent(c.transform.to_latent(value)) - value),
                1e-14 * (c.name == "log" ? value : unit));
  }
}

TEST(OutputTransform, KeepsTheOrder) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const VectorXd probe = probes(c);
    const VectorXd latent = c.transform.to_latent(probe);
    EXPECT_TRUE(std::ranges::is_sorted(latent));
    VectorXd distinct = c.values;
    std::ranges::sort(distinct);
    for (Index i = 1; i < distinct.size(); ++i) {
      if (distinct[i] == distinct[i - 1]) continue;
      EXPECT_LT(c.transform.to_latent(distinct[i - 1]), c.transform.to_latent(distinct[i])) << distinct[i];
    }
  }
}

TEST(OutputTransform, LeavesTheBetterHalfAloneAndGivesTheWorseHalfNormalScores) {
  const surrogate::OutputTransform transform(Kind::kRankRobust, vector({-1e9, 1.0, 2.0, 4.0, 5.0}));
  for (const double value : {2.0, 3.0, 4.0, 5.0, 700.0}) EXPECT_EQ(transform.to_latent(value), value);
  // s^2 = (0 + 4 + 9) / 3; Phi^-1(0.1), Phi^-1(0.3) by mpmath.
  const double stddev = std::sqrt(13.0 / 3.0);
  EXPECT_LE(std::abs(transform.to_latent(-1e9) - (2.0 - 1.2815515655446004 * stddev)), 1e-14);
  EXPECT_LE(std::abs(transform.to_latent(1.0) - (2.0 - 0.52440051270804067 * stddev)), 1e-14);
}

TEST(OutputTransform, GivesTiesTheMeanOfTheirRanks) {
  // Two of eight at the bottom: ranks 1 and 2, quantile (1.5 - 0.5) / 8 = 1/8; Phi^-1(1/8) by mpmath.
  const surrogate::OutputTransform transform(Kind::kRankRobust, vector({1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0}));
  const double stddev = std::sqrt((0.0 + 0.0 + 1.0 + 1.0 + 4.0) / 5.0);
  EXPECT_LE(std::abs(transform.to_latent(1.0) - (3.0 - 1.1503493803760083 * stddev)), 1e-14);
}

TEST(OutputTransform, IsTheIdentityWhereNothingIsBelowTheMedian) {
  for (const VectorXd& values : {vector({2.0}), vector({2.0, 2.0, 2.0}), vector({2.0, 2.0, 2.0, 9.0})}) {
    const surrogate::OutputTransform transform(Kind::kRankRobust, values);
    for (const double value : {-50.0, 0.0, 2.0, 9.0}) EXPECT_EQ(transform.to_latent(value), value);
  }
}

TEST(OutputTransform, HasTheQuantileOfAPointWhereNothingIsUncertain) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    for (const double value : c.values) {
      const double latent = c.transform.to_latent(value);
      const double unit = 1.0 + std::abs(value);
      EXPECT_LE(std::abs(c.transform.output_quantile(latent, 0.0, 0.9) - value), 1e-14 * unit);
    }
  }
}

TEST(OutputTransform, HasTheQuantilesOfTheLatentNormal) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const double mean = c.transform.to_latent(c.values[0]);
    constexpr double kStddev = 0.7;
    // Phi^-1 of 0.05 and 0.975 by mpmath.
    for (const auto& [probability, score] :
         {std::pair{0.05, -1.6448536269514727}, std::pair{0.5, 0.0}, std::pair{0.975, 1.9599639845400542}}) {
      const double quantile = c.transform.output_quantile(mean, kStddev * kStddev, probability);
      EXPECT_LE(std::abs(quantile - c.transform.from_latent(mean + kStddev * score)),
                1e-13 * (1.0 + std::abs(quantile)));
    }
  }
  const surrogate::OutputTransform identity(Kind::kIdentity, vector({1.0}));
  for (const double probability : {0.0, 1.0, -0.1, std::nan("")})
    EXPECT_THROW(identity.output_quantile(0.0, 1.0, probability), UserError);
}

TEST(OutputTransform, CarriesTheVarianceOfNoiseByItsSlope) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const VectorXd probe = probes(c);
    for (Index i = 0; i + 1 < probe.size(); ++i) {
      const double value = 0.5 * (probe[i] + probe[i + 1]);
      const double gap = probe[i + 1] - probe[i];
      if (!(gap > 1e-6 * std::abs(value))) continue;
      // There is no knot between two neighbouring probes: a piece is straight, and a logarithm is smooth.
      const double stddev = 1e-4 * gap;
      const double slope = (c.transform.to_latent(value + stddev) - c.transform.to_latent(value - stddev)) / stddev / 2;
      EXPECT_LE(std::abs(c.transform.latent_variance(value, stddev * stddev) / (slope * slope * stddev * stddev) - 1.0),
                1e-3);
    }
    EXPECT_EQ(c.transform.latent_variance(c.values[0], 0.0), 0.0);
  }
}

TEST(OutputTransform, CarriesNoiseThatIsWiderThanItsPiecesByTheMeanSlope) {
  const surrogate::OutputTransform transform(Kind::kRankRobust,
                                             vector({1.0, 1.0 + 1e-15, 1.0 + 2e-15, 2.0, 3.0, 4.0, 5.0}));
  EXPECT_LE(transform.latent_variance(1.0 + 1e-15, 1e-2), 10.0);
  EXPECT_GE(transform.latent_variance(1.0 + 1e-15, 1e-2), 1e-2);
}

TEST(OutputTransform, RefusesWhatItCannotTransform) {
  for (const Kind kind : {Kind::kIdentity, Kind::kLog, Kind::kRankRobust}) {
    EXPECT_THROW(surrogate::OutputTransform(kind, VectorXd()), UserError);
    EXPECT_THROW(surrogate::OutputTransform(kind, vector({1.0, std::nan("")})), UserError);
    EXPECT_THROW(surrogate::OutputTransform(kind, vector({1.0, std::numeric_limits<double>::infinity()})), UserError);
  }
  EXPECT_THROW(surrogate::OutputTransform(Kind::kLog, vector({1.0, 0.0})), UserError);
  const surrogate::OutputTransform log(Kind::kLog, vector({1.0}));
  for (const double value : {0.0, -1.0, std::nan("")}) EXPECT_THROW(log.to_latent(value), UserError);
}

}  // namespace krigtune::output_transform_test
