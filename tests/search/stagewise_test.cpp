// DeepSpeed's algorithm: decision by decision, against a second implementation of it, and as a strategy.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "run/by_hand.h"
#include "run/loop_fixture.h"
#include "search/small_cluster.h"

namespace krigtune::stagewise_test {

// Worked out by hand from autotuner.py and the fixes in stagewise_walk.cpp.
TEST(Stagewise, DecidesAsWorkedOutByHand) {
  const Problem problem(plain_session(kStages));
  const search::History history =
      problem.drive(search::StrategyKind::kStagewise, 1, 200,
                    [&](const space::Configuration& c) { return small_cluster(problem.session, c); });
  const std::vector<std::string> expected{
      "0:1:10",                                   // the smallest one runs
      "0:16:10", "0:15:10",                       // the largest one and 0.95 of it do not
      "0:8:10",  "0:4:10",  "0:6:10",  "0:5:10",  // bisection: 5 is the largest
      "0:2:10",                                   // the list is 2 (two micro-steps for 5) and 5; below 5: 4 is slower
      "0:2:20",  "0:2:30",  "0:5:20",  "0:5:30",  // the grid of the buckets
      "1:5:10",                                   // stage 1 begins where stage 0 ended
      "1:16:10", "1:15:10",                       // and so on
      "1:10:10", "1:7:10",  "1:8:10",  "1:9:10",  // each gains more than 1 %
      "1:9:20",  "1:9:30",                        // the list is 9: from 5 on all take one step
      "2:9:10",  "2:16:10", "2:15:10", "2:12:10", "2:10:10",  // 9 is the largest again, and slower, so there is no grid
      "3:9:10",  "3:16:10", "3:15:10", "3:12:10", "3:14:10", "3:13:10", "3:11:10"};
  EXPECT_EQ(short_texts(history), expected);
}

TEST(Stagewise, EndsTheBisectionAtAPlateau) {
  session::Session session = plain_session(R"({"zero_stage": [0], "micro_batch": {"min": 1, "max": 16}})");
  const auto asked_at = [&](double plateau) {
    session.stagewise.plateau = plateau;
    const Problem problem(session);
    return short_texts(
        problem.drive(search::StrategyKind::kStagewise, 1, 50, [&](const space::Configuration& c) -> trial::Outcome {
          if (micro_batch_of(c) > 14) return trial::OutOfMemory{};
          return measured(problem.session, 100.0 + static_cast<double>(micro_batch_of(c)));
        }));
  };
  // 8 gains 6.9 % over 1, 12 gains 3.7 % over 8, 14 gains 1.8 % over 12.
  const std::vector<std::string> coarse = asked_at(0.05);
  const std::vector<std::string> fine = asked_at(0.01);
  const std::vector<std::string> alike{"0:1:10", "0:16:10", "0:15:10", "0:8:10", "0:12:10"};
  EXPECT_EQ(std::vector<std::string>(coarse.begin(), coarse.begin() + 5), alike);
  EXPECT_EQ(std::vector<std::string>(fine.begin(), fine.begin() + 5), alike);
  EXPECT_EQ(std::count(coarse.begin(), coarse.end(), "0:14:10"), 0);
  EXPECT_EQ(fine[5], "0:14:10");
}

/// The algorithm written directly after autotuner.py, "fast", for micro-batches 1 ... `most` and without a memory
/// formula. It remembers what ran.
class Reference {
 public:
  using Speed = std::function<std::optional<double>(int stage, int micro_batch)>;
  Reference(Speed speed, int most, double plateau) : speed_(std::move(speed)), most_(most), plateau_(plateau) {}

  std::vector<std::pair<int, int>> trace;

  void tune(int stages) {
    int max_mbs = 0;
    double metric = 0.0;
    for (int stage = 0; stage < stages; ++stage) {
      const auto [next_max, next_metric] = tune_space(stage, max_mbs);
      if (next_metric > metric) {
        max_mbs = next_max;
        metric = next_metric;
      }
    }
  }

 private:
  std::optional<double> run(int stage, int mbs) {
    if (seen_.insert({stage, mbs}).second) trace.emplace_back(stage, mbs);
    const auto value = speed_(stage, mbs);
    if (value) records_[mbs] = *value;
    return value;
  }

  std::pair<int, int> min_max(int stage, int min) {
    if (min < 1) min = 1;
    const auto first = run(stage, min);
    if (!first) return {-1, -1};
    for (const int mbs : {static_cast<int>(std::ceil(1.05 * most_)), most_, static_cast<int>(0.95 * most_)}) {
      if (mbs > most_) continue;
      if (mbs <= min) break;
      if (run(stage, mbs)) return {min, mbs};
    }
    double prev = *first;
    int low = min;
    int high = most_;
    while (low <= high) {
      const int mid = (low + high) / 2;
      if (mid == min) {
        low = mid + 1;
        continue;
      }
      const auto value = run(stage, mid);
      if (!value) {
        high = mid - 1;
        continue;
      }
      low = mid + 1;
      if ((*value - prev) / prev < plateau_) break;
      prev = *value;
    }
    return {min, low - 1};
  }

