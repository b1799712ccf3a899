// What a session may change in a directory in which it was begun.
#include <gtest/gtest.h>

#include <set>

#include "run/by_hand.h"
#include "run/loop_fixture.h"
#include "user_error.h"

namespace krigtune::run_directory_test {

class RunDirectory : public Loop {
 protected:
  RunDirectory() { session_.baseline = space::Configuration{{"a", std::int64_t{9}}, {"b", std::int64_t{2}}}; }

  run::RunResult run_failing(int trials) {
    session_.budget.trials = trials;
    FakeRunner runner([](const space::Configuration&) { return trial::Failed{}; });
    StoppingObserver observer;
    options_.keep_going = true;
    return run(session_, observer, runner);
  }
  void change_space() {
    session::Session other = plain_session(R"({"a": {"min": 0, "max": 5}, "b": [1, 2, 4]})");
    session_.space = std::move(other.space);
  }
  std::string settle(journal::Asker asker = journal::Asker::kTune) const {
    return run::settle(directory(), session_, options_.loop, asker);
  }
  std::string refusal(journal::Asker asker = journal::Asker::kTune) const {
    return user_error_of([&] { settle(asker); });
  }
  void write(const std::string& name) const {
    std::filesystem::create_directories(directory());
    write_atomically(directory() / name, "lr: 1\n");
  }
  Json record() const { return load_json(run::session_path(directory())); }

