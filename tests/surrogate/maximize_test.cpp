#include "krigtune/surrogate/maximize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "krigtune/surrogate/surrogate.h"
#include "spaces.h"

namespace krigtune::maximize_test {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double square(double x) { return x * x; }

/// Branin on the unit square, negated: three maxima of -0.397887, one of them at (0.54277, 0.15167).
double branin(double a, double b) {
  const double x = 15.0 * a - 5.0;
  const double y = 15.0 * b;
  const double pi = std::numbers::pi;
  return -(square(y - 5.1 / (4 * pi * pi) * x * x + 5.0 / pi * x - 6.0) + 10.0 * (1.0 - 1.0 / (8 * pi)) * std::cos(x) +
           10.0);
}

surrogate::Maximum maximum_of(const surrogate::ScoreFunction& score, const surrogate::MixedSpace& space,
                              std::uint64_t seed = 1) {
  Rng rng(seed, 0);
  return surrogate::maximize(score, space, {}, rng);
}

TEST(Maximize, FindsTheTopOfBranin) {
  const Function f([](const surrogate::Points& p, Index i) { return branin(p.ordered(i, 0), p.ordered(i, 1)); });
  for (const std::uint64_t seed : {1, 2, 3}) {
    const surrogate::Maximum found = maximum_of(f, continuous(2), seed);
    EXPECT_LE(std::abs(found.score + 0.39788735772973816), 1e-6) << "seed " << seed;
    EXPECT_LE(std::abs(found.score - branin(found.point.ordered(0, 0), found.point.ordered(0, 1))), 0.0);
  }
}

TEST(Maximize, FindsTheHigherOfTwoBumpsInEightDimensions) {
  const Function f([](const surrogate::Points& p, Index i) {
    const double far = (p.ordered.row(i).array() - 0.2).square().sum();
    const double near = (p.ordered.row(i).array() - 0.7).square().sum();
    return std::log(std::exp(-4.0 * far) + 1.5 * std::exp(-4.0 * near));
  });
  const surrogate::Maximum found = maximum_of(f, continuous(8));
  EXPECT_LE((found.point.ordered.array() - 0.7).abs().maxCoeff(), 0.01);
}

TEST(Maximize, FindsACornerOfTheCube) {
  const Function f(
      [](const surrogate::Points& p, Index i) { return p.ordered(i, 0) - p.ordered(i, 1) + p.ordered(i, 2); });
  const surrogate::Maximum found = maximum_of(f, continuous(3));
  EXPECT_EQ(found.point.ordered, Eigen::RowVector3d(1.0, 0.0, 1.0));
  EXPECT_EQ(found.score, 2.0);
}

TEST(Maximize, FindsTheBestOfAFineGridTooLargeToList) {
  surrogate::MixedSpace space;
  for (int j = 0; j < 5; ++j) space.ordered.push_back({grid(j % 2 == 0 ? 1000 : 7)});
  // A narrow peak: the nearest of the first 1024 points is hundreds of values away.
  const Function f([](const surrogate::Points& p, Index i) {
    const Eigen::RowVectorXd top = (Eigen::RowVectorXd(5) << 0.3, 0.5, 0.9, 1.0 / 6.0, 0.05).finished();
    return -(p.ordered.row(i) - top).cwiseAbs().sum();
  });
  const surrogate::Maximum found = maximum_of(f, space);
  for (Index j = 0; j < 5; ++j) {
    const auto& values = space.ordered[static_cast<std::size_t>(j)].values;
    EXPECT_TRUE(std::find(values.begin(), values.end(), found.point.ordered(0, j)) != values.end());
  }
  // The nearest points of the grid k / 999 are at 0.3 - 0.0003, 0.9 - 0.0009 + 0.0010 and 0.05 - 0.00005.
  EXPECT_LE(-found.score, 3.1e-4 + 1.1e-4 + 5.1e-5 + 1e-12);
}

TEST(Maximize, FindsTheBestCategories) {
  surrogate::MixedSpace space;
  space.categories = {5, 9, 30, 40};
  const Function f([](const surrogate::Points& p, Index i) {
    const Eigen::RowVector4i top(3, 8, 17, 0);
    return -static_cast<double>((p.categories.row(i).array() != top.array()).count());
  });
  const surrogate::Maximum found = maximum_of(f, space);
  EXPECT_EQ(found.point.categories, Eigen::RowVector4i(3, 8, 17, 0));
}

/// Continuous columns, a grid and a category whose best value moves the continuous optimum: neither part can be found
/// alone.
double mixed(const surrogate::Points& p, Index i) {
  const double shift = 0.1 * p.categories(i, 0) + 0.3 * p.ordered(i, 1);
  return -square(p.ordered(i, 0) - shift) * 50.0 - square(p.ordered(i, 1) - 0.6) + 0.2 * (p.categories(i, 0) == 2) -
         square(p.ordered(i, 2) - 0.25);
}

TEST(Maximize, FindsTheTopOfAMixedSpace) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const surrogate::Maximum found = maximum_of(Function(mixed), mixed_space(), seed);
    EXPECT_EQ(found.point.categories(0, 0), 2) << "seed " << seed;
    EXPECT_EQ(found.point.ordered(0, 1), 0.6);
    EXPECT_LE(std::abs(found.point.ordered(0, 0) - 0.38), 1e-3);
    EXPECT_LE(std::abs(found.point.ordered(0, 2) - 0.25), 1e-3);
  }
}

