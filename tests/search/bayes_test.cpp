#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "search/fixtures.h"
#include "search/model/best.h"

namespace krigtune::bayes_test {

// Rises with the batch and saturates; a middle bucket is best, and overlap helps large buckets.
double speed(const space::Configuration& c) {
  const double batch = std::exp2(log2_of(c, "batch"));
  const double bucket = log2_of(c, "bucket") - 15.0;
  const double stage = space::as_number(*c.find("stage"));
  const double overlap = space::as_number(*c.find("overlap"));
  return 1000.0 * batch / (batch + 6.0) * std::exp(-0.02 * bucket * bucket) * (1.0 - 0.05 * stage) *
         (1.0 + overlap * (0.03 + 0.01 * bucket));
}

// The corner of large batches at low stages does not fit into memory.
bool fails(const space::Configuration& c) { return log2_of(c, "batch") - space::as_number(*c.find("stage")) > 2.5; }

// Returns the number of trials until a value within 2 % of the best, counted from 1.
int trials_to_best(const Problem& problem, const search::History& history, double optimum) {
  for (const journal::Trial& trial : history) {
    const std::optional<double> value = search::value_of(trial, problem.session.objective);
    if (value && *value >= 0.98 * optimum) return trial.number + 1;
  }
  return static_cast<int>(history.size()) + 1;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double optimum_of(const Problem& problem, bool with_failures) {
  double best = 0.0;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    if (!with_failures || !fails(problem.candidates[i])) best = std::max(best, speed(problem.candidates[i]));
  }
  return best;
}

TEST(Bayes, FindsTheBestInFewerTrialsThanRandom) {
  const Problem problem(plain_session(kFourKnobs));
  const double optimum = optimum_of(problem, false);
  std::vector<double> bayes;
  std::vector<double> random;
  for (std::uint64_t seed = 1; seed <= 9; ++seed) {
    const auto answer = [&](const space::Configuration& c) { return measured(problem.session, speed(c)); };
    bayes.push_back(trials_to_best(problem, problem.drive(search::StrategyKind::kBayes, seed, 40, answer), optimum));
    random.push_back(trials_to_best(problem, problem.drive(search::StrategyKind::kRandom, seed, 40, answer), optimum));
  }
  RecordProperty("bayes_median", static_cast<int>(median(bayes)));
  RecordProperty("random_median", static_cast<int>(median(random)));
  EXPECT_LE(median(bayes), 15.0);
  EXPECT_GE(median(random), 2.0 * median(bayes));
}

TEST(Bayes, MinimisesAsWell) {
  const Problem problem(plain_session(kFourKnobs, false));
  const auto answer = [&](const space::Configuration& c) { return measured(problem.session, 1.0 / speed(c)); };
  const Problem rising(plain_session(kFourKnobs, true));
  const auto rising_answer = [&](const space::Configuration& c) { return measured(rising.session, speed(c)); };
  // log(1 / y) = -log y, so the questions are the same.
  EXPECT_EQ(texts(problem.drive(search::StrategyKind::kBayes, 4, 15, answer)),
            texts(rising.drive(search::StrategyKind::kBayes, 4, 15, rising_answer)));
}

TEST(Bayes, LearnsFromFailuresWhereNotToAsk) {
  const Problem problem(plain_session(kFourKnobs));
  const auto answer = [&](const space::Configuration& c) -> trial::Outcome {
    if (fails(c)) return trial::OutOfMemory{};
    return measured(problem.session, speed(c));
  };
  const auto failures = [](const search::History& history, std::size_t first) {
    return std::count_if(
        history.begin() + static_cast<std::ptrdiff_t>(first), history.end(),
        [](const journal::Trial& trial) { return std::holds_alternative<trial::OutOfMemory>(*trial.outcome); });
  };
  std::ptrdiff_t bayes = 0;
  std::ptrdiff_t bayes_late = 0;
  std::ptrdiff_t random = 0;
  std::ptrdiff_t random_late = 0;
  std::vector<double> to_best;
  for (std::uint64_t seed = 1; seed <= 7; ++seed) {
    const search::History by_bayes = problem.drive(search::StrategyKind::kBayes, seed, 30, answer);
    const search::History by_random = problem.drive(search::StrategyKind::kRandom, seed, 30, answer);
    bayes += failures(by_bayes, 0);
    bayes_late += failures(by_bayes, 20);
    random += failures(by_random, 0);
    random_late += failures(by_random, 20);
    to_best.push_back(trials_to_best(problem, by_bayes, optimum_of(problem, true)));
  }
  // The best is at the edge of the failing region. bayes finds it by trying the edge a few times, and then leaves it
  // alone.
  EXPECT_LT(bayes, random);
  EXPECT_LE(3 * bayes_late, random_late);
  EXPECT_LE(median(to_best), 25.0);
}

TEST(Bayes, GoesOnWhenNothingHasRunYet) {
  const Problem problem(plain_session(kFourKnobs));
  const auto answer = [](const space::Configuration&) -> trial::Outcome {
    return trial::Failed{trial::FailureReason::kCrash, 1, ""};
  };
  const search::History history = problem.drive(search::StrategyKind::kBayes, 1, 8, answer);
  EXPECT_EQ(history.size(), 8u);
}

TEST(Bayes, TakesValuesThatAreNotPositive) {
  const Problem problem(plain_session(kFourKnobs));
  const auto answer = [&](const space::Configuration& c) { return measured(problem.session, speed(c) - 500.0); };
  const search::History history = problem.drive(search::StrategyKind::kBayes, 1, 30, answer);
  EXPECT_LE(trials_to_best(problem, history, optimum_of(problem, false) - 500.0), 25);
}

TEST(Bayes, KeepsItsHyperparametersWithTheProposal) {
  const Problem problem(plain_session(kFourKnobs));
  const auto answer = [&](const space::Configuration& c) { return measured(problem.session, speed(c)); };
  const search::History history = problem.drive(search::StrategyKind::kBayes, 1, 6, answer);
  EXPECT_TRUE(history[2].proposal.hyperparameters.empty());   // one of the first, which spread out
  ASSERT_EQ(history[3].proposal.hyperparameters.size(), 6u);  // four lengthscales, signal, noise
  ASSERT_TRUE(history[5].proposal.predicted_value);
  EXPECT_GT(*history[5].proposal.predicted_value, 0.0);
}

// Each is the farthest one among a random half of the eleven. Whichever six are drawn, two of them are apart.
TEST(Bayes, SpreadsItsFirstTrialsAndDependsOnTheSeed) {
  const Problem problem(plain_session(R"({"x": {"min": 0, "max": 10}})"));
  const auto answer = [&](const space::Configuration&) { return measured(problem.session, 1.0); };
  std::set<std::vector<std::int64_t>> designs;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<std::int64_t> asked;
    for (const journal::Trial& trial : problem.drive(search::StrategyKind::kBayes, seed, 3, answer)) {
      asked.push_back(trial.proposal.configuration.integer("x", -1));
    }
    std::sort(asked.begin(), asked.end());
    EXPECT_GE(asked[1] - asked[0], 2) << "seed " << seed;
    EXPECT_GE(asked[2] - asked[1], 2) << "seed " << seed;
    designs.insert(asked);
  }
  EXPECT_GE(designs.size(), 5U);
}

