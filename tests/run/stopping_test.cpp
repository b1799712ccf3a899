// Why a session ends, and that it continues from there.
#include <gtest/gtest.h>

#include "run/loop_fixture.h"
#include "run/stop_rules.h"

namespace krigtune::stopping_test {

using Stopping = Loop;

TEST_F(Stopping, EndsAtTheBudgetAndWritesWhatItKnows) {
  StoppingObserver observer;
  const session::Session session = budgeted(6);
  FakeRunner runner([&](const space::Configuration& c) { return answer(session, c); });
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kTrials);
  EXPECT_EQ(result.trials_now, 6);
  EXPECT_EQ(observer.at_start, 0);
  EXPECT_EQ(observer.begun, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(observer.ended, observer.begun);
  EXPECT_EQ(observer.at_end, std::vector<int>{6});
  EXPECT_EQ(texts(journal::read_journal(run::journal_path(directory()))), texts(result.history));
  const Json record = load_json(run::session_path(directory()));
  EXPECT_EQ(record.at("strategy"), "bayes");
  EXPECT_EQ(record.at("seed"), 1);
  EXPECT_EQ(record.at("budget").at("trials"), 6);
}

TEST_F(Stopping, GoesOnWithALargerBudgetAndSaysNothingOfASpentOne) {
  run(budgeted(4));
  EXPECT_EQ(run(budgeted(4)).trials_now, 0);
  EXPECT_EQ(run(budgeted(4)).reason, run::EndReason::kTrials);
  const run::RunResult more = run(budgeted(7));
  EXPECT_EQ(more.trials_now, 3);
  EXPECT_EQ(load_json(run::session_path(directory())).at("budget").at("trials"), 7);
}

TEST_F(Stopping, EndsWhenEverythingWasTried) {
  const run::RunResult result = run(budgeted(100));
  EXPECT_EQ(result.reason, run::EndReason::kExhausted);
  EXPECT_EQ(result.history.size(), 24u);
}

// Trials [0, 100], [20, 80] and [90, 130] cover 130 s, whatever their sum is. One waited in a queue from 130 s to 500 s
// and ran for 30 s after 2 s of computing its proposal, and two have no readable end.
TEST(HoursOfASession, AreThoseOfTheClockOnTheWall) {
  search::History history;
  const auto add = [&](double end_s, double wall_s, double suggest_s, journal::Asker asker = journal::Asker::kTune) {
    journal::Trial trial;
    trial.proposal.asker = asker;
    trial.proposal.suggest_s = suggest_s;
    trial.wall_s = wall_s;
    constexpr std::int64_t kSomeDayUs = 1'790'000'000'000'000;
    if (end_s > 0.0) trial.ended_at = local_iso_time(kSomeDayUs + static_cast<std::int64_t>(end_s * 1e6));
    history.push_back(trial);
  };
  EXPECT_EQ(run::seconds_elapsed(history), 0.0);
  add(100.0, 100.0, 0.0);
  add(80.0, 60.0, 0.0);
  add(130.0, 40.0, 0.0);
  EXPECT_NEAR(run::seconds_elapsed(history), 130.0, 1e-5);
  EXPECT_NEAR(run::seconds_spent(history), 200.0, 1e-9);
  add(530.0, 30.0, 2.0);
  EXPECT_NEAR(run::seconds_elapsed(history), 162.0, 1e-5);
  add(0.0, 5.0, 1.0);
  add(900.0, 300.0, 3.0, journal::Asker::kHand);  // its proposal took krigtune's time, the trial itself the user's
  EXPECT_NEAR(run::seconds_elapsed(history), 171.0, 1e-5);
}

TEST_F(Stopping, EndsWhenItsHoursAreSpentOverAllCommands) {
  session::Session session = budgeted(100);
  session.budget.hours = 1.0;
  FakeRunner runner([&](const space::Configuration& c) {
    clock_.advance_s(900.0);
    return answer(session, c);
  });
  StoppingObserver two(2);
  EXPECT_EQ(run(session, two, runner).reason, run::EndReason::kInterrupted);
  EXPECT_EQ(two.at_end, std::vector<int>{2}) << "result files are written whole there too";
  StoppingObserver rest;
  const run::RunResult result = run(session, rest, runner);
  EXPECT_EQ(result.reason, run::EndReason::kHours);
  EXPECT_EQ(result.history.size(), 4u);
  EXPECT_NEAR(result.history[3].wall_s, 900.0, 1e-9);
}

TEST_F(Stopping, EndsWhenPatienceIsOut) {
  session::Session session = budgeted(100);
  session.budget.patience = 4;
  int count = 0;
  FakeRunner runner([&](const space::Configuration&) -> trial::Outcome {
    // 100, then nothing better by more than 1 % until trial 3 (102), then a slow increase of less than 1 %.
    const double values[] = {100.0, 100.9, 90.0, 102.0, 102.5, 102.9, 103.0, 102.0, 50.0};
    return measured(session, values[count++]);
  });
  StoppingObserver observer;
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kPatience);
  EXPECT_EQ(result.history.size(), 8u);
}

