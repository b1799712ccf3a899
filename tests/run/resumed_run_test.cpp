// Sessions that continue after the machine may have changed its speed.
#include <gtest/gtest.h>

#include <algorithm>

#include "run/loop_fixture.h"
#include "runner/simulate.h"
#include "search/model/best.h"
#include "search/trials/run_effects.h"

namespace krigtune::resumed_run_test {

constexpr double kSlowdown = 1.8;

class ResumedRun : public Loop {
 protected:
  ResumedRun() { options_.machine = "node1"; }

  static session::Session timed(int trials) {
    session::Session session = budgeted(trials);
    session.runner = runner::CommandSpec();
    return session;
  }
  run::RunResult run_at(double slowdown, const session::Session& session, int stop_after = 1'000'000) {
    StoppingObserver observer(stop_after);
    FakeRunner runner([&](const space::Configuration& c) -> trial::Outcome {
      if (loop_fails(c)) return trial::OutOfMemory{};
      trial::Measured result;
      result.metrics[session.objective.field] = loop_speed(c) / slowdown;
      result.value_sem = 0.005 * loop_speed(c) / slowdown;
      return result;
    });
    run::RunResult result = run(session, observer, runner);
    rivals_ = runner.rivals;
    return result;
  }
  std::vector<std::optional<trial::Rival>> rivals_;  ///< in the last call
};

std::vector<int> asked_again(const search::History& history) {
  std::vector<int> trials;
  for (const journal::Trial& trial : history) {
    if (trial.proposal.strategy == search::kAgainStrategy) trials.push_back(trial.number);
  }
  return trials;
}

TEST_F(ResumedRun, BeginsWithTheLeaderAfterALongPause) {
  const run::RunResult first = run_at(1.0, timed(12), 6);
  const Problem problem(timed(12));
  const auto leader = search::recommend(problem.session, problem.candidates, first.history, options_.loop.seed);
  clock_.advance_s(3600.0);
  const run::RunResult second = run_at(kSlowdown, timed(12));
  ASSERT_EQ(second.history.size(), 12u);
  EXPECT_EQ(asked_again(second.history), std::vector<int>{6});
  EXPECT_EQ(second.history[6].proposal.repeat_of, leader->trial);
  EXPECT_EQ(second.history[6].proposal.configuration.text(), leader->configuration.text());
  for (int i = 0; i < 12; ++i) EXPECT_EQ(second.history[static_cast<std::size_t>(i)].proposal.run, i < 6 ? 0 : 1);
}

TEST_F(ResumedRun, GoesOnAsIfNothingHadBeenAfterAShortPause) {
  const std::vector<std::string> whole = texts(run_at(1.0, timed(12)).history);
  std::filesystem::remove_all(directory());
  run_at(1.0, timed(12), 6);
  clock_.advance_s(300.0);
  const run::RunResult second = run_at(1.0, timed(12));
  EXPECT_EQ(texts(second.history), whole);
  EXPECT_EQ(asked_again(second.history), std::vector<int>{});
}

TEST_F(ResumedRun, BeginsWithTheLeaderOnAnotherMachine) {
  run_at(1.0, timed(12), 6);
  options_.machine = "node2";
  EXPECT_EQ(asked_again(run_at(1.0, timed(12)).history), std::vector<int>{6});
}

TEST_F(ResumedRun, MeasuresTheLeaderOnceARun) {
  run_at(1.0, timed(12), 5);
  clock_.advance_s(3600.0);
  run_at(1.0, timed(12), 2);
  run_at(1.0, timed(12), 2);  // immediately, so it is the same run
  clock_.advance_s(3600.0);
  const run::RunResult last = run_at(1.0, timed(12));
  EXPECT_EQ(asked_again(last.history), (std::vector<int>{5, 9}));
  EXPECT_EQ(last.history.back().proposal.run, 2);
}

TEST_F(ResumedRun, HasNothingToMeasureAgainWhereTheBudgetIsSpent) {
  run_at(1.0, timed(6));
  clock_.advance_s(3600.0);
  const run::RunResult second = run_at(1.0, timed(6));
  EXPECT_EQ(second.trials_now, 0);
  EXPECT_EQ(second.reason, run::EndReason::kTrials);
}

TEST_F(ResumedRun, OfATableIsTheSameRunForEver) {
  run(budgeted(12), 6);
  clock_.advance_s(1e6);
  options_.machine = "node2";
  const run::RunResult second = run(budgeted(12));
  EXPECT_EQ(asked_again(second.history), std::vector<int>{});
  EXPECT_EQ(second.history.back().proposal.run, 0);
}

TEST_F(ResumedRun, IsEndedEarlyOnlyByValuesOfItsOwn) {
  run_at(1.0, timed(8), 5);
  clock_.advance_s(3600.0);
  const run::RunResult second = run_at(kSlowdown, timed(8));
  ASSERT_EQ(rivals_.size(), 3u);
  EXPECT_FALSE(rivals_[0]);  // the leader
  ASSERT_TRUE(rivals_[1]);
  EXPECT_EQ(rivals_[1]->value, *search::value_of(second.history[5], timed(8).objective));
}

TEST_F(ResumedRun, RacesNobodyWhereTheLeaderFailed) {
  run_at(1.0, timed(8), 5);
  clock_.advance_s(3600.0);
  FakeRunner runner([](const space::Configuration&) -> trial::Outcome { return trial::Failed{}; });
  StoppingObserver observer;
  const run::RunResult second = run(timed(8), observer, runner);
  EXPECT_EQ(asked_again(second.history), std::vector<int>{5});
  EXPECT_TRUE(std::none_of(runner.rivals.begin(), runner.rivals.end(), [](const auto& rival) { return rival; }));
}

constexpr const char* kSimulated = R"({
    "workload": {"model": {"preset": "gpt2-1.5b"}, "precision": "bf16", "train_batch_size": 256},
    "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-80gb"},
    "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 16, "scale": "log2"},
              "activation_checkpointing": ["none", "full"], "overlap_comm": [true, false],
              "reduce_bucket_size": [5e6, 5e7, 5e8]},
    "budget": {"trials": 24, "regret": 0, "least_gain": 0},
    "runner": {"kind": "simulate", "noise": 0.01, "stragglers": {"probability": 0}, "failures": {"crash_probability": 0},
               "seed": 5, "early_end": true}})";