TEST(Maximize, UsesFeaturesWithoutTheirGradients) {
  surrogate::MixedSpace space = continuous(2);
  space.add_features = [](surrogate::Points& points) { points.features = points.ordered.rowwise().sum(); };
  // The gradient that holds the features fixed points away from the maximum at x0 + x1 = 1, x0 = 0.3.
  class WithFeatures final : public surrogate::ScoreFunction {
   public:
    VectorXd values(const surrogate::Points& p) const override {
      return -(p.features.col(0).array() - 1.0).square() - (p.ordered.col(0).array() - 0.3).square();
    }
    double value_with_gradient(const surrogate::Points&, VectorXd&) const override {
      ADD_FAILURE() << "gradients are of no use here";
      return 0.0;
    }
  };
  const surrogate::Maximum found = maximum_of(WithFeatures(), space);
  EXPECT_LE(-found.score, 1e-7);
  EXPECT_EQ(found.point.features(0, 0), found.point.ordered.sum());
}

TEST(Maximize, FindsTheTopOnTheEdgeOfWhatIsAllowed) {
  surrogate::MixedSpace space = continuous(2);
  space.allowed = [](const surrogate::Points& p, Index i) { return p.ordered(i, 0) + 2.0 * p.ordered(i, 1) <= 1.0; };
  const Function f([](const surrogate::Points& p, Index i) {
    return -square(p.ordered(i, 0) - 0.5) - square(p.ordered(i, 1) - 0.5);
  });
  for (const std::uint64_t seed : {1, 2, 3}) {
    const surrogate::Maximum found = maximum_of(f, space, seed);
    EXPECT_TRUE(space.allowed(found.point, 0));
    // The foot of the perpendicular from (0.5, 0.5) is (0.4, 0.3), at a distance of 0.05^(1/2).
    EXPECT_LE(std::abs(found.score + 0.05), 1e-4) << "seed " << seed;
  }
}

TEST(Maximize, FindsTheTopWhereColumnsAreTiedToEachOther) {
  // Three columns of powers of two that must multiply to 2^20: no single column can move.
  surrogate::MixedSpace space;
  for (int j = 0; j < 3; ++j) space.ordered.push_back({grid(21)});
  space.categories = {50};
  space.allowed = [](const surrogate::Points& p, Index i) { return std::abs(p.ordered.row(i).sum() - 1.0) < 1e-9; };
  const Function f([](const surrogate::Points& p, Index i) {
    return -square(p.ordered(i, 0) - 0.6) - square(p.ordered(i, 1) - 0.1) - 0.01 * std::abs(p.categories(i, 0) - 33);
  });
  const surrogate::Maximum found = maximum_of(f, space);
  ASSERT_EQ(found.point.size(), 1);
  EXPECT_TRUE(space.allowed(found.point, 0));
  EXPECT_LE(std::abs(found.score), 1e-12);
}