TEST_F(Stopping, StopsWithTheTrialThatTheRunnerSaysWasInterrupted) {
  const session::Session session = budgeted(10);
  FakeRunner runner([&](const space::Configuration&) -> trial::Outcome {
    return trial::Failed{trial::FailureReason::kInterrupted, 130, ""};
  });
  StoppingObserver observer;
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kInterrupted);
  EXPECT_EQ(result.trials_now, 1);
}

TEST_F(Stopping, EndsWhenNothingCanRunHereAndTriesTheSameAgainLater) {
  const session::Session session = budgeted(10);
  FakeRunner runner([&](const space::Configuration&) -> trial::Outcome {
    return trial::Failed{trial::FailureReason::kEnvironment, 77, "no device"};
  });
  StoppingObserver observer;
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kEnvironment);
  EXPECT_EQ(result.detail, "no device");
  EXPECT_EQ(result.history.size(), 3u);
  const run::RunResult later = run(session);
  EXPECT_EQ(later.reason, run::EndReason::kTrials);
  EXPECT_EQ(search::counted_trials(later.history), 10);
  EXPECT_EQ(texts(later.history)[3], texts(later.history)[0]);
}

// A trial that failed like a Python program: addresses and sizes differ from run to run.
trial::Failed crash(const std::string& message, trial::FailureReason reason = trial::FailureReason::kCrash) {
  static constexpr const char* kTrace =
      "exit code 1\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n";
  return {reason, 1, kTrace + message};
}

search::History failing(const std::vector<trial::Outcome>& outcomes) {
  search::History history;
  for (const trial::Outcome& outcome : outcomes) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.outcome = outcome;
    history.push_back(trial);
  }
  return history;
}

TEST(CommonFailure, IsSeenInTheFirstTwoAndInThreeInARow) {
  const trial::Outcome one = crash("ValueError: no room for 17 rows at 0x7f31");
  const trial::Outcome alike = crash("ValueError: no room for 1024 rows at 0x8a00");
  const trial::Outcome other = crash("KeyError: 'loss'");
  EXPECT_FALSE(run::common_failure(failing({one})));
  EXPECT_EQ(run::common_failure(failing({one, alike})), "ValueError: no room for 1024 rows at 0x8a00");
  EXPECT_FALSE(run::common_failure(failing({one, other})));
  EXPECT_FALSE(run::common_failure(failing({other, one, alike})));
  EXPECT_TRUE(run::common_failure(failing({other, one, alike, one})));
}

