#include "run/loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/error.h"
#include "journal/lock.h"
#include "run/loop_fixture.h"
#include "search/model/best.h"

namespace krigtune::loop_test {

TEST_F(Loop, AsksTheSameWhereverItWasStoppedAndStartedAgain) {
  const std::vector<std::string> whole = texts(run(budgeted(12)).history);
  ASSERT_EQ(whole.size(), 12u);
  for (int stop_after = 1; stop_after < 12; ++stop_after) {
    std::filesystem::remove_all(directory());
    const run::RunResult first = run(budgeted(12), stop_after);
    EXPECT_EQ(first.reason, run::EndReason::kInterrupted);
    EXPECT_EQ(first.trials_now, stop_after);
    const run::RunResult second = run(budgeted(12));
    EXPECT_EQ(second.trials_now, 12 - stop_after);
    EXPECT_EQ(texts(second.history), whole) << "stopped after " << stop_after;
  }
}

TEST_F(Loop, ClosesTheTrialOfADeadProcessAsInterruptedAndAsksItAgain) {
  const session::Session session = budgeted(8);
  run(session, 5);
  const std::vector<std::string> before = texts(journal::read_journal(run::journal_path(directory())));
  std::string next;
  {  // a process that dies between asking and telling leaves a running trial behind
    const Problem problem(session);
    const auto strategy = problem.strategy(search::StrategyKind::kBayes, options_.loop.seed, 8);
    journal::Journal journal(run::journal_path(directory()), session.space, session.objective.field, true);
    const run::Proposer proposer(problem.session, problem.candidates, *strategy, clock_);
    const std::optional<journal::Proposal> proposal = proposer.next(journal.trials());
    ASSERT_TRUE(proposal);
    journal.begin(*proposal, clock_.unix_us(), journal.trials().size());
    next = proposal->configuration.text();
  }
  const run::RunResult result = run(session);
  ASSERT_EQ(result.history.size(), 9u);  // 8 of which count
  EXPECT_TRUE(search::is_interrupted(result.history[5]));
  EXPECT_EQ(result.history[5].proposal.configuration.text(), next);
  EXPECT_EQ(result.history[6].proposal.configuration.text(), next);
  EXPECT_EQ(result.trials_now, 3);
  const std::vector<std::string> after = texts(result.history);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));  // nothing was lost
}

TEST_F(Loop, RefusesAnotherSessionAndShowsTheDifference) {
  run(budgeted(3));
  session::Session other = plain_session(R"({"a": {"min": 0, "max": 5}, "b": [1, 2, 4]})");
  const std::string journal_before = read_text(run::journal_path(directory()));
  try {
    run(other);
    FAIL();
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("/space/b was [1,2,4,8], now [1,2,4]"), std::string::npos) << message;
    EXPECT_NE(message.find("--out"), std::string::npos) << message;
  }
  EXPECT_EQ(read_text(run::journal_path(directory())), journal_before);
}

TEST_F(Loop, AllowsOtherTimeouts) {
  session::Session session = budgeted(3);
  runner::BenchSpec bench;
  session.runner = bench;
  run(session);
  bench.timeout_s = 7.0;
  session.runner = bench;
  session.budget.trials = 4;
  EXPECT_EQ(run(session).trials_now, 1);
}

TEST_F(Loop, RefusesADirectoryInWhichAnotherOneIsAtWork) {
  const session::Session session = budgeted(3);
  run(session, 1);
  const journal::TunerClaim other(run::journal_path(directory()));
  EXPECT_THROW(run(session), UserError);
}

TEST_F(Loop, TellsTheObserverThatItWaits) {
  class Waiting final : public run::Observer {
   public:
    void waiting(const journal::Trial&) override { heard = true; }
    std::atomic<bool> heard{false};
  } observer;
  const session::Session session = budgeted(1);
  const Problem problem(session);
  FakeRunner runner([&](const space::Configuration&) {
    while (!observer.heard) std::this_thread::yield();
    return measured(session, 1.0);
  });
  const std::atomic<bool> stop{false};
  run::run_session(problem.session, problem.candidates, sharing(runner), directory(), options_, clock_, observer, stop);
  EXPECT_TRUE(observer.heard);
}