TEST(Bayes, AsksElsewhereThanWhatIsBelieved) {
  // Without any result in between, each question treats the others as measured at their mean, so four questions spread
  // out.
  const Problem problem(plain_session(R"({"x": {"min": 0, "max": 40}})"));
  const auto answer = [&](const space::Configuration& c) {
    const double x = space::as_number(*c.find("x"));
    return measured(problem.session, 10.0 + std::sin(0.4 * x));
  };
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, 1);
  const ManualClock clock;
  run::Tuner tuner({problem.session, problem.candidates, *strategy, clock},
                   problem.drive(search::StrategyKind::kGrid, 1, 8, answer));
  std::vector<double> asked;
  for (int i = 0; i < 4; ++i) asked.push_back(space::as_number(*tuner.ask()->proposal.configuration.find("x")));
  std::sort(asked.begin(), asked.end());
  EXPECT_GE(asked.back() - asked.front(), 5.0);
}

TEST(Bayes, TakesAnOutOfMemoryTrialForAWallBelowThePlansLimit) {
  session::Session session = session::read_session(parse_json(R"({
      "workload": {"model": {"layers": 2, "hidden": 64, "heads": 2, "vocab": 128, "seq_len": 32}, "precision": "fp32"},
      "cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "local"}, "memory": {"limit_gib": 1}, "baseline": null,
      "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 128, "scale": "log2"},
                "overlap_comm": [false, true], "stage3_param_persistence_threshold": [0]}})",
                                                              "s"),
                                                   "s", ".");
  const Problem problem(session);
  // The device has less memory than the session says, so half of all configurations run out of memory.
  std::vector<double> planned;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    planned.push_back(static_cast<double>(problem.candidates.memory_of(i)->predicted.count));
  }
  const double wall = median(planned);
  const auto answer = [&](const space::Configuration& c) -> trial::Outcome {
    if (static_cast<double>(problem.candidates.memory_of(c)->predicted.count) > wall) return trial::OutOfMemory{};
    return measured(problem.session, static_cast<double>(c.integer("micro_batch", 1)) + 5.0);
  };
  std::ptrdiff_t bayes = 0;
  std::ptrdiff_t random = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const search::StrategyKind kind : {search::StrategyKind::kBayes, search::StrategyKind::kRandom}) {
      const search::History history = problem.drive(kind, seed, 20, answer);
      (kind == search::StrategyKind::kBayes ? bayes : random) += std::count_if(
          history.begin(), history.end(),
          [](const journal::Trial& trial) { return std::holds_alternative<trial::OutOfMemory>(*trial.outcome); });
    }
  }
  EXPECT_LE(3 * bayes, random);
  RecordProperty("bayes_oom", static_cast<int>(bayes));
  RecordProperty("random_oom", static_cast<int>(random));
  // Planned bytes are exact: a configuration that needs at least as much as one that ran out of memory is no longer
  // asked.
  double smallest_that_failed = std::numeric_limits<double>::infinity();
  for (const journal::Trial& trial : problem.drive(search::StrategyKind::kBayes, 1, 20, answer)) {
    const auto bytes = static_cast<double>(problem.candidates.memory_of(trial.proposal.configuration)->predicted.count);
    EXPECT_LT(bytes, smallest_that_failed) << "trial " << trial.number;
    if (std::holds_alternative<trial::OutOfMemory>(*trial.outcome)) smallest_that_failed = bytes;
  }
}

