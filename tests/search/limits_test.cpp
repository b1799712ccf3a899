// Limits of measured metrics that are no objectives: what keeps to them, and a search that honours them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/fixtures.h"
#include "search/model/best.h"
#include "search/model/front.h"
#include "search/model/limit_models.h"

namespace krigtune::limits_test {

constexpr std::uint64_t kSeed = 54;

session::Objective at_most(const std::string& metric, double bound) {
  session::Objective limit{metric, false, metric};
  limit.by_ratio = false;
  limit.limit = bound;
  return limit;
}

/// Larger batches are faster and draw more power; the overlap costs power too.
trial::Outcome answer(const space::Configuration& c) {
  const double batch = log2_of(c, "batch");
  const double stage = space::as_number(*c.find("stage"));
  const bool overlap = space::to_string(*c.find("overlap")) == "true";
  const double bucket = log2_of(c, "bucket") - 15.0;
  trial::Measured result;
  result.metrics = {{"speed", 100.0 * (1.0 - std::exp(-0.4 * (batch + 1.0))) * (1.0 - 0.08 * stage) *
                                  (1.0 - 0.01 * bucket * bucket) * (overlap ? 1.1 : 1.0)},
                    {"memory", 10.0 / (1.0 + stage) + std::exp2(batch)},
                    {"power", 150.0 + 25.0 * batch - 20.0 * stage + (overlap ? 30.0 : 0.0)}};
  return result;
}

double metric(const space::Configuration& c, const std::string& name) {
  return std::get<trial::Measured>(answer(c)).metrics.at(name);
}

session::Session limited(double most_power) {
  session::Session session = plain_session(kFourKnobs);
  session.limits = {at_most("power", most_power)};
  return session;
}

journal::Trial closed(int number, const std::string& value, double speed, double power) {
  journal::Trial trial;
  trial.number = number;
  trial.proposal.configuration = {{"a", value}};
  trial::Measured result;
  result.metrics = {{"speed", speed}, {"power", power}};
  trial.outcome = result;
  return trial;
}

TEST(Limits, AreKeptByTheMeansOfAConfigurationsTrials) {
  const session::Session session = limited(300.0);
  search::History history = {closed(0, "p", 1.0, 299.0), closed(1, "q", 2.0, 310.0), closed(2, "q", 2.0, 289.0),
                             closed(3, "r", 3.0, 301.0), closed(4, "s", 4.0, 300.0)};
  const search::History kept = search::without_broken(session, history);
  const auto succeeds = [&](std::size_t i) { return std::holds_alternative<trial::Measured>(*kept[i].outcome); };
  EXPECT_TRUE(succeeds(0));
  EXPECT_TRUE(succeeds(1) && succeeds(2)) << "299.5 on average";
  EXPECT_FALSE(succeeds(3));
  EXPECT_TRUE(succeeds(4)) << "the limit itself is allowed";
  EXPECT_EQ(search::broken_limits(session, history[3]), "power 301 (limit 300)");
  EXPECT_EQ(search::broken_limits(session, history[4]), "");
  std::get<trial::Measured>(*history[0].outcome).metrics.erase("power");
  EXPECT_EQ(search::broken_limits(session, history[0]), "power not reported");
  EXPECT_EQ(search::trials_without_progress(session, history), 0);
}

// Against draws of the two predicted metrics.
TEST(Limits, AreKeptWithTheProbabilityThatDrawsOfTheModelsHave) {
  session::Session session = limited(230.0);
  session.limits.push_back(at_most("memory", 25.0));
  const Problem problem(std::move(session));
  const search::History history = problem.drive(search::StrategyKind::kRandom, kSeed, 12, answer);
  const auto list = problem.candidates.to_score(history, kSeed);
  Rng for_limits(kSeed, 1), for_models(kSeed, 1), draws(kSeed, 2);
  const Eigen::VectorXd probability =
      search::LimitModels(problem.session, problem.candidates, history, for_limits).probability(*list);
  std::vector<search::OtherObjective> models;
  for (const session::Objective& limit : problem.session.limits) {
    models.emplace_back(limit, problem.candidates, history);
    models.back().fit(for_models);
  }
  constexpr int kDraws = 20'000;  // a standard error of 0.0035 at most
  for (const Eigen::Index row : {0, 100, 200, 300, 400}) {
    int within = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      bool keeps = true;
      for (std::size_t j = 0; j < models.size(); ++j) {
        const surrogate::Prediction at = models[j].predict({list->configurations[static_cast<std::size_t>(row)]});
        const double stddev = std::sqrt(at.variance(0) + models[j].noise_variance());
        const double value = models[j].scale().from_latent(at.mean(0) + stddev * draws.normal());
        keeps = keeps && value <= *problem.session.limits[j].limit;
      }
      within += keeps ? 1 : 0;
    }
    EXPECT_LE(std::abs(probability(row) - static_cast<double>(within) / kDraws), 0.015) << "row " << row;
  }
}

TEST(Limits, TheBestWithinThemIsFoundAndRecommended) {
  constexpr double kMostPower = 215.0;
  const Problem problem(limited(kMostPower));
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeed, 40, answer);
  double best = 0.0, best_of_all = 0.0;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    const space::Configuration& c = problem.candidates[i];
    best_of_all = std::max(best_of_all, metric(c, "speed"));
    if (metric(c, "power") <= kMostPower) best = std::max(best, metric(c, "speed"));
  }
  ASSERT_GE(best_of_all, 1.1 * best) << "the limit matters";
  const auto recommended = search::recommend(problem.session, problem.candidates, found, kSeed);
  ASSERT_TRUE(recommended);
  EXPECT_LE(metric(recommended->configuration, "power"), kMostPower);
  EXPECT_GE(recommended->value, 0.99 * best) << "seed " << kSeed;
  const auto breaks = [&](const journal::Trial& trial) {
    return !search::broken_limits(problem.session, trial).empty();
  };
  // Two in five configurations of the space break it, and the fastest do.
  EXPECT_LE(std::count_if(found.begin() + 10, found.end(), breaks), 10) << "of the last 30 trials";
}

TEST(Limits, NothingIsRecommendedWhileAllBreakOne) {
  const Problem problem(limited(20.0));
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeed, 8, answer);
  EXPECT_EQ(found.size(), 8);
  EXPECT_FALSE(search::recommend(problem.session, problem.candidates, found, kSeed));
}

TEST(Limits, TheFrontWithinThemIsFound) {
  constexpr double kMostPower = 215.0;
  session::Session session = limited(kMostPower);
  session.others = {{"memory", false, "memory"}};
  const Problem problem(std::move(session));
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeed, 45, answer);
  const auto volume = [&](const auto& configurations) {
    Eigen::MatrixXd points(0, 2);
    for (const space::Configuration& c : configurations) {
      if (metric(c, "power") > kMostPower) continue;
      points.conservativeResize(points.rows() + 1, 2);
      points.row(points.rows() - 1) << metric(c, "speed"), -metric(c, "memory");
    }
    return surrogate::hypervolume(points, Eigen::Vector2d(0.0, -80.0));
  };
  std::vector<space::Configuration> all, tried;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) all.push_back(problem.candidates[i]);
  for (const journal::Trial& trial : found) tried.push_back(trial.proposal.configuration);
  EXPECT_GE(volume(tried) / volume(all), 0.97) << "seed " << kSeed;
  for (const search::FrontMember& member : search::front_of(problem.session, found)) {
    EXPECT_LE(metric(member.configuration, "power"), kMostPower);
  }
}

}  // namespace krigtune::limits_test
