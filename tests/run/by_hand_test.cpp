// Several processes ask and tell in one directory.
#include "run/by_hand.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "journal/lock.h"
#include "run/loop_fixture.h"
#include "user_error.h"

namespace krigtune::by_hand_test {

class ByHand : public Loop {
 protected:
  ByHand() : session_(budgeted(30)) { session_.runner = runner::NoRunner(); }

  std::vector<journal::Trial> ask(int count, const Clock& clock) const {
    const Problem problem(session_);
    return run::ask_by_hand(problem.session, problem.candidates, directory(), options_.loop, clock, count);
  }
  std::vector<journal::Trial> ask(int count = 1) const { return ask(count, clock_); }
  journal::Trial tell(int trial, const trial::Outcome& outcome) const {
    return run::tell_by_hand(session_, directory(), trial, outcome, clock_);
  }
  std::string refusal(int trial, const trial::Outcome& outcome) const {
    return user_error_of([&] { tell(trial, outcome); });
  }

  session::Session session_;
};

TEST_F(ByHand, IsTheSameSearchAsALoop) {
  search::History history;
  for (int i = 0; i < 10; ++i) {
    const std::vector<journal::Trial> trials = ask();
    ASSERT_EQ(trials.size(), 1U);
    EXPECT_EQ(trials[0].number, i);
    EXPECT_EQ(trials[0].proposal.asker, journal::Asker::kHand);
    history.push_back(tell(i, answer(session_, trials[0].proposal.configuration)));
  }
  const Problem problem(session_);
  EXPECT_EQ(texts(history), texts(problem.drive(search::StrategyKind::kBayes, 1, 10,
                                                [&](const space::Configuration& c) { return answer(session_, c); })));
}

// Some trials fail, and two are pending at a time.
TEST_F(ByHand, ARunThatStaysOpenProposesTheSame) {
  const Problem problem(session_);
  run::HandRun run(problem.session, problem.candidates, directory().string() + "-open", options_.loop, clock_);
  for (int i = 0; i < 20; ++i) {
    const std::optional<journal::Trial> open = run.ask();
    const std::vector<journal::Trial> alone = ask();
    ASSERT_TRUE(open);
    ASSERT_EQ(alone.size(), 1U);
    EXPECT_EQ(open->number, i);
    EXPECT_EQ(open->proposal.configuration, alone[0].proposal.configuration) << i;
    EXPECT_EQ(open->proposal.hyperparameters, alone[0].proposal.hyperparameters) << i;
    if (i == 0) continue;
    const journal::Trial before =
        journal::read_journal(run::journal_path(directory()))[static_cast<std::size_t>(i) - 1];
    const trial::Outcome outcome = answer(session_, before.proposal.configuration);
    run.tell(i - 1, outcome);
    tell(i - 1, outcome);
  }
}

TEST_F(ByHand, ARunThatStaysOpenSeesWhatOthersDo) {
  const Problem problem(session_);
  run::HandRun run(problem.session, problem.candidates, directory(), options_.loop, clock_);
  ASSERT_TRUE(run.ask());
  EXPECT_EQ(ask()[0].number, 1);
  EXPECT_EQ(run.ask()->number, 2);
  tell(0, measured(session_, 1.0));
  EXPECT_NE(user_error_of([&] { run.tell(0, measured(session_, 2.0)); }).find("trial 0 is closed already"),
            std::string::npos);
  EXPECT_EQ(run.tell(1, measured(session_, 2.0)).number, 1);
}

TEST_F(ByHand, RecordsWhatSomebodyElseChose) {
  const Problem problem(session_);
  clock_.advance_s(1000.0);
  run::HandRun run(problem.session, problem.candidates, directory(), options_.loop, clock_);
  const space::Configuration chosen{{"a", std::int64_t{3}}, {"b", std::int64_t{2}}};
  const journal::Trial added = run.add(chosen, measured(session_, 5.0), 90.0);
  EXPECT_EQ(added.number, 0);
  EXPECT_EQ(added.wall_s, 90.0);
  EXPECT_EQ(added.proposal.strategy, search::kTryStrategy);
  EXPECT_EQ(journal::read_journal(run::journal_path(directory()))[0].proposal.configuration, chosen);
  for (int i = 1; i < 24; ++i) EXPECT_NE(run.ask()->proposal.configuration, chosen);
  EXPECT_FALSE(run.ask());
}

TEST_F(ByHand, MakesTheDirectoryAndAsksTheBaselineFirst) {
  session_.baseline = space::Configuration{{"a", std::int64_t{9}}, {"b", std::int64_t{2}}};
  const std::vector<journal::Trial> trials = ask(2);
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[0].proposal.strategy, search::kBaselineStrategy);
  EXPECT_EQ(trials[0].proposal.configuration.text(), "a=9 b=2");
  EXPECT_EQ(trials[1].proposal.strategy, "bayes");
  EXPECT_EQ(load_json(run::session_path(directory())).at("seed"), 1);
  EXPECT_FALSE(std::filesystem::exists(directory() / "trials"));
}