class SimulatedDays : public Loop {
 protected:
  static session::Session session_of(runner::SimulateSpec::Today today, std::int64_t seed, double noise) {
    session::Session session = session::read_session(parse_json(kSimulated, "s"), "s", ".");
    std::get<runner::SimulateSpec>(session.runner).today = today;
    std::get<runner::SimulateSpec>(session.runner).seed = seed;
    std::get<runner::SimulateSpec>(session.runner).noise = noise;
    return session;
  }
  run::RunResult run_simulated(const session::Session& session, int stop_after = 1'000'000) {
    const Problem problem(session, Problem::WithPhysics{});
    const trial::RunnerFactory make_runner = [&] {
      return runner::make_simulate_runner({*session.workload, session.cluster, session.memory, session.space,
                                           std::get<runner::SimulateSpec>(session.runner)});
    };
    StoppingObserver observer(stop_after);
    return run::run_session(problem.session, problem.candidates, make_runner, directory(), options_, clock_, observer,
                            observer.stop);
  }
  space::Configuration best_of(const session::Session& session, const search::History& history) const {
    const Problem problem(session, Problem::WithPhysics{});
    return search::recommend(problem.session, problem.candidates, history, options_.loop.seed)->configuration;
  }
  /// Returns the speed on the undisturbed machine of the first day; 0 if the configuration fails.
  static double true_speed(const session::Session& session, const space::Configuration& configuration) {
    auto spec = std::get<runner::SimulateSpec>(session.runner);
    spec.noise = 0.0;
    spec.today = {};
    const auto runner =
        runner::make_simulate_runner({*session.workload, session.cluster, session.memory, session.space, spec});
    const trial::Outcome outcome = runner->run(configuration, "");
    const auto* measured = std::get_if<trial::Measured>(&outcome);
    return measured == nullptr ? 0.0 : measured->metrics.at(session.objective.field);
  }
  /// Runs a session with that seed, stopped after eight trials and continued with every step slower.
  run::RunResult interrupted(std::int64_t seed, double noise) {
    std::filesystem::remove_all(directory());
    run_simulated(session_of({}, seed, noise), 8);
    return run_simulated(session_of({kSlowdown, 100 + seed}, seed, noise));
  }
  run::RunResult uninterrupted(std::int64_t seed, double noise) {
    std::filesystem::remove_all(directory());
    return run_simulated(session_of({}, seed, noise));
  }
};