TEST_F(Loop, RunsTheBaselineFirstAndAgainWhenItWasInterrupted) {
  session::Session session = budgeted(3);
  session.baseline = space::Configuration{{"a", std::int64_t{9}}, {"b", std::int64_t{2}}};
  {
    FakeRunner runner([&](const space::Configuration&) -> trial::Outcome {
      return trial::Failed{trial::FailureReason::kInterrupted, 130, ""};
    });
    StoppingObserver observer;
    run(session, observer, runner);
  }
  const run::RunResult result = run(session);
  EXPECT_EQ(result.history[0].proposal.strategy, search::kBaselineStrategy);
  EXPECT_EQ(result.history[1].proposal.strategy, search::kBaselineStrategy);
  EXPECT_EQ(result.history[1].proposal.configuration.text(), "a=9 b=2");
  EXPECT_EQ(result.history[2].proposal.strategy, "bayes");
  EXPECT_EQ(search::counted_trials(result.history), 3);
}

const Json kBenchSession = parse_json(R"({
    "workload": {"model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}, "precision": "fp32",
                 "train_batch_size": 8},
    "cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "local"}, "memory": {"limit_gib": 1},
    "space": {"zero_stage": [0, 3], "micro_batch": [1, 2, 4]}, "baseline": {"zero_stage": 0, "micro_batch": 4},
    "budget": {"trials": 3}})",
                                      "bench");

TEST_F(Loop, ClosesABaselineThatCannotFitWithoutRunningIt) {
  session::Session session = session::read_session(kBenchSession, "bench", ".");
  const session::MemoryFilter all(session);
  session.usable_per_rank = Bytes{all.planned(*session.baseline)->predicted.count - 1};
  StoppingObserver observer;
  FakeRunner runner([&](const space::Configuration&) { return measured(session, 1.0); });
  const run::RunResult result = run(session, observer, runner);
  ASSERT_EQ(result.history.size(), 3u);
  const auto* oom = std::get_if<trial::OutOfMemory>(&*result.history[0].outcome);
  ASSERT_NE(oom, nullptr);
  EXPECT_TRUE(oom->predicted);
  EXPECT_EQ(result.history[0].proposal.strategy, search::kBaselineStrategy);
  EXPECT_EQ(runner.asked.size(), 2u);
  ASSERT_TRUE(result.history[0].proposal.predicted_memory);
}

TEST_F(Loop, MakesAFolderForEachTrialOfTheBenchRunner) {
  const session::Session session = session::read_session(kBenchSession, "bench", ".");
  StoppingObserver observer;
  FakeRunner runner([&](const space::Configuration&) { return measured(session, 1.0); });
  run(session, observer, runner);
  EXPECT_TRUE(std::filesystem::is_directory(directory() / "trials" / "0000_z0_mb4_gas1"));
}

// Proposals follow from what is known of the GPUs: a run goes on with what it was begun with.
TEST_F(Loop, RecordsTheGpusThatLocalStandsFor) {
  session::Session session = session::read_session(kBenchSession, "bench", ".");
  EXPECT_FALSE(run::recorded_gpus(directory()));
  const Json named = {{"gpus_per_node", 2}, {"gpu", "h100-80gb"}};
  const workload::ClusterSpec gpus = workload::read_cluster(named, "test", "");
  session.cluster.device = gpus.device;
  session.cluster.device->bf16_flops_per_s = 5e14;  // as measured
  session.cluster.network = gpus.network;
  session.cluster.network->intra.bytes_per_s = 1.23e11;
  session.cluster.network->inter = session.cluster.network->intra;
  session.usable_per_rank = Bytes{12'345'678};
  std::filesystem::create_directories(directory());
  run::write_run_record(directory(), session, options_.loop);
  const auto recorded = run::recorded_gpus(directory());
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->cluster.device, session.cluster.device);
  EXPECT_EQ(recorded->cluster.network->intra, session.cluster.network->intra);
  EXPECT_EQ(recorded->usable_per_rank, session.usable_per_rank);
  EXPECT_EQ(run::settle(directory(), session, options_.loop), "");
  EXPECT_EQ(run::load_run(directory()).session.cluster.gpu, "local");
}

TEST_F(Loop, MakesAFolderForEachTrialOfACommandAndNoneForAReplayedOne) {
  session::Session session = budgeted(1);
  run(session);
  EXPECT_FALSE(std::filesystem::exists(directory() / "trials"));
  std::filesystem::remove_all(directory());
  session.runner = runner::CommandSpec();
  run(session);
  EXPECT_TRUE(std::filesystem::is_directory(directory() / "trials" / "0000"));
}