  std::pair<int, double> tune_space(int stage, int prev_max) {
    records_.clear();
    const auto [min, max] = min_max(stage, prev_max);
    if (min < 0 || max < prev_max) return {0, 0.0};
    std::vector<int> list;
    const int from = std::max(min, max / 2);
    const int stride = std::max((max - from) / 3, 1);
    for (int mbs = from; mbs < max; mbs += stride) {
      if (max / mbs != 1) list.push_back(mbs);
    }
    list.push_back(max);
    for (const int mbs : list) run(stage, mbs);
    const int lowest = list.size() > 1 ? list[list.size() - 2] + 1 : min;
    const int step = std::max((max - lowest) / 3, 1);
    std::vector<int> downward;
    for (int mbs = lowest; mbs < max; mbs += step) downward.push_back(mbs);
    double best = records_.count(max) > 0 ? records_[max] : 0.0;
    for (auto mbs = downward.rbegin(); mbs != downward.rend(); ++mbs) {
      const auto value = run(stage, *mbs);
      if (!value || !(*value > best * (1.0 + plateau_))) break;
      best = *value;
    }
    double fastest = 0.0;
    for (const auto& [mbs, value] : records_) fastest = std::max(fastest, value);
    return {max, fastest};
  }

  Speed speed_;
  int most_;
  double plateau_;
  std::map<int, double> records_;  // of the stage
  std::set<std::pair<int, int>> seen_;
};

TEST(Stagewise, AsksWhatASecondImplementationAsks) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed, 0);
    const int most = 1 + static_cast<int>(rng.below(40));
    std::array<int, 4> largest{};
    for (int& limit : largest) limit = static_cast<int>(rng.below(static_cast<std::uint64_t>(most) + 3));
    if (rng.uniform() < 0.7) std::sort(largest.begin(), largest.end());
    const double roughness = 0.2 * rng.uniform();
    const auto speed = [&](int stage, int micro_batch) -> std::optional<double> {
      if (micro_batch > largest[static_cast<std::size_t>(stage)]) return std::nullopt;
      Rng own(seed, static_cast<std::uint64_t>(1000 * stage + micro_batch));
      return 100.0 * micro_batch / (micro_batch + 3.0) * (1.0 - 0.05 * stage) * (1.0 + roughness * own.uniform());
    };
    session::Session session = plain_session(R"({"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": )" +
                                             std::to_string(most) + "}}");
    session.stagewise.plateau = seed % 2 == 0 ? 0.01 : 0.05;
    Reference reference(speed, most, session.stagewise.plateau);
    reference.tune(4);
    const Problem problem(session);
    const search::History history =
        problem.drive(search::StrategyKind::kStagewise, 1, 500, [&](const space::Configuration& c) -> trial::Outcome {
          const auto value = speed(static_cast<int>(stage_of(c)), static_cast<int>(micro_batch_of(c)));
          return value ? measured(problem.session, *value) : trial::Outcome(trial::OutOfMemory{});
        });
    std::vector<std::pair<int, int>> asked;
    for (const journal::Trial& trial : history) {
      const space::Configuration& c = trial.proposal.configuration;
      asked.emplace_back(static_cast<int>(stage_of(c)), static_cast<int>(micro_batch_of(c)));
    }
    ASSERT_EQ(asked, reference.trace) << "seed " << seed;
  }
}

TEST(Stagewise, KeepsTheBatchAndWalksLayoutsByRanksPerReplica) {
  space::JobFacts facts;
  facts.ranks = 8;
  facts.train_batch_size = 64;
  session::Session session = plain_session("{\"a\": [1]}");
  session.space =
      space::Space(space::read_parameters(parse_json(R"({"pipeline_parallel": [1, 2], "tensor_parallel": [1, 2, 4],
                                                       "zero_stage": [0, 1], "micro_batch": [1, 2, 4, 8, 16]})",
                                                     "test"),
                                          "test", "/space"),
                   facts);
  const Problem problem(session);
  const search::History history = problem.drive(
      search::StrategyKind::kStagewise, 1, 200,
      [&](const space::Configuration& c) { return measured(problem.session, static_cast<double>(micro_batch_of(c))); });
  std::vector<std::pair<std::int64_t, std::int64_t>> layouts;
  for (const journal::Trial& trial : history) {
    const space::Configuration& c = trial.proposal.configuration;
    const std::int64_t tensor = c.integer("tensor_parallel", 0);
    const std::int64_t pipeline = c.integer("pipeline_parallel", 0);
    EXPECT_EQ(micro_batch_of(c) * c.integer("gradient_accumulation_steps", 0) * 8 / (tensor * pipeline), 64);
    if (layouts.empty() || layouts.back() != std::pair(tensor, pipeline)) layouts.emplace_back(tensor, pipeline);
  }
  EXPECT_EQ(layouts,
            (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {2, 1}, {1, 2}, {4, 1}, {2, 2}, {4, 2}}));
}

