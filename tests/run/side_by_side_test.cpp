// Measures whether trials disturb each other, instead of assuming it.
#include "run/side_by_side.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "run/loop_fixture.h"
#include "search/model/best.h"
#include "search/trials/run_effects.h"

namespace krigtune::side_by_side_test {

TEST(MemoryOfSlots, IsWarnedOfWhereItDoesNotSuffice) {
  EXPECT_EQ(run::memory_warning(from_gib(100.0), 4, from_gib(400.0)), "");
  EXPECT_EQ(run::memory_warning(from_gib(500.0), 1, from_gib(400.0)), "") << "no matter of slots";
  EXPECT_EQ(
      run::memory_warning(from_gib(150.0), 4, from_gib(400.0)),
      "a trial takes up to 150.0 GiB of this machine's memory, and 4 at a time have 100.0 GiB each: the kernel may "
      "kill them; use --jobs 2, or \"memory\": {\"host_limit_gib\": 100} to leave such configurations out");
}

namespace {

/// Other trials slow each trial down, and no two of the first three places are equally fast.
class CrowdedRunner final : public trial::Runner {
 public:
  CrowdedRunner(const session::Session& session, double cost) : session_(session), cost_(cost) {}

  // The first trials wait for each other, so that they really run at the same time.
  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& /*context*/) override {
    std::unique_lock lock(mutex_);
    const int order = begun_++;
    const bool is_together = order >= 1 && order <= 3;
    if (is_together) {
      ++here_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return here_ == 3; });
    }
    alone.push_back(running_ == 0 && !is_together);
    ++running_;
    const double spread = is_together ? 0.01 * (order - 2) : 0.0;
    const bool is_alone = order == 0 || last_alone;
    const double slower = is_alone ? 1.0 : (1.0 + cost_) * std::exp(spread);
    const double value = loop_speed(configuration) / slower;
    --running_;
    return measured(session_, value);
  }
  std::vector<bool> alone;
  std::atomic<bool> last_alone{false};

 private:
  const session::Session& session_;
  double cost_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0;
  int here_ = 0;
  int running_ = 0;
};

class Heard final : public run::Observer {
 public:
  explicit Heard(CrowdedRunner& runner) : runner_(runner) {}
  void interference(const run::Interference& interference) override { heard.push_back(interference); }
  void trial_begins(const journal::Trial& trial, const search::History&) override {
    runner_.last_alone = trial.proposal.strategy == search::kAloneStrategy;
    running.push_back(++now);
  }
  void trial_ended(const journal::Trial&, const search::History&) override { --now; }
  std::vector<run::Interference> heard;
  std::vector<int> running;  ///< number of running trials when each one begins
  int now = 0;

 private:
  CrowdedRunner& runner_;
};

}  // namespace

class SideBySide : public Loop {
 protected:
  SideBySide() : session_(budgeted(10)) {
    session_.baseline = space::Configuration{{"a", std::int64_t{0}}, {"b", std::int64_t{2}}};
    options_.jobs = 3;
    options_.interference_check = true;
  }

  search::History go() {
    const Problem problem(session_);
    return run::run_session(problem.session, problem.candidates, sharing(runner_), directory(), options_, clock_,
                            heard_, stop_)
        .history;
  }

  session::Session session_;
  CrowdedRunner runner_{session_, 0.10};
  Heard heard_{runner_};
  std::atomic<bool> stop_{false};
};

