// Why a session ends, and that it goes on where it ended.
#include <gtest/gtest.h>

#include "loop_fixture.h"

namespace krigtune {
namespace {

using Stopping = Loop;

TEST_F(Stopping, EndsAtTheBudgetAndWritesWhatItKnows) {
  StoppingObserver observer;
  const Session session = budgeted(6);
  FakeRunner runner([&](const Configuration& c) { return answer(session, c); });
  const RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, EndReason::kTrials);
  EXPECT_EQ(result.trials_now, 6);
  EXPECT_EQ(observer.at_start, 0);
  EXPECT_EQ(observer.begun, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(observer.ended, observer.begun);
  EXPECT_EQ(texts(read_journal(journal_path(directory()))), texts(result.history));
  const Json record = load_json(session_path(directory()));
  EXPECT_EQ(record.at("strategy"), "bayes");
  EXPECT_EQ(record.at("seed"), 1);
  EXPECT_EQ(record.at("budget").at("trials"), 6);
}

TEST_F(Stopping, GoesOnWithALargerBudgetAndSaysNothingOfASpentOne) {
  run(budgeted(4));
  EXPECT_EQ(run(budgeted(4)).trials_now, 0);
  EXPECT_EQ(run(budgeted(4)).reason, EndReason::kTrials);
  const RunResult more = run(budgeted(7));
  EXPECT_EQ(more.trials_now, 3);
  EXPECT_EQ(load_json(session_path(directory())).at("budget").at("trials"), 7);
}

TEST_F(Stopping, EndsWhenEverythingWasTried) {
  const RunResult result = run(budgeted(100));
  EXPECT_EQ(result.reason, EndReason::kExhausted);
  EXPECT_EQ(result.history.size(), 24u);
}

TEST_F(Stopping, EndsWhenItsHoursAreSpentOverAllCommands) {
  Session session = budgeted(100);
  session.budget.hours = 1.0;
  FakeRunner runner([&](const Configuration& c) {
    clock_.advance_s(900.0);
    return answer(session, c);
  });
  StoppingObserver two(2);
  EXPECT_EQ(run(session, two, runner).reason, EndReason::kInterrupted);
  StoppingObserver rest;
  const RunResult result = run(session, rest, runner);
  EXPECT_EQ(result.reason, EndReason::kHours);
  EXPECT_EQ(result.history.size(), 4u);
  EXPECT_NEAR(result.history[3].wall_s, 900.0, 1e-9);
}

TEST_F(Stopping, EndsWhenPatienceIsOut) {
  Session session = budgeted(100);
  session.budget.patience = 4;
  int count = 0;
  FakeRunner runner([&](const Configuration&) -> Outcome {
    // 100, then nothing better by more than 1 % until trial 3 (102), then a slow creep of under 1 %.
    const double values[] = {100.0, 100.9, 90.0, 102.0, 102.5, 102.9, 103.0, 102.0, 50.0};
    return measured(session, values[count++]);
  });
  StoppingObserver observer;
  const RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, EndReason::kPatience);
  EXPECT_EQ(result.history.size(), 8u);
}

TEST_F(Stopping, StopsWithTheTrialThatTheRunnerSaysWasInterrupted) {
  const Session session = budgeted(10);
  FakeRunner runner([&](const Configuration&) -> Outcome { return Failed{FailureReason::kInterrupted, 130, ""}; });
  StoppingObserver observer;
  const RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, EndReason::kInterrupted);
  EXPECT_EQ(result.trials_now, 1);
}

TEST_F(Stopping, EndsWhenNothingCanRunHereAndTriesTheSameAgainLater) {
  const Session session = budgeted(10);
  FakeRunner runner([&](const Configuration&) -> Outcome {
    return Failed{FailureReason::kEnvironment, 77, "no device"};
  });
  StoppingObserver observer;
  const RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, EndReason::kEnvironment);
  EXPECT_EQ(result.detail, "no device");
  EXPECT_EQ(result.history.size(), 3u);
  const RunResult later = run(session);
  EXPECT_EQ(later.reason, EndReason::kTrials);
  EXPECT_EQ(counted_trials(later.history), 10);
  EXPECT_EQ(texts(later.history)[3], texts(later.history)[0]);
}

TEST_F(Stopping, WritesNothingWhenNothingFits) {
  Session session = budgeted(5);
  session.space.restrict_to([](const Configuration&) { return false; });
  EXPECT_EQ(run(session).reason, EndReason::kNothingFits);
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

}  // namespace
}  // namespace krigtune
