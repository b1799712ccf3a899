// Several trials at a time, the user's guesses, and what another process would ask next.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "run/loop_fixture.h"
#include "run/tuner.h"
#include "search/model/best.h"
#include "user_error.h"

namespace krigtune::jobs_test {

using Jobs = Loop;

/// Blocks everybody until a given number has arrived.
class Meeting {
 public:
  explicit Meeting(int wanted) : wanted_(wanted) {}
  void wait() {
    std::unique_lock lock(mutex_);
    most = std::max(most, ++here_);
    if (here_ == wanted_) open_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --here_;
  }
  int most = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int wanted_;
  int here_ = 0;
  bool open_ = false;
};

TEST_F(Jobs, RunAtTheSameTimeAndNeverTwice) {
  const session::Session session = budgeted(12);
  Meeting meeting(3);  // ends only if three run at once
  FakeRunner runner([&](const space::Configuration& c) {
    meeting.wait();
    return answer(session, c);
  });
  options_.jobs = 3;
  StoppingObserver observer;
  struct Counting final : run::Observer {
    void trial_begins(const journal::Trial&, const search::History& history) override {
      int pending = 0;
      for (const journal::Trial& trial : history) pending += trial.outcome ? 0 : 1;
      most_pending = std::max(most_pending, pending);
    }
    void trial_ended(const journal::Trial& trial, const search::History& history) override {
      EXPECT_TRUE(trial.outcome);
      EXPECT_TRUE(history[static_cast<std::size_t>(trial.number)].outcome);
      ++ended;
    }
    int most_pending = 0;
    int ended = 0;
  } counting;
  const Problem problem(session);
  const run::RunResult result = run::run_session(problem.session, problem.candidates, sharing(runner), directory(),
                                                 options_, clock_, counting, observer.stop);
  EXPECT_EQ(result.reason, run::EndReason::kTrials);
  EXPECT_EQ(result.trials_now, 12);
  EXPECT_EQ(counting.ended, 12);
  EXPECT_EQ(counting.most_pending, 3);
  EXPECT_EQ(meeting.most, 3);
  std::set<std::string> asked;
  for (const journal::Trial& trial : result.history) {
    EXPECT_TRUE(trial.outcome);
    EXPECT_TRUE(asked.insert(trial.proposal.configuration.text()).second);
  }
  EXPECT_EQ(asked.size(), 12U);  // the budget is not exceeded
}

TEST_F(Jobs, EachHaveARunnerOfTheirOwn) {
  const session::Session session = budgeted(4);
  const Problem problem(session);
  std::atomic<int> made{0};
  options_.jobs = 3;
  StoppingObserver observer;
  run::run_session(
      problem.session, problem.candidates,
      [&] {
        ++made;
        return std::make_unique<FakeRunner>([&](const space::Configuration& c) { return answer(session, c); });
      },
      directory(), options_, clock_, static_cast<run::Observer&>(observer), observer.stop);
  EXPECT_EQ(made, 3);
}

TEST_F(Jobs, EndWithWhatRunsWhenStopped) {
  const session::Session session = budgeted(20);
  std::atomic<bool> stop{false};
  Meeting meeting(2);
  FakeRunner runner([&](const space::Configuration& c) {
    meeting.wait();
    stop = true;
    return answer(session, c);
  });
  options_.jobs = 2;
  run::Observer silent;
  const Problem problem(session);
  const run::RunResult result = run::run_session(problem.session, problem.candidates, sharing(runner), directory(),
                                                 options_, clock_, silent, stop);
  EXPECT_EQ(result.reason, run::EndReason::kInterrupted);
  EXPECT_EQ(result.trials_now, 2);
  for (const journal::Trial& trial : result.history) EXPECT_TRUE(trial.outcome);
}

TEST_F(Jobs, PassOnWhatARunnerThrows) {
  const session::Session session = budgeted(20);
  FakeRunner runner([](const space::Configuration&) -> trial::Outcome { throw std::runtime_error("no such thing"); });
  options_.jobs = 2;
  StoppingObserver observer;
  EXPECT_THROW(run(session, observer, runner), std::runtime_error);
}

TEST_F(Jobs, AreAllRecordedWhenTheSessionEndsByAnError) {
  const session::Session session = budgeted(20);
  Meeting meeting(3);
  FakeRunner runner([&](const space::Configuration& c) {
    meeting.wait();
    return answer(session, c);
  });
  options_.jobs = 3;
  struct Full final : run::Observer {
    void trial_ended(const journal::Trial&, const search::History&) override {
      throw EnvironmentError("cannot write 'trials.csv': No space left on device");
    }
  } full;
  const std::atomic<bool> stop{false};
  const Problem problem(session);
  EXPECT_THROW(
      run::run_session(problem.session, problem.candidates, sharing(runner), directory(), options_, clock_, full, stop),
      EnvironmentError);
  const std::vector<journal::Trial> trials = journal::read_journal(directory() / "journal.log");
  ASSERT_EQ(trials.size(), 3U);
  for (const journal::Trial& trial : trials) {
    ASSERT_TRUE(trial.outcome);
    EXPECT_TRUE(trial::ran(*trial.outcome));
  }
}

TEST_F(Jobs, MayChangeFromOneCommandToTheNext) {
  run(budgeted(3));
  options_.jobs = 2;
  const session::Session session = budgeted(8);
  FakeRunner runner([&](const space::Configuration& c) { return answer(session, c); });
  run::Observer silent;
  const std::atomic<bool> stop{false};
  const Problem problem(session);
  EXPECT_EQ(run::run_session(problem.session, problem.candidates, sharing(runner), directory(), options_, clock_,
                             silent, stop)
                .trials_now,
            5);
}

using Tries = Loop;

TEST_F(Tries, RunAfterTheBaselineEachOnce) {
  session::Session session = budgeted(6);
  session.baseline = space::Configuration{{"a", std::int64_t{0}}, {"b", std::int64_t{1}}};
  const space::Configuration outside{{"a", std::int64_t{9}}, {"b", std::int64_t{2}}};
  const space::Configuration inside{{"a", std::int64_t{3}}, {"b", std::int64_t{8}}};
  options_.tries = {outside, *session.baseline, inside, inside};
  const run::RunResult result = run(session);
  ASSERT_EQ(result.history.size(), 6U);
  EXPECT_EQ(result.history[0].proposal.strategy, search::kBaselineStrategy);
  EXPECT_EQ(result.history[1].proposal.strategy, search::kTryStrategy);
  EXPECT_EQ(result.history[1].proposal.configuration, outside);
  EXPECT_EQ(result.history[2].proposal.strategy, search::kTryStrategy);
  EXPECT_EQ(result.history[2].proposal.configuration, inside);
  for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(result.history[i].proposal.strategy, "bayes");
  // The same command repeats none of them, and runs a further guess.
  session.budget.trials = 8;
  options_.tries.push_back({{"a", std::int64_t{4}}, {"b", std::int64_t{4}}});
  const run::RunResult more = run(session);
  const bool was_asked = std::any_of(result.history.begin(), result.history.end(), [&](const journal::Trial& trial) {
    return trial.proposal.configuration == options_.tries.back();
  });
  EXPECT_EQ(more.history[6].proposal.strategy == search::kTryStrategy, !was_asked);
  std::set<std::string> asked;
  for (const journal::Trial& trial : more.history)
    EXPECT_TRUE(asked.insert(trial.proposal.configuration.text()).second);
}

// A trial that was ended early says little about its configuration, and a guess always runs to its end.
TEST_F(Tries, RepeatWhatWasEndedEarlyAndNothingElse) {
  const Problem problem(budgeted(6));
  const space::Configuration guess{{"a", std::int64_t{3}}, {"b", std::int64_t{8}}};
  journal::Trial trial;
  trial.proposal.configuration = guess;
  EXPECT_NE(run::trial_of_try(problem.candidates, {trial}, guess), nullptr) << "it runs";
  trial.outcome = trial::Bounded{20.0};
  EXPECT_EQ(run::trial_of_try(problem.candidates, {trial}, guess), nullptr);
  trial.outcome = trial::OutOfMemory{};
  EXPECT_NE(run::trial_of_try(problem.candidates, {trial}, guess), nullptr);
  EXPECT_EQ(run::trial_of_try(problem.candidates, {trial}, {{"a", std::int64_t{2}}, {"b", std::int64_t{8}}}), nullptr);
}

using NextQuestion = Loop;

// A process that knows only the journal's lines up to some trial.
TEST_F(NextQuestion, IsTheOneOfTheFullRunAtEveryTrial) {
  for (const search::StrategyKind kind : search::all_strategies()) {
    std::filesystem::remove_all(directory());
    options_.loop = {kind, 3};
    session::Session session = budgeted(12);
    session.baseline = space::Configuration{{"a", std::int64_t{1}}, {"b", std::int64_t{2}}};
    const search::History whole = run(session).history;
    const bool ends_before = kind == search::StrategyKind::kStagewise;
    ASSERT_TRUE(ends_before ? whole.size() >= 6U : whole.size() == 12U) << whole.size();
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      const Problem problem(session);
      const auto strategy = problem.strategy(kind, 3, 12);
      const search::History prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
      const std::optional<journal::Proposal> next =
          run::Proposer(problem.session, problem.candidates, *strategy, clock_).next(prefix);
      ASSERT_TRUE(next);
      const journal::Proposal& asked = whole[cut].proposal;
      EXPECT_EQ(next->configuration.text(), asked.configuration.text()) << search::to_string(kind) << " after " << cut;
      EXPECT_EQ(next->predicted_value, asked.predicted_value);
      EXPECT_EQ(next->hyperparameters, asked.hyperparameters);
      EXPECT_EQ(next->trials_without_gain, asked.trials_without_gain);
      EXPECT_EQ(asked.trials_without_gain, search::trials_without_gain(session.objective, prefix));
    }
  }
}