TEST(Maximize, ListsASmallSpace) {
  surrogate::MixedSpace space;
  space.ordered = {{grid(10)}, {{0.1, 0.7}}};
  space.categories = {3, 2};
  space.allowed = [](const surrogate::Points& p, Index i) { return p.categories(i, 0) != 1; };
  // One point is much better than the others: only a complete search finds it.
  const Function f([](const surrogate::Points& p, Index i) {
    const bool it =
        p.ordered(i, 0) == 1.0 && p.ordered(i, 1) == 0.7 && p.categories(i, 0) == 2 && p.categories(i, 1) == 1;
    return it ? 1.0 : p.categories(i, 0) == 1 ? 2.0 : 0.0;
  });
  EXPECT_EQ(maximum_of(f, space).score, 1.0);
}

TEST(Maximize, NeverReturnsAPointOutsideOrNotAllowed) {
  surrogate::MixedSpace space = mixed_space();
  space.allowed = [](const surrogate::Points& p, Index i) { return p.ordered(i, 0) < 0.2 && p.categories(i, 0) != 2; };
  surrogate::Points hints = surrogate::Points::zero(2, 3, 1);
  hints.ordered.row(0) << 3.0, -1.0, 0.5;  // outside
  hints.ordered.row(1) << 0.38, 0.6, 0.25;
  hints.categories(1, 0) = 2;  // not allowed
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Rng rng(seed, 0);
    const surrogate::Maximum found = surrogate::maximize(Function(mixed), space, hints, rng);
    ASSERT_EQ(found.point.size(), 1);
    EXPECT_TRUE(space.allowed(found.point, 0));
    EXPECT_TRUE((found.point.ordered.array() >= 0.0).all() && (found.point.ordered.array() <= 1.0).all());
    EXPECT_LE(std::abs(found.point.ordered(0, 1) * 10 - std::round(found.point.ordered(0, 1) * 10)), 1e-12);
  }
}

TEST(Maximize, ReturnsNothingWhereNothingIsAllowed) {
  for (surrogate::MixedSpace space : {continuous(2), mixed_space(), surrogate::MixedSpace{{}, {3}, {}, {}}}) {
    space.allowed = [](const surrogate::Points&, Index) { return false; };
    EXPECT_EQ(maximum_of(Function([](const surrogate::Points&, Index) { return 0.0; }), space).point.size(), 0);
  }
}

TEST(Maximize, FindsANarrowPeakThatAHintIsNearTo) {
  const Function f([](const surrogate::Points& p, Index i) {
    return std::exp(-(p.ordered.row(i).array() - 0.4321).square().sum() / square(0.003));
  });
  surrogate::Points hint = surrogate::Points::zero(1, 4, 0);
  hint.ordered.setConstant(0.435);
  // The hint is a measured point that must not be proposed again.
  surrogate::MixedSpace space = continuous(4);
  space.allowed = [&](const surrogate::Points& p, Index i) {
    return (p.ordered.row(i) - hint.ordered.row(0)).norm() > 1e-9;
  };
  Rng rng(1, 0);
  EXPECT_GE(surrogate::maximize(f, space, hint, rng).score, 1.0 - 1e-6);
}

TEST(Maximize, GivesTheSameForTheSameRngAndLooksElsewhereForAnother) {
  const Function f([](const surrogate::Points& p, Index i) { return branin(p.ordered(i, 0), p.ordered(i, 1)); });
  EXPECT_EQ(maximum_of(f, continuous(2), 7).point.ordered, maximum_of(f, continuous(2), 7).point.ordered);
  EXPECT_NE(maximum_of(f, continuous(2), 7).point.ordered, maximum_of(f, continuous(2), 8).point.ordered);
}

