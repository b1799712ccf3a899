#include "search/model/trial_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "search/fixtures.h"

namespace krigtune::trial_cost_test {

double speed(const space::Configuration& c) {
  const double batch = std::exp2(log2_of(c, "batch"));
  const double bucket = log2_of(c, "bucket") - 15.0;
  const double stage = space::as_number(*c.find("stage"));
  return 1000.0 * batch / (batch + 6.0) * std::exp(-0.02 * bucket * bucket) * (1.0 - 0.05 * stage) *
         (1.0 + 0.05 * space::as_number(*c.find("overlap")));
}

using Seconds = std::function<double(const space::Configuration&)>;

// A higher stage takes long to set up: 10 to 200 s per trial, whatever it achieves.
double by_stage(const space::Configuration& c) {
  return 10.0 * std::pow(20.0, space::as_number(*c.find("stage")) / 3.0);
}
// Each trial processes a fixed number of samples: 13 to 250 s.
double by_speed(const space::Configuration& c) { return 12'000.0 / speed(c); }
// Each trial runs a fixed number of steps: 10 to 100 s, longest where the throughput is highest.
double by_steps(const space::Configuration& c) { return 1400.0 * std::exp2(log2_of(c, "batch")) / speed(c); }

struct Spent {
  double trials = 0.0;
  double seconds = 0.0;
};

// The cost until a value within 5 % of the best. `told`: whether the strategy knows the seconds.
Spent to_5pct(const Problem& problem, std::uint64_t seed, const Seconds& seconds, bool told) {
  double optimum = 0.0;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    optimum = std::max(optimum, speed(problem.candidates[i]));
  }
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, seed);
  const ManualClock clock;
  run::Tuner tuner({problem.session, problem.candidates, *strategy, clock});
  Spent spent;
  for (double best = 0.0; best < 0.95 * optimum && spent.trials < 60.0;) {
    const journal::Trial trial = *tuner.ask();
    const double wall_s = seconds(trial.proposal.configuration);
    best = std::max(best, speed(trial.proposal.configuration));
    tuner.tell(trial.number, measured(problem.session, speed(trial.proposal.configuration)), told ? wall_s : 0.0);
    ++spent.trials;
    spent.seconds += wall_s;
  }
  return spent;
}

Spent mean_to_5pct(const Problem& problem, const Seconds& seconds, bool told) {
  constexpr int kSeeds = 15;
  Spent mean;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Spent spent = to_5pct(problem, seed, seconds, told);
    mean.trials += spent.trials / kSeeds;
    mean.seconds += spent.seconds / kSeeds;
  }
  return mean;
}

TEST(TrialCosts, ShortenTheWayToTheBestAndHardlyCostTrials) {
  const Problem problem(plain_session(kFourKnobs));
  for (const auto& [seconds, most] :
       std::vector<std::pair<Seconds, double>>{{by_stage, 0.6}, {by_speed, 0.95}, {by_steps, 0.95}}) {
    const Spent blind = mean_to_5pct(problem, seconds, false);
    const Spent told = mean_to_5pct(problem, seconds, true);
    EXPECT_LE(told.seconds, most * blind.seconds);
    EXPECT_LE(told.trials, blind.trials + 1.0);
  }
}

search::History driven(const Problem& problem, int trials, const Seconds& seconds) {
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, 1);
  const ManualClock clock;
  run::Tuner tuner({problem.session, problem.candidates, *strategy, clock});
  for (int i = 0; i < trials; ++i) {
    const journal::Trial trial = *tuner.ask();
    tuner.tell(trial.number, measured(problem.session, speed(trial.proposal.configuration)),
               seconds(trial.proposal.configuration));
  }
  return tuner.history();
}

TEST(TrialCosts, ChangeNothingWhereTrialsTakeAboutTheSameOrNoTime) {
  const Problem problem(plain_session(kFourKnobs));
  const std::vector<std::string> none = texts(driven(problem, 15, [](const space::Configuration&) { return 0.0; }));
  const auto alike = [](const space::Configuration& c) { return 20.0 + 0.02 * speed(c) / 10.0; };
  EXPECT_EQ(texts(driven(problem, 15, alike)), none);
  const auto looked_up = [](const space::Configuration& c) {
    return 1e-9 * std::pow(speed(c), 3.0);
  };  // less than a second
  EXPECT_EQ(texts(driven(problem, 15, looked_up)), none);
}

class LearnedCost : public testing::Test {
 protected:
  LearnedCost() : problem_(plain_session(kFourKnobs)) {}

  Eigen::VectorXd log_seconds(const search::History& history,
                              const std::vector<space::Configuration>& configurations) const {
    search::TrialModel model(problem_.session.objective, problem_.candidates, history);
    Rng rng(1, 0);
    model.fit(rng);
    const surrogate::Points points = problem_.candidates.encode(configurations);
    const search::TrialCost cost(history, model);
    EXPECT_TRUE(cost.differs());
    return cost.log_seconds(points, model.predict(points).mean);
  }

  Problem problem_;
};

TEST_F(LearnedCost, PredictsTheSecondsOfOtherConfigurations) {
  search::History history = problem_.drive(search::StrategyKind::kRandom, 1, 40, [&](const space::Configuration& c) {
    return measured(problem_.session, speed(c));
  });
  for (const Seconds& seconds : {Seconds(by_stage), Seconds(by_speed), Seconds(by_steps)}) {
    for (journal::Trial& trial : history) trial.wall_s = seconds(trial.proposal.configuration);
    std::vector<space::Configuration> others;
    for (std::size_t i = 0; i < problem_.candidates.size(); i += 7) others.push_back(problem_.candidates[i]);
    const Eigen::VectorXd predicted = log_seconds(history, others);
    double squares = 0.0;
    for (std::size_t i = 0; i < others.size(); ++i) {
      const double error = predicted(static_cast<Eigen::Index>(i)) - std::log(seconds(others[i]));
      squares += error * error / static_cast<double>(others.size());
    }
    EXPECT_LE(std::sqrt(squares), 0.3);
  }
}

// Running out of memory within a second is no reason to go there.
TEST_F(LearnedCost, DoesNotTakeFailingSoonForASaving) {
  search::History history = driven(problem_, 10, by_stage);
  const std::vector<space::Configuration> somewhere{problem_.candidates[100]};
  const double before = log_seconds(history, somewhere)(0);
  journal::Trial failed;
  failed.number = static_cast<int>(history.size());
  failed.proposal.configuration = somewhere.front();
  failed.outcome = trial::OutOfMemory{};
  failed.wall_s = 1.0;
  history.push_back(failed);
  EXPECT_DOUBLE_EQ(log_seconds(history, somewhere)(0), before);
  // A time-out is a cost of that region.
  history.back().outcome = trial::Failed{trial::FailureReason::kTimeout, 0, ""};
  history.back().wall_s = 4000.0;
  EXPECT_GT(log_seconds(history, somewhere)(0), before + 0.5);
}

}  // namespace krigtune::trial_cost_test