TEST_F(Loop, TellsARunnerWhatATrialHasToBeat) {
  session::Session session = budgeted(5);
  session.baseline = space::Configuration{{"a", std::int64_t{3}}, {"b", std::int64_t{2}}};
  options_.tries = {space::Configuration{{"a", std::int64_t{3}}, {"b", std::int64_t{4}}}};
  FakeRunner runner([&](const space::Configuration& c) -> trial::Outcome {
    if (c.text() == "a=3 b=2") return trial::Measured{{{"speed", 20.0}}, 0.5, std::nullopt};
    return trial::Measured{{{"speed", 10.0}}, 0.5, std::nullopt};
  });
  StoppingObserver observer;
  run(session, observer, runner);
  ASSERT_EQ(runner.rivals.size(), 5u);
  EXPECT_FALSE(runner.rivals[0]);  // the baseline
  EXPECT_FALSE(runner.rivals[1]);  // one of the user's guesses
  for (std::size_t i = 2; i < 5; ++i) {
    ASSERT_TRUE(runner.rivals[i]) << i;
    EXPECT_EQ(runner.rivals[i]->metric, "speed");
    EXPECT_TRUE(runner.rivals[i]->maximize);
    EXPECT_EQ(runner.rivals[i]->value, 20.0);
    // Its own variance, plus twice that between runs, which is (3 %)^2 if nothing was repeated.
    EXPECT_LE(std::abs(runner.rivals[i]->value_sem - std::sqrt(0.25 + 2.0 * 0.36)), 1e-9);
  }
  // On a busy machine the comparison has more noise, so that fewer trials are ended early.
  std::filesystem::remove_all(directory());
  options_.rival_noise = 0.3;
  runner.rivals.clear();
  run(session, observer, runner);
  ASSERT_EQ(runner.rivals.size(), 5u);
  EXPECT_LE(std::abs(runner.rivals[4]->value_sem - std::sqrt(0.25 + 2.0 * 0.36 + 36.0)), 1e-9);
  std::filesystem::remove_all(directory());
  options_.may_end_early = false;
  runner.rivals.clear();
  run(session, observer, runner);
  ASSERT_EQ(runner.rivals.size(), 5u);
  EXPECT_FALSE(runner.rivals[4]);
}

TEST_F(Loop, ABoundedTrialCountsAndIsNeverTheBest) {
  const session::Session session = budgeted(6);
  int count = 0;
  FakeRunner runner([&](const space::Configuration&) -> trial::Outcome {
    if (++count % 2 == 0) return trial::Bounded{1e6};
    return measured(session, 10.0 + count);
  });
  StoppingObserver observer;
  const run::RunResult result = run(session, observer, runner);
  EXPECT_EQ(result.reason, run::EndReason::kTrials);
  EXPECT_EQ(search::closed_trials(result.history), 6);
  EXPECT_EQ(search::best_value(session.objective, result.history), 15.0);
}

TEST_F(Loop, IsRebuiltFromItsDirectory) {
  const session::Session session = session::read_session(kBenchSession, "bench", ".");
  options_.loop.seed = 99;
  options_.loop.strategy = search::StrategyKind::kRandom;
  StoppingObserver observer;
  FakeRunner runner([&](const space::Configuration&) { return measured(session, 1.0); });
  run(session, observer, runner);
  const run::RunRecord record = run::load_run(directory());
  EXPECT_EQ(record.options.seed, 99u);
  EXPECT_EQ(record.options.strategy, search::StrategyKind::kRandom);
  EXPECT_EQ(session::resolved(record.session).dump(), session::resolved(session).dump());
  EXPECT_THROW(run::load_run(directory_ / "nothing"), UserError);
}

TEST(TrialFolder, NamesWhatMattersMost) {
  journal::Trial trial;
  trial.number = 7;
  EXPECT_EQ(run::trial_folder(trial), "0007");
  trial.proposal.configuration = space::Configuration{{"micro_batch", std::int64_t{4}},
                                                      {"zero_stage", std::int64_t{3}},
                                                      {"gradient_accumulation_steps", std::int64_t{2}}};
  EXPECT_EQ(run::trial_folder(trial), "0007_z3_mb4_gas2");
}

TEST_F(Loop, RemovesWhatAKilledWriterLeft) {
  run(budgeted(1));
  const std::filesystem::path old = directory_.write("run/best.json.tmp-0123456789abcdef", "{");
  const std::filesystem::path young = directory_.write("run/trials.csv.tmp-fedcba9876543210", "trial");
  std::filesystem::last_write_time(old, std::filesystem::last_write_time(young) - std::chrono::hours(1));
  run(budgeted(2));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));
}

}  // namespace krigtune::loop_test