TEST_F(NextQuestion, IsNotOfTrialsThatWaitInAQueue) {
  const session::Session session = budgeted(4);
  search::History history = run(session).history;
  const Problem problem(session);
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, 1);
  const run::Proposer proposer(problem.session, problem.candidates, *strategy, clock_);
  const std::string without = proposer.next(history)->configuration.text();
  journal::Trial queued;  // its configuration lacks a parameter
  queued.number = 4;
  queued.waiting = true;
  queued.proposal.configuration = space::Configuration{{"a", std::int64_t{3}}};
  history.push_back(queued);
  EXPECT_EQ(proposer.next(history)->configuration.text(), without);
}

TEST_F(Loop, WritesNothingWhenItsRunnerCannotBeMade) {
  const session::Session session = budgeted(3);
  const Problem problem(session);
  const auto none = []() -> std::unique_ptr<trial::Runner> { throw std::runtime_error("no runner"); };
  run::Observer silent;
  const std::atomic<bool> stop{false};
  EXPECT_THROW(run::run_session(problem.session, problem.candidates, none, directory(), options_, clock_, silent, stop),
               std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

TEST_F(Loop, EndsWhenItsGpuHoursAreSpent) {
  session::Session session = budgeted(100);
  session.cluster.nodes = 2;
  session.cluster.gpus_per_node = 4;
  session.budget.gpu_hours = 8.0;  // one hour of all eight
  FakeRunner runner([&](const space::Configuration& c) {
    clock_.advance_s(1200.0);
    return answer(session, c);
  });
  StoppingObserver observer;
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kHours);
  EXPECT_EQ(result.history.size(), 3U);
}

TEST_F(Loop, AllowsAnotherGraceAndAnotherTimeoutOfACommand) {
  Json record = run::run_record(budgeted(3), options_.loop);
  std::filesystem::create_directories(directory());
  record["runner"]["grace_s"] = 1;
  record["runner"]["no_progress_s"] = 5;
  record["runner"]["timeout_s"] = 7;
  record.erase("constraints");  // an older version wrote none
  write_atomically(run::session_path(directory()), record.dump());
  EXPECT_EQ(run::settle(directory(), budgeted(9), options_.loop), "");
}

}  // namespace krigtune::jobs_test