// Two values that are nearly equal by chance say little about how much the others differ.
TEST(Bayes, TrialsEndedFarBelowTwoEqualOnesDoNotPullThoseDown) {
  const Problem problem(plain_session(kFourKnobs));
  search::History history;
  const auto add = [&](const char* configuration, trial::Outcome outcome) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = space::configuration_from_json(parse_json(configuration, "test"), "test", "");
    trial.outcome = std::move(outcome);
    history.push_back(trial);
  };
  const auto runs = [&](double value, double sem) {
    trial::Outcome outcome = measured(problem.session, value);
    std::get<trial::Measured>(outcome).value_sem = sem;
    return outcome;
  };
  add(R"({"stage": 0, "batch": 2, "bucket": 1000, "overlap": false})", runs(164.5, 9.3));
  add(R"({"stage": 3, "batch": 16, "bucket": 1000000, "overlap": false})", trial::Bounded{155.3});
  add(R"({"stage": 3, "batch": 16, "bucket": 1000, "overlap": true})", trial::Bounded{117.3});
  add(R"({"stage": 3, "batch": 1, "bucket": 1000000, "overlap": true})", trial::Bounded{33.3});
  add(R"({"stage": 1, "batch": 1, "bucket": 1000, "overlap": false})", trial::Bounded{139.5});
  add(R"({"stage": 0, "batch": 8, "bucket": 1000, "overlap": false})", runs(165.2, 3.9));
  const std::optional<search::Recommendation> best = search::recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  EXPECT_TRUE(best->lower_95 <= best->value && best->value <= best->upper_95)
      << best->lower_95 << " to " << best->upper_95 << " for " << best->value;
}

TEST(RulesOfThumb, KnowWhatZeroStagesSendAndWhatIsDoneTwice) {
  session::Session session = plain_session(R"({"zero_stage": [0, 1, 2, 3], "gradient_accumulation_steps": [1, 8],
      "activation_checkpointing": ["none", "full"], "offload_optimizer": ["none", "cpu"]})");
  session.objective = {"throughput", true, "throughput"};
  const std::shared_ptr<const forecast::Prior> rules = forecast::make_rules_of_thumb(session);
  ASSERT_TRUE(rules);
  const auto speed_of = [&](int stage, int micro_steps, const char* checkpointing, const char* offload) {
    return rules->log_values({{{"zero_stage", std::int64_t{stage}},
                               {"gradient_accumulation_steps", std::int64_t{micro_steps}},
                               {"activation_checkpointing", checkpointing},
                               {"offload_optimizer", offload}}})(0);
  };
  EXPECT_DOUBLE_EQ(speed_of(1, 1, "none", "none"), speed_of(1, 8, "none", "none")) << "reduced once a step";
  EXPECT_DOUBLE_EQ(speed_of(3, 1, "none", "none") - speed_of(3, 8, "none", "none"), 0.3) << "three doublings";
  EXPECT_GT(speed_of(2, 8, "none", "none"), speed_of(3, 8, "none", "none"));
  EXPECT_NEAR(speed_of(0, 1, "none", "none") - speed_of(0, 1, "full", "none"), std::log(4.0 / 3.0), 1e-3);
  EXPECT_GT(speed_of(1, 1, "none", "none"), speed_of(1, 1, "none", "cpu"));

  session::Session buckets = plain_session(R"({"zero_stage": [0, 1], "micro_batch": [1, 8],
                                      "reduce_bucket_size": {"values": [1000, 8000], "when": "zero_stage >= 1"}})");
  buckets.objective = session.objective;
  const auto with_bucket = [&](const space::Configuration& c) {
    return forecast::make_rules_of_thumb(buckets)->log_values({c})(0);
  };
  const space::Configuration no_bucket{{"zero_stage", std::int64_t{0}}, {"micro_batch", std::int64_t{8}}};
  space::Configuration small{{"zero_stage", std::int64_t{1}}, {"micro_batch", std::int64_t{8}}};
  small.set("reduce_bucket_size", std::int64_t{1000});
  space::Configuration large = small;
  large.set("reduce_bucket_size", std::int64_t{8000});
  EXPECT_GT(with_bucket(large), with_bucket(small));
  EXPECT_GT(with_bucket(no_bucket), with_bucket(large)) << "stage 0 sends less, and has no bucket to be small";

  session::Session silent = plain_session(R"({"zero_stage": [1], "bucket": [1, 2]})");
  silent.objective = session.objective;
  EXPECT_FALSE(forecast::make_rules_of_thumb(silent)) << "nothing that it knows varies";
}

}  // namespace krigtune::bayes_test
