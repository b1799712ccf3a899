// What is scored if a space cannot be listed, and what the surrogate expects on continuous axes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "search/fixtures.h"
#include "search/large_spaces.h"
#include "search/model/best.h"

namespace krigtune::pool_test {

TEST(Pool, IsAPureFunctionOfItsArgumentsInADefinedOrder) {
  const Problem problem(plain_session(kReal));
  ASSERT_FALSE(problem.candidates.listed());
  EXPECT_FALSE(problem.candidates.empty());
  EXPECT_FALSE(problem.candidates.space_count());
  const search::History history =
      problem.drive(search::StrategyKind::kRandom, 1, 5,
                    [&](const space::Configuration& c) { return measured(problem.session, real_hill(c)); });
  const auto one = problem.candidates.to_score(history, 3);
  const auto two = problem.candidates.to_score(history, 3);
  const auto other_seed = problem.candidates.to_score(history, 4);
  const auto later = problem.candidates.to_score(search::History(history.begin(), history.end() - 1), 3);
  EXPECT_EQ(one->configurations, two->configurations);
  EXPECT_NE(one->configurations, other_seed->configurations);
  EXPECT_NE(one->configurations, later->configurations);
  EXPECT_GE(one->size(), 3'900U);
  EXPECT_EQ(one->index.size(), one->size());  // each once
  EXPECT_EQ(one->points.size(), static_cast<Eigen::Index>(one->size()));
  double last_lr = 0.0;
  for (const space::Configuration& configuration : one->configurations) {
    EXPECT_TRUE(problem.session.space.contains(configuration));
    EXPECT_GE(number(configuration, "lr"), last_lr);
    last_lr = number(configuration, "lr");
  }
}

TEST(Pool, HoldsWhatLiesNearTheBestTrial) {
  const Problem problem(plain_session(kReal));
  const space::Configuration best{
      {"lr", 1e-3}, {"momentum", 0.8}, {"kind", std::string("b")}, {"depth", std::int64_t{5}}};
  search::History history(1);
  history[0].proposal.configuration = best;
  history[0].outcome = measured(problem.session, 100.0);
  const auto pool = problem.candidates.to_score(history, 1);
  // Of 4,000 uniform samples none would be expected this near: 2 * 0.01 * 2 * 0.01 / 4 / 16 of the space.
  const auto near =
      std::count_if(pool->configurations.begin(), pool->configurations.end(), [](const space::Configuration& c) {
        return std::abs(std::log10(number(c, "lr")) + 3.0) < 0.04 && std::abs(number(c, "momentum") - 0.8) < 0.01 &&
               number(c, "depth") == 5 && std::get<std::string>(*c.find("kind")) == "b";
      });
  EXPECT_GE(near, 30);
  EXPECT_TRUE(pool->index.count(problem.candidates.key(best)));
}

TEST(Pool, KeysAreOfValuesNotOfTheirForm) {
  const Problem problem(plain_session(kReal));
  const auto key = [&](space::Value lr, space::Value depth) {
    return problem.candidates.key({{"lr", std::move(lr)}, {"depth", std::move(depth)}});
  };
  EXPECT_EQ(key(0.5, std::int64_t{4}), key(0.5, 4.0));
  EXPECT_EQ(key(0.0, std::int64_t{4}), key(-0.0, std::int64_t{4}));
  EXPECT_NE(key(0.5, std::int64_t{4}), key(std::nextafter(0.5, 1.0), std::int64_t{4}));
  EXPECT_NE(key(0.5, std::int64_t{4}), key(0.5, std::string("4")));
  EXPECT_NE(key(0.5, std::int64_t{4}), problem.candidates.key({{"lr", 0.5}}));
  EXPECT_NE(problem.candidates.key({{"momentum", 0.5}}), problem.candidates.key({{"lr", 0.5}}));
}

// Ackley's function over four continuous axes: ripples of a tenth of an axis on a cone whose minimum is 1. If
// lengthscales of whole axes are expected, the ripples look like noise, and searches end at 1.9 on average; otherwise
// at 1.1.
TEST(Bayes, SeesRipplesOnRealAxes) {
  const std::string axis = R"({"type": "real", "min": -5, "max": 5})";
  const std::string space = R"({"w": )" + axis + R"(, "x": )" + axis + R"(, "y": )" + axis + R"(, "z": )" + axis + "}";
  const Problem problem(plain_session(space, false));
  const auto ackley = [](const space::Configuration& c) {
    double square = 0.0;
    double wave = 0.0;
    for (const auto& [name, bottom] : {std::pair("w", 0.6), {"x", -1.4}, {"y", 2.2}, {"z", 0.4}}) {
      const double off = number(c, name) - bottom;
      square += off * off / 4.0;
      wave += std::cos(2.0 * std::numbers::pi * off) / 4.0;
    }
    return 21.0 + std::numbers::e - 20.0 * std::exp(-0.2 * std::sqrt(square)) - std::exp(wave);
  };
  double mean = 0.0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const search::History history =
        problem.drive(search::StrategyKind::kBayes, seed, 50,
                      [&](const space::Configuration& c) { return measured(problem.session, ackley(c)); });
    mean += search::best_value(problem.session.objective, history).value_or(30.0) / 6.0;
  }
  EXPECT_LE(mean, 1.6);
}

}  // namespace krigtune::pool_test