TEST_F(ByHand, RefusesAnotherSessionInTheSameDirectory) {
  ask();
  session_ = plain_session(R"({"a": [1, 2]})");
  EXPECT_NE(user_error_of([&] { ask(); }).find("was begun with another session"), std::string::npos);
}

TEST_F(ByHand, CountsTheTimeFromAskToTell) {
  ask();
  clock_.advance_s(90.0);
  EXPECT_NEAR(tell(0, measured(session_, 1.0)).wall_s, 90.0, 1e-5);
}

TEST_F(ByHand, GivesFewerTrialsWhenTheSpaceIsExhausted) {
  EXPECT_EQ(ask(20).size(), 20U);
  EXPECT_EQ(ask(20).size(), 4U);  // of 24 configurations
  EXPECT_TRUE(ask(1).empty());
  std::set<std::string> asked;
  for (const journal::Trial& trial : journal::read_journal(run::journal_path(directory()))) {
    EXPECT_TRUE(asked.insert(trial.proposal.configuration.text()).second);
  }
}

TEST_F(ByHand, AsksAgainWhatWasToldInterrupted) {
  const std::string first = ask()[0].proposal.configuration.text();
  tell(0, trial::Failed{trial::FailureReason::kInterrupted, 0, ""});
  EXPECT_EQ(ask()[0].proposal.configuration.text(), first);
}

TEST_F(ByHand, RefusesToTellWhatCannotBeTold) {
  EXPECT_NE(refusal(0, measured(session_, 1.0)).find("is not a run directory"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory()));
  ask(2);
  EXPECT_NE(refusal(2, measured(session_, 1.0)).find("there is no trial 2; the last one is trial 1"),
            std::string::npos);
  EXPECT_NE(refusal(-1, measured(session_, 1.0)).find("there is no trial -1"), std::string::npos);
  EXPECT_NE(refusal(0, trial::Measured{}).find("without a value of 'speed'"), std::string::npos);
  EXPECT_NE(refusal(0, measured(session_, std::nan(""))).find("is not a value of 'speed'"), std::string::npos);
  tell(0, trial::OutOfMemory{});
  EXPECT_NE(refusal(0, measured(session_, 1.0)).find("trial 0 is closed already: oom"), std::string::npos);
  EXPECT_EQ(trial::status_text(*journal::read_journal(run::journal_path(directory()))[0].outcome), std::string("oom"));
  EXPECT_FALSE(journal::read_journal(run::journal_path(directory()))[1].outcome);
}

TEST_F(ByHand, LeavesTheTrialsOfARunningTuneToIt) {
  ask();
  {
    journal::Journal journal(run::journal_path(directory()), session_.space, session_.objective.field, true);
    journal::Proposal proposal;
    proposal.configuration = space::Configuration{{"a", std::int64_t{0}}, {"b", std::int64_t{1}}};
    ASSERT_TRUE(journal.begin(proposal, 0, 1));
  }
  {
    const journal::TunerClaim running(run::journal_path(directory()));
    EXPECT_NE(refusal(1, measured(session_, 1.0)).find("trial 1 is being run by a krigtune tune"), std::string::npos);
    EXPECT_TRUE(tell(0, measured(session_, 1.0)).outcome);  // its own trial may be told meanwhile
  }
  EXPECT_TRUE(tell(1, measured(session_, 1.0)).outcome);  // that tune has ended
}

// Each process asks and tells until no configuration remains.
void ask_until_the_end(const session::Session& session, const std::filesystem::path& directory) {
  const Problem problem(session);
  const SystemClock clock;
  while (true) {
    const std::vector<journal::Trial> trials =
        run::ask_by_hand(problem.session, problem.candidates, directory, {search::StrategyKind::kRandom, 1}, clock, 1);
    if (trials.empty()) return;
    run::tell_by_hand(session, directory, trials[0].number,
                      measured(session, loop_speed(trials[0].proposal.configuration)), clock);
  }
}