TEST_F(SideBySide, TheBaselineRunsAloneThenInAllPlacesAndTheBestRunAloneAtTheEnd) {
  const search::History history = go();
  ASSERT_GE(history.size(), 14U);
  EXPECT_EQ(history[0].proposal.strategy, search::kBaselineStrategy);
  EXPECT_EQ(history[0].proposal.run, 1);
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(history[i].proposal.strategy, search::kTogetherStrategy) << i;
    EXPECT_EQ(history[i].proposal.configuration, *session_.baseline);
    EXPECT_EQ(history[i].proposal.repeat_of, 0);
    EXPECT_EQ(history[i].proposal.run, 0);
  }
  EXPECT_EQ(std::vector<int>(heard_.running.begin(), heard_.running.begin() + 5), (std::vector<int>{1, 1, 2, 3, 1}));
  for (std::size_t i = 4; i < 13; ++i) {
    EXPECT_EQ(history[i].proposal.strategy, "bayes");
    EXPECT_EQ(history[i].proposal.run, 0);
  }
  EXPECT_EQ(search::closed_trials(history), 10);
  // The best ones run once each, with nothing beside them. Neither they nor the baseline's places count in the budget
  // of ten.
  std::set<std::string> alone;
  for (std::size_t i = 13; i < history.size(); ++i) {
    EXPECT_EQ(history[i].proposal.strategy, search::kAloneStrategy);
    EXPECT_EQ(history[i].proposal.run, 1);
    EXPECT_EQ(heard_.running[i], 1);
    EXPECT_TRUE(alone.insert(history[i].proposal.configuration.text()).second);
  }
  EXPECT_LE(alone.size(), 3U);
  // The same command measures nothing again.
  EXPECT_EQ(go().size(), history.size());
}

TEST_F(SideBySide, TheSlowdownIsSaidAndTakenOutOfTheComparison) {
  const search::History history = go();
  ASSERT_EQ(heard_.heard.size(), 1U);
  const run::Interference& found = heard_.heard.front();
  EXPECT_EQ(found.at_a_time, 3);
  EXPECT_NEAR(found.slowdown, 0.10, 1e-9);
  EXPECT_NEAR(found.stddev, 0.01, 1e-9);  // the stddev of -0.01, 0 and 0.01
  EXPECT_EQ(run::interference_sentence(found),
            "3 trials at a time: each is 10.0 % slower than alone, and they differ by 1.0 % from place to place");
  EXPECT_NE(run::interference_advice(found).find("--jobs 1 measures more precisely"), std::string::npos);
  EXPECT_EQ(run::interference_advice({4, 0.02, 0.01}), "");
  // A trial that ran beside others is worth 10 % more on the scale of those alone.
  const search::RunEffects effects(session_.objective, history);
  EXPECT_EQ(effects.latest(), 1);
  EXPECT_NEAR(effects.factor(0), 1.10, 0.01);
}

TEST_F(SideBySide, ItIsLeftOutWhereNobodyWantsIt) {
  options_.interference_check = false;
  FakeRunner runner([&](const space::Configuration& c) { return measured(session_, loop_speed(c)); });
  StoppingObserver observer;
  const search::History history = run(session_, observer, runner).history;
  ASSERT_EQ(history.size(), 10U);
  for (const journal::Trial& trial : history) {
    EXPECT_EQ(trial.proposal.run, 0);
    EXPECT_NE(trial.proposal.strategy, search::kTogetherStrategy);
  }
}

TEST_F(SideBySide, ABaselineThatFailsHoldsNobodyUp) {
  FakeRunner runner([&](const space::Configuration& c) -> trial::Outcome {
    if (c == *session_.baseline) return trial::OutOfMemory{};
    return measured(session_, loop_speed(c));
  });
  StoppingObserver observer;
  EXPECT_EQ(run(session_, observer, runner).history.size(), 10U);
  for (const journal::Trial& trial : run(session_, observer, runner).history)
    EXPECT_NE(trial.proposal.strategy, search::kTogetherStrategy);
}

// A user who asked the baseline by hand may tell it as late as tomorrow.
TEST_F(SideBySide, ABaselineThatWasAskedByHandHoldsNobodyUp) {
  std::filesystem::create_directories(directory());
  journal::Proposal by_hand;
  by_hand.configuration = *session_.baseline;
  by_hand.strategy = search::kBaselineStrategy;
  by_hand.asker = journal::Asker::kHand;
  journal::Journal(run::journal_path(directory()), session_.space, session_.objective.field,
                   session_.objective.maximize)
      .begin(by_hand, clock_.unix_us(), 0);
  FakeRunner runner([&](const space::Configuration& c) { return measured(session_, loop_speed(c)); });
  StoppingObserver observer;
  const search::History history = run(session_, observer, runner).history;
  EXPECT_EQ(search::closed_trials(history), 10);
  EXPECT_FALSE(history[0].outcome);
}

}  // namespace krigtune::side_by_side_test