TEST(Maximize, LeavesAPlainOfNoScoreByTheFirstStepThatHasOne) {
  // All of the first points score -inf; a move of one column leads to points with a score.
  surrogate::MixedSpace space;
  for (int j = 0; j < 4; ++j) space.ordered.push_back({grid(100)});
  const Function f([](const surrogate::Points& p, Index i) {
    return p.ordered(i, 0) < 0.02 ? -std::abs(p.ordered(i, 0)) - std::abs(p.ordered(i, 1) - 1.0) : -kInfinity;
  });
  surrogate::MaximizeOptions options;
  options.samples = 4;
  surrogate::Points hint = surrogate::Points::zero(1, 4, 0);
  hint.ordered.setConstant(0.5);
  Rng rng(1, 0);
  EXPECT_EQ(surrogate::maximize(f, space, hint, rng, options).score, 0.0);
}

TEST(Maximize, TakesNoScoreThatIsNotANumber) {
  const Function f([](const surrogate::Points& p, Index i) {
    return p.ordered(i, 0) > 0.5 ? std::nan("") : (p.ordered(i, 0) > 0.25 ? -kInfinity : p.ordered(i, 0));
  });
  const surrogate::Maximum found = maximum_of(f, continuous(1));
  EXPECT_LE(std::abs(found.score - 0.25), 1e-4);
}

TEST(BestCandidate, IsTheFirstOfTheLargestThatIsAllowed) {
  const VectorXd scores = (VectorXd(6) << -kInfinity, 1.0, std::nan(""), 3.0, 2.0, 3.0).finished();
  EXPECT_EQ(surrogate::best_candidate(scores), 3);
  EXPECT_EQ(surrogate::best_candidate(scores, {true, true, true, false, true, false}), 4);
  EXPECT_EQ(surrogate::best_candidate(scores, {true, false, true, false, false, false}), 0);
  EXPECT_EQ(surrogate::best_candidate(scores, {false, false, true, false, false, false}), -1);
  EXPECT_EQ(surrogate::best_candidate(VectorXd()), -1);
}

/// A fitted process of Branin's values at 15 points.
std::shared_ptr<surrogate::Surrogate> fitted_branin() {
  Rng rng(3, 0);
  const surrogate::Points points = continuous(2).sample(15, rng);
  VectorXd values(15);
  for (Index i = 0; i < 15; ++i) values[i] = branin(points.ordered(i, 0), points.ordered(i, 1));
  auto surrogate = std::make_shared<surrogate::Surrogate>();
  surrogate->fit({points, values, {}}, rng);
  return surrogate;
}

TEST(Maximize, IsAsGoodAsAFineGridForExpectedImprovement) {
  const auto surrogate = fitted_branin();
  const surrogate::Score score({{surrogate, surrogate::make_log_expected_improvement(-5.0)}});
  const std::vector<double> side = grid(301);
  surrogate::Points all = surrogate::Points::zero(0, 2, 0);
  for (const double x : side) {
    surrogate::Points column = surrogate::Points::zero(std::ssize(side), 2, 0);
    column.ordered.col(0).setConstant(x);
    column.ordered.col(1) = VectorXd::Map(side.data(), std::ssize(side));
    all.append(column);
  }
  const double of_grid = score.values(all).maxCoeff();
  // The best point is the corner (1, 0), which belongs to the grid. The search scores it alone and with a gradient, the
  // grid among 90601 points, so sums are formed in another order. The observed difference was 1e-15.
  const double least = of_grid - 1e-12 * (1.0 + std::abs(of_grid));
  for (const std::uint64_t seed : {1, 2, 3}) EXPECT_GE(maximum_of(score, continuous(2), seed).score, least);
}

}  // namespace krigtune::maximize_test