void expect_each_once(const std::filesystem::path& directory) {
  const std::vector<journal::Trial> trials = journal::read_journal(run::journal_path(directory));
  std::set<std::string> asked;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].number, static_cast<int>(i));
    EXPECT_TRUE(trials[i].outcome);
    EXPECT_TRUE(asked.insert(trials[i].proposal.configuration.text()).second);
  }
  EXPECT_EQ(trials.size(), 24U);
}

TEST_F(ByHand, NeverAsksOneConfigurationTwiceFromSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { ask_until_the_end(session_, directory()); });
  for (std::thread& thread : threads) thread.join();
  expect_each_once(directory());
}

// Each of them may find the directory new, begun by another one, or anything between.
TEST_F(ByHand, BeginsOneRunWhenSeveralThreadsAskFirst) {
  constexpr int kRuns = 100;
  const Problem problem(session_);
  std::atomic<int> refused = 0;
  for (int i = 0; i < kRuns; ++i) {
    const std::filesystem::path fresh = directory().string() + std::to_string(i);
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; ++k) {
      threads.emplace_back([&] {
        try {
          run::ask_by_hand(problem.session, problem.candidates, fresh, options_.loop, clock_, 1);
        } catch (const UserError&) {
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::filesystem::remove_all(fresh);
  }
  EXPECT_EQ(refused, 0);
}

TEST_F(ByHand, NeverAsksOneConfigurationTwiceFromSeveralProcesses) {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ask_until_the_end(session_, directory());
      ::_exit(HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  expect_each_once(directory());
}

TEST_F(ByHand, AsksBesideARunningSession) {
  session_.runner = runner::ReplaySpec();
  // In each of its trials it asks one by hand, and tells every second one.
  FakeRunner runner([&](const space::Configuration& c) -> trial::Outcome {
    const std::vector<journal::Trial> mine = ask();
    if (!mine.empty() && mine[0].number % 4 == 1) tell(mine[0].number, measured(session_, 1.0));
    return answer(session_, c);
  });
  StoppingObserver observer;
  session_.budget.trials = 1000;
  const run::RunResult result = run(session_, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kExhausted);  // those asked by hand do not block it
  std::set<std::string> asked;
  int pending = 0;
  for (const journal::Trial& trial : result.history) {
    EXPECT_TRUE(asked.insert(trial.proposal.configuration.text()).second);
    if (!trial.outcome) ++pending;
  }
  EXPECT_EQ(result.history.size(), 24U);
  EXPECT_GT(pending, 0);
  // The next tune leaves them open.
  EXPECT_EQ(run(session_).reason, run::EndReason::kExhausted);
  int still_pending = 0;
  for (const journal::Trial& trial : journal::read_journal(run::journal_path(directory())))
    still_pending += trial.outcome ? 0 : 1;
  EXPECT_EQ(still_pending, pending);
}

TEST_F(ByHand, DoesNotSpendTheBudgetBeforeItIsTold) {
  ask(3);
  session_.budget.trials = 5;
  session_.runner = runner::ReplaySpec();
  write_atomically(run::session_path(directory()), run::run_record(session_, options_.loop).dump());
  EXPECT_EQ(run(session_).trials_now, 5);
  session_.budget.trials = 7;
  tell(0, measured(session_, 1.0));
  EXPECT_EQ(run(session_).trials_now, 1);  // five and the one that was told
}

TEST_F(ByHand, DoesNotSpendTheBudgetOfHours) {
  session_.budget.hours = 1.0;
  ask();
  clock_.advance_s(10.0 * 3600.0);
  tell(0, measured(session_, 1.0));
  session_.runner = runner::ReplaySpec();
  session_.budget.trials = 4;
  write_atomically(run::session_path(directory()), run::run_record(session_, options_.loop).dump());
  EXPECT_EQ(run(session_).reason, run::EndReason::kTrials);
}

TEST_F(ByHand, IsNotWhatRunSessionIsFor) {
  const std::string message = user_error_of([&] { run(session_); });
  EXPECT_NE(message.find("/runner: nobody runs the trials"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

}  // namespace krigtune::by_hand_test