// It finds the same best configuration, or one that is less than a per cent slower.
TEST_F(SimulatedDays, FindTheSameBestAtAnotherSpeed) {
  for (const std::int64_t seed : {5, 6, 7}) {
    const session::Session session = session_of({}, seed, 0.001);
    const space::Configuration best = best_of(session, uninterrupted(seed, 0.001).history);
    const search::History history = interrupted(seed, 0.001).history;
    const double ratio = true_speed(session, best_of(session, history)) / true_speed(session, best);
    EXPECT_LE(std::abs(ratio - 1.0), 0.01) << "seed " << seed << ": " << best_of(session, history).text();
    EXPECT_EQ(asked_again(history), std::vector<int>{8});
    EXPECT_LE(std::abs(search::RunEffects(session.objective, history).factor(0) * kSlowdown - 1.0), 0.01);
    EXPECT_NE(search::run_effect_sentence(session.objective, history).find("1.8 times slower"), std::string::npos);
  }
}

// With more noise than the differences of the best few, these count as equal.
TEST_F(SimulatedDays, FindOneAsGoodWhereTrialsAreNoisy) {
  for (const std::int64_t seed : {5, 6, 7}) {
    const session::Session session = session_of({}, seed, 0.02);
    const double best = true_speed(session, best_of(session, uninterrupted(seed, 0.02).history));
    EXPECT_GE(true_speed(session, best_of(session, interrupted(seed, 0.02).history)), 0.98 * best) << "seed " << seed;
  }
}

TEST_F(SimulatedDays, EndNoHealthyTrial) {
  int would_have_been_ended = 0;
  for (const std::int64_t seed : {5, 6, 7}) {
    const session::Session session = session_of({}, seed, 0.01);
    const search::History history = interrupted(seed, 0.01).history;
    double best = 0.0;
    for (const journal::Trial& trial : history)
      best = std::max(best, true_speed(session, trial.proposal.configuration));
    for (const journal::Trial& trial : history) {
      if (trial.proposal.run == 0 || true_speed(session, trial.proposal.configuration) < 0.9 * best) continue;
      EXPECT_FALSE(std::holds_alternative<trial::Bounded>(*trial.outcome))
          << "seed " << seed << ", trial " << trial.number;
      // By far more than race.cpp allows, if yesterday's best were the rival.
      const auto value = search::value_of(trial, session.objective);
      if (value && *value < 0.7 * best) ++would_have_been_ended;
    }
  }
  EXPECT_GE(would_have_been_ended, 5);
}

TEST_F(SimulatedDays, AreOneRunWhileTodayIsTheSame) {
  const session::Session session = session_of({}, 5, 0.01);
  run_simulated(session, 4);
  clock_.advance_s(1e6);  // the virtual clock counts
  EXPECT_EQ(asked_again(run_simulated(session, 2).history), std::vector<int>{});
}

TEST(RunsInTheJournal, AreReadBackAndLeftOutOfTheFirst) {
  const TemporaryDirectory directory;
  const session::Session session = plain_session(kLoopSpace);
  const std::filesystem::path file = directory.path() / "journal.log";
  journal::Proposal proposal;
  proposal.configuration = space::Configuration{{"a", std::int64_t{1}}, {"b", std::int64_t{2}}};
  proposal.strategy = "bayes";
  {
    journal::Journal journal(file, session.space, session.objective.field, true);
    journal.begin(proposal, 1, 0);
    EXPECT_EQ(read_text(file).find("\"run\""), std::string::npos);
    proposal.run = 3;
    proposal.machine = "node1, Slurm job 7";
    journal.begin(proposal, 2, 1);
  }
  const std::vector<journal::Trial> trials = journal::read_journal(file);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].proposal.run, 0);
  EXPECT_EQ(trials[0].proposal.machine, "");
  EXPECT_EQ(trials[1].proposal.run, 3);
  EXPECT_EQ(trials[1].proposal.machine, "node1, Slurm job 7");
}

}  // namespace krigtune::resumed_run_test