// DeepSpeed reads the user's micro-batch. The user's values of all other parameters stay the same.
TEST(Stagewise, BeginsAtTheUsersConfiguration) {
  session::Session session = plain_session(kStages);
  session.baseline = space::Configuration{
      {"zero_stage", std::int64_t{2}}, {"micro_batch", std::int64_t{4}}, {"bucket", std::int64_t{30}}};
  const Problem problem(session);
  const search::History history =
      problem.drive(search::StrategyKind::kStagewise, 1, 4,
                    [&](const space::Configuration& c) { return small_cluster(problem.session, c); });
  EXPECT_EQ(short_texts(history), (std::vector<std::string>{"2:4:30", "0:4:30", "0:16:30", "0:15:30"}));
}

TEST(Stagewise, AsksAheadOnlyWhatDoesNotDepend) {
  const Problem problem(plain_session(kStages));
  const auto answer = [&](const space::Configuration& c) { return small_cluster(problem.session, c); };
  const search::History whole = problem.drive(search::StrategyKind::kStagewise, 1, 200, answer);
  const auto strategy = problem.strategy(search::StrategyKind::kStagewise, 1);
  const auto with_pending = [&](std::size_t closed, std::size_t pending) {
    search::History history(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(closed + pending));
    for (std::size_t i = closed; i < history.size(); ++i) history[i].outcome.reset();
    return history;
  };
  EXPECT_FALSE(strategy->ask(with_pending(0, 1)));  // everything depends on whether the smallest one runs
  EXPECT_EQ(strategy->why_idle(with_pending(0, 1)), search::Idle::kWaits);
  // Four more points of the grid, besides the known one, are asked whatever their results are.
  for (std::size_t pending = 0; pending < 4; ++pending) {
    const auto next = strategy->ask(with_pending(8, pending));
    ASSERT_TRUE(next) << pending;
    EXPECT_EQ(next->configuration.text(), texts(whole)[8 + pending]);
  }
  EXPECT_FALSE(strategy->ask(with_pending(8, 4)));
  EXPECT_EQ(strategy->why_idle(whole), search::Idle::kNoProposal);
  EXPECT_NE(strategy->left_out(whole), "");
}

TEST(Stagewise, MakesDoWithConditionalParametersAndRealRanges) {
  const Problem problem(plain_session(R"({"zero_stage": [0, 3], "micro_batch": [1, 2, 4], "lr": {"type": "real",
      "min": 1e-5, "max": 1e-1, "scale": "log"}, "prefetch": {"values": [1, 2, 3], "when": "zero_stage == 3"}})"));
  const search::History history =
      problem.drive(search::StrategyKind::kStagewise, 1, 100, [&](const space::Configuration& c) {
        return measured(problem.session, static_cast<double>(micro_batch_of(c)) + static_cast<double>(stage_of(c)) +
                                             static_cast<double>(c.integer("prefetch", 0)) +
                                             space::as_number(*c.find("lr")));
      });
  std::set<std::string> asked;
  std::set<double> rates;
  for (const journal::Trial& trial : history) {
    EXPECT_TRUE(problem.session.space.contains(trial.proposal.configuration));
    EXPECT_TRUE(asked.insert(trial.proposal.configuration.text()).second);
    rates.insert(space::as_number(*trial.proposal.configuration.find("lr")));
  }
  EXPECT_GE(rates.size(), 5U);
  EXPECT_EQ(stage_of(history.back().proposal.configuration), 3);
}

using StagewiseRun = Loop;

TEST_F(StagewiseRun, EndsWhenItsAlgorithmHas) {
  session::Session session = plain_session(kStages);
  session.budget.trials = 200;
  options_.loop.strategy = search::StrategyKind::kStagewise;
  FakeRunner runner([&](const space::Configuration& c) { return small_cluster(session, c); });
  for (const int jobs : {1, 3}) {
    std::filesystem::remove_all(directory());
    options_.jobs = jobs;
    StoppingObserver observer;
    const run::RunResult result = run(session, observer, runner);
    EXPECT_EQ(result.reason, run::EndReason::kNoProposal);
    EXPECT_EQ(result.history.size(), 33U);
    EXPECT_EQ(result.detail, "its algorithm leaves out 159 of 192 configurations");
  }
}

TEST_F(StagewiseRun, SaysThatItWaitsForTrialsOfOthers) {
  session::Session session = plain_session(kStages);
  session.budget.trials = 200;
  options_.loop.strategy = search::StrategyKind::kStagewise;
  const Problem problem(session);
  const auto asked = run::ask_by_hand(problem.session, problem.candidates, directory(), options_.loop, clock_, 3);
  ASSERT_EQ(asked.size(), 1U);  // what comes next depends on its result
  EXPECT_EQ(run(session).reason, run::EndReason::kWaits);
  run::tell_by_hand(session, directory(), 0, trial::OutOfMemory{}, clock_);
  FakeRunner runner([&](const space::Configuration& c) { return small_cluster(session, c); });
  StoppingObserver observer;
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kNoProposal);
  EXPECT_EQ(stage_of(result.history[1].proposal.configuration), 1);
}

}  // namespace krigtune::stagewise_test