TEST(CommonFailure, IsNoneWhereATrialRanOrAnotherConfigurationMayDo) {
  using enum trial::FailureReason;
  const trial::Outcome one = crash("ValueError: bad");
  EXPECT_FALSE(run::common_failure(failing({trial::Bounded{2.0}, one, one, one})));
  EXPECT_FALSE(run::common_failure(failing({trial::OutOfMemory{}, trial::OutOfMemory{}, trial::OutOfMemory{}})));
  EXPECT_FALSE(run::common_failure(failing({one, trial::OutOfMemory{}})));
  EXPECT_FALSE(run::common_failure(failing({crash("ValueError: bad"), crash("ValueError: bad", kInvalid)})));
  const trial::Outcome slow = trial::Failed{kTimeout, 0, "ended after 60.0 s"};
  EXPECT_FALSE(run::common_failure(failing({slow, slow})));
  EXPECT_EQ(run::common_failure(failing({slow, slow, slow})), "ended after 60.0 s");
  const trial::Outcome silent = trial::Failed{kCrash, 7, ""};
  EXPECT_EQ(run::common_failure(failing({silent, silent})), "crash");
}

TEST_F(Stopping, AJobThatCannotWorkIsNotRunOn) {
  session::Session session = budgeted(10);
  session.runner = runner::CommandSpec();
  FakeRunner runner([](const space::Configuration&) -> trial::Outcome { return crash("KeyError: 'mbs'"); });
  StoppingObserver observer;
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kFailsAlike);
  EXPECT_EQ(result.detail, "KeyError: 'mbs'");
  EXPECT_EQ(result.history.size(), 2u);
  EXPECT_EQ(run(session, observer, runner).history.size(), 3u) << "the same command tries once more";
  options_.keep_going = true;
  StoppingObserver all;
  EXPECT_EQ(run(session, all, runner).history.size(), 10u);
}