  session::Session session_ = budgeted(3);
};

void expect_in(const std::string& text, const std::string& wanted) {
  EXPECT_NE(text.find(wanted), std::string::npos) << text;
}

void expect_not_in(const std::string& text, const std::string& other) {
  EXPECT_EQ(text.find(other), std::string::npos) << text;
}

// The journal is the only state of a search.
TEST_F(RunDirectory, GoesOnWithAnotherStrategyAndSeed) {
  options_.loop.strategy = search::StrategyKind::kRandom;
  run(session_);
  int trials = 3;
  for (const auto strategy : {search::StrategyKind::kBayes, search::StrategyKind::kGrid}) {
    options_.loop.strategy = strategy;
    options_.loop.seed += 1;
    trials += 3;
    session_.budget.trials = trials;
    expect_in(settle(), "goes on with another search: /strategy was ");
    const run::RunResult result = run(session_);
    ASSERT_EQ(static_cast<int>(result.history.size()), trials);
    EXPECT_EQ(result.history.back().proposal.strategy, search::to_string(strategy));
    EXPECT_EQ(record().at("strategy"), search::to_string(strategy));
    EXPECT_EQ(record().at("seed"), options_.loop.seed);
    std::set<std::string> tried;
    for (const journal::Trial& trial : result.history) {
      EXPECT_TRUE(tried.insert(trial.proposal.configuration.text()).second) << trial.proposal.configuration.text();
    }
    EXPECT_EQ(settle(), "");
  }
}

// A later version may know more of what predictions leave out.
TEST_F(RunDirectory, GoesOnWithOtherCaveatsOfPredictions) {
  session_.workload = workload::Workload();
  session_.workload->model = workload::model_preset("gpt2-124m");
  run(session_);
  session_.workload->caveats.also_not_modelled = {"NCCL_ALGO=Ring: other times of collectives"};
  session_.workload->caveats.not_modelled = {"8 experts: more memory"};
  EXPECT_EQ(settle(), "");
  session_.workload->precision = workload::Precision::kBf16;
  expect_in(refusal(), "/workload/precision was");
}

// Which transformers counted them, and whether one did, says nothing of what a program of the user's trains.
TEST_F(RunDirectory, GoesOnWithParametersThatWereCountedOtherwise) {
  runner::CommandSpec command;
  command.argv = {"true"};
  session_.runner = command;
  session_.workload = workload::Workload();
  session_.workload->model = workload::model_preset("gpt2-124m");
  run(session_);
  session_.workload->model.others.of_model = 4096;
  EXPECT_EQ(settle(), "");
  session_.workload->model.layers += 1;
  expect_in(refusal(), "/workload/model/layers was");
}

TEST_F(RunDirectory, GoesOnWithOtherOptionsOfAStrategyOtherLimitsAndEarlierRuns) {
  options_.loop.strategy = search::StrategyKind::kGrid;
  run(session_);
  session_.grid.order = session::GridOrder::kSession;
  expect_in(settle(), "/grid/order was \"seed\", now \"session\"");
  session_.memory.limit_gib = 20.0;
  expect_in(settle(), "/memory/limit_gib was null, now 20");
  options_.loop.earlier = {{.source = "old", .metric = "speed", .maximize = true, .trials = {}}};
  expect_in(settle(), "/warm_start was []");
  run(session_);
  EXPECT_EQ(settle(), "");
  session_.stagewise.plateau = 0.5;  // not of this strategy
  session_.budget.hours = 1.0;
  EXPECT_EQ(settle(), "");
}

TEST_F(RunDirectory, IsByHandTheSameAndRecordsTheLastStrategy) {
  const Problem problem(session_);
  const auto ask = [&] {
    return run::ask_by_hand(problem.session, problem.candidates, directory(), options_.loop, clock_, 1);
  };
  ask();
  options_.loop.strategy = search::StrategyKind::kRandom;
  EXPECT_EQ(ask().front().proposal.strategy, "random");
  EXPECT_EQ(record().at("strategy"), "random");
}

TEST_F(RunDirectory, BeginsAgainWithAnotherSessionWhereNothingWasMeasured) {
  run_failing(2);
  change_space();
  const std::string said = settle();
  expect_in(said, "no trial was measured yet");
  expect_in(said, "/space/b was [1,2,4,8], now [1,2,4]");
  const std::filesystem::path aside = directory().string() + ".1";
  expect_in(said, aside.string());
  EXPECT_EQ(journal::read_journal(run::journal_path(aside)).size(), 2u);
  const run::RunResult result = run(session_);
  EXPECT_EQ(result.history.front().proposal.strategy, search::kBaselineStrategy);
  EXPECT_EQ(record().at("space").at("b"), parse_json("[1, 2, 4]", "test"));
}

TEST_F(RunDirectory, BeginsAgainByItselfInRunSession) {
  run_failing(2);
  change_space();
  EXPECT_EQ(run(session_).history.front().proposal.strategy, search::kBaselineStrategy);
}

TEST_F(RunDirectory, RefusesAnotherSessionOnceSomethingIsKnown) {
  run(session_);
  change_space();
  const std::string said = refusal();
  expect_in(said, "was begun with another session: /space/b was");
  expect_in(said, "--fresh");
  expect_in(said, "--out NEW --warm-start " + directory().string());
  const std::string by_hand = refusal(journal::Asker::kHand);
  expect_not_in(by_hand, "--out");
  expect_not_in(by_hand, "--fresh");
  expect_in(by_hand, "--warm-start " + directory().string());
}

// Values of another metric are other values.
TEST_F(RunDirectory, OffersNoWarmStartWhereSomethingElseWasMeasured) {
  run(session_);
  session_.objective.maximize = false;
  expect_in(refusal(), "--fresh");
  expect_not_in(refusal(), "--warm-start");
}

TEST_F(RunDirectory, KnowsThatOutOfMemoryIsAResult) {
  FakeRunner runner([](const space::Configuration&) { return trial::OutOfMemory{}; });
  StoppingObserver observer(1);
  run(session_, observer, runner);
  change_space();
  expect_in(refusal(), "was begun with another session");
}

TEST_F(RunDirectory, AwaitsTheResultsOfTrialsThatWereAsked) {
  const Problem problem(session_);
  run::ask_by_hand(problem.session, problem.candidates, directory(), options_.loop, clock_, 1);
  change_space();
  expect_in(refusal(journal::Asker::kHand), "was begun with another session");
}

// As with --out conf, where conf has the user's own run.yaml.
TEST_F(RunDirectory, RefusesADirectoryOfTheUsersOwn) {
  write("run.yaml");
  const std::string said = refusal();
  expect_in(said, "not empty (run.yaml)");
  expect_in(said, "--out");
  expect_not_in(refusal(journal::Asker::kHand), "--out");
  EXPECT_NE(user_error_of([&] { run(session_); }), "no error");
  const Problem problem(session_);
  EXPECT_NE(user_error_of(
                [&] { run::ask_by_hand(problem.session, problem.candidates, directory(), options_.loop, clock_, 1); }),
            "no error");
  EXPECT_FALSE(std::filesystem::exists(run::journal_path(directory())));
}

TEST_F(RunDirectory, IsNotRecognisedByASessionFileOfTheUsers) {
  std::filesystem::create_directories(directory());
  write_atomically(directory() / "session.json", R"({"space": {"a": [1, 2]}})");
  expect_in(refusal(), "not empty (session.json)");
}

TEST_F(RunDirectory, MayBeEmptyOrHaveHiddenFiles) {
  write(".gitignore");
  EXPECT_EQ(run(session_).trials_now, 3);
}

}  // namespace krigtune::run_directory_test