TEST_F(Stopping, WritesNothingWhenNothingFits) {
  session::Session session = budgeted(5);
  session.space.restrict_to([](const space::Configuration&) { return false; });
  EXPECT_EQ(run(session).reason, run::EndReason::kNothingFits);
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

/// Tests whether a session ends before its budget, and by which rule.
class EarlyEnd : public testing::Test {
 protected:
  EarlyEnd() {
    session_ = plain_session(kLoopSpace);
    session_.budget = session::Budget();
    session_.cluster.nodes = 1;
    session_.cluster.gpus_per_node = 4;
  }

  // Adds a closed trial that took an hour and was expected to gain `expected_gain`.
  void add(double expected_gain, double bound, double value = 100.0) {
    journal::Trial trial;
    trial.number = static_cast<int>(history_.size());
    trial.proposal.outlook = journal::Outlook{expected_gain, bound, 0.95};
    trial.outcome = measured(session_, value);
    trial.wall_s = 3600.0;
    history_.push_back(trial);
  }
  void add(int count, double expected_gain, double bound) {
    for (int i = 0; i < count; ++i) add(expected_gain, bound);
  }
  std::optional<run::EndReason> with(double expected_gain, double bound) const {
    journal::Proposal next;
    next.outlook = journal::Outlook{expected_gain, bound, 0.95};
    return run::not_worth_running(session_, history_, next);
  }

  session::Session session_;
  search::History history_;
};

// What is measured already needs no further trial of something new, only a repeat.
TEST_F(EarlyEnd, IsSureByTheBoundOfWhatIsNewUnlessARepeatIsProposed) {
  add(6, 0.1, 0.5);
  journal::Proposal next;
  next.outlook = journal::Outlook{0.1, 0.05, 0.95, 0.005};
  EXPECT_EQ(run::not_worth_running(session_, history_, next), run::EndReason::kSure);
  next.repeat_of = 2;
  EXPECT_FALSE(run::not_worth_running(session_, history_, next));
  next.outlook->expected_gain = 0.001;
  EXPECT_EQ(run::not_worth_running(session_, history_, next), run::EndReason::kLittleToGain);
}

TEST_F(EarlyEnd, IsSureWithSixTrialsAndABoundWithinTheRegret) {
  add(5, 0.1, 0.5);
  EXPECT_FALSE(with(0.1, 0.001));
  add(1, 0.1, 0.5);
  EXPECT_EQ(with(0.1, 0.01), run::EndReason::kSure);
  EXPECT_FALSE(with(0.1, 0.0101));
  session_.budget.regret = 0.0;
  EXPECT_FALSE(with(0.1, 0.0));
}

// A trial that is ended early says that its value is no better than the bound.
TEST_F(EarlyEnd, CountsTrialsThatWereEndedEarlyAndNoneThatFailed) {
  add(1, 0.1, 0.5);
  const auto close_with = [&](trial::Outcome outcome) {
    add(0.1, 0.5);
    history_.back().outcome = std::move(outcome);
  };
  for (int i = 0; i < 5; ++i) close_with(trial::OutOfMemory{});
  EXPECT_FALSE(with(0.1, 0.01));
  for (int i = 0; i < 5; ++i) close_with(trial::Bounded{50.0});
  EXPECT_EQ(with(0.1, 0.01), run::EndReason::kSure);
}

TEST_F(EarlyEnd, HasLittleToGainWhereNoTrialPromisesEnough) {
  add(6, 0.1, 0.5);
  EXPECT_EQ(with(0.0029, 0.5), run::EndReason::kLittleToGain);
  EXPECT_FALSE(with(0.003, 0.5));
  session_.budget.least_gain = 0.0;
  EXPECT_FALSE(with(0.002, 0.5));
}

TEST_F(EarlyEnd, AsksForNothingWithoutAnOutlook) {
  add(20, 0.0, 0.0);
  EXPECT_FALSE(run::not_worth_running(session_, history_, journal::Proposal()));
}

// Trials take an hour on four ranks. With 500 GPU-hours to train, 1 % more throughput saves 500 (1 - 1 / 1.01) = 4.95.
TEST_F(EarlyEnd, IsNotWorthItWhereATrialCostsMoreThanItSaves) {
  session_.budget.least_gain = 0.0;
  session_.budget.run_gpu_hours = 500.0;
  add(6, 0.1, 0.5);
  const auto worth = run::worth_of(session_, history_, {0.01, 0.5, 0.95});
  ASSERT_TRUE(worth);
  EXPECT_LE(std::abs(worth->cost_gpu_hours - 4.0), 1e-12);
  EXPECT_LE(std::abs(worth->saving_gpu_hours - 500.0 * 0.01 / 1.01), 1e-12);
  EXPECT_FALSE(with(0.01, 0.5));  // saves more than 4
  EXPECT_EQ(with(0.007, 0.5), run::EndReason::kNotWorthIt);
  session_.budget.run_gpu_hours = 5000.0;
  EXPECT_FALSE(with(0.007, 0.5));
  session_.objective.maximize = false;  // for a time, 1 % less is exactly what is saved
  EXPECT_LE(std::abs(run::worth_of(session_, history_, {0.01, 0.5, 0.95})->saving_gpu_hours - 50.0), 1e-12);
}

// The whole sequence: the session ends, stays ended, and continues when the rule is removed.
TEST_F(Stopping, StaysEndedUntilItsRuleIsTakenAway) {
  session::Session session = budgeted(100);
  session.budget.least_gain = 0.02;
  const run::RunResult first = run(session);
  ASSERT_EQ(first.reason, run::EndReason::kLittleToGain);
  EXPECT_LT(first.history.size(), 24u);
  ASSERT_TRUE(first.outlook);
  EXPECT_LT(first.outlook->expected_gain, 0.02);
  const run::RunResult again = run(session);
  EXPECT_EQ(again.reason, run::EndReason::kLittleToGain);
  EXPECT_EQ(again.trials_now, 0);
  EXPECT_EQ(again.outlook->regret_bound, first.outlook->regret_bound);
  const run::RunResult more = run(budgeted(100));
  EXPECT_EQ(more.reason, run::EndReason::kExhausted);
  EXPECT_EQ(more.history.size(), 24u);
}

TEST_F(Stopping, SaysWhatIsLeftAlsoWhereTheBudgetEndsIt) {
  const run::RunResult result = run(budgeted(8));
  EXPECT_EQ(result.reason, run::EndReason::kTrials);
  EXPECT_EQ(result.history.size(), 8u);
  EXPECT_TRUE(result.outlook);
  options_.loop.strategy = search::StrategyKind::kRandom;
  std::filesystem::remove_all(directory());
  EXPECT_FALSE(run(budgeted(8)).outlook);
}

}  // namespace krigtune::stopping_test
