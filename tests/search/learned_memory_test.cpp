#include "search/model/learned_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "search/uncertain_memory.h"

namespace krigtune::learned_memory_test {

session::Session script_session() {
  session::Session session = plain_session(R"({
      "micro_batch": [1, 2, 4, 8, 16, 32], "activation_checkpointing": ["none", "selective", "full"],
      "zero_stage": [0, 1, 2, 3], "prefetch_depth": [1, 2, 4, 8], "loader": ["threads", "processes"]})");
  session.objective = {"tokens_per_second", true, "tokens_per_s"};
  return session;
}

double share_of_activations(const space::Configuration& configuration) {
  const std::string word = space::to_string(*configuration.find("activation_checkpointing"));
  return word == "none" ? 1.0 : word == "selective" ? 0.6 : 0.15;
}

// A model of 1.3 billion parameters on 8 GPUs: states of 16 bytes a parameter, and 3 GB of activations a sequence.
double gigabytes(const space::Configuration& configuration) {
  const double states[] = {20.8, 7.2, 4.9, 2.6};
  const auto stage = static_cast<std::size_t>(space::as_number(*configuration.find("zero_stage")));
  const double micro_batch = space::as_number(*configuration.find("micro_batch"));
  return 2.0 + states[stage] + 3.0 * micro_batch * share_of_activations(configuration);
}

double tokens_per_s(const space::Configuration& configuration) {
  const double micro_batch = space::as_number(*configuration.find("micro_batch"));
  const double stage = space::as_number(*configuration.find("zero_stage"));
  const double depth = space::as_number(*configuration.find("prefetch_depth"));
  const bool processes = space::to_string(*configuration.find("loader")) == "processes";
  const double recomputed = (1.0 - share_of_activations(configuration)) / 3.0;
  return 40000.0 * micro_batch / (micro_batch + 1.5) / (1.0 + recomputed) * (1.0 - 0.04 * stage) *
         (1.0 + 0.02 * std::log2(depth)) * (processes ? 1.05 : 1.0);
}

constexpr double kWall = 40.0;

trial::Outcome outcome_of(const space::Configuration& configuration) {
  if (gigabytes(configuration) > kWall) return trial::OutOfMemory{};
  return trial::Measured{{{"tokens_per_s", tokens_per_s(configuration)}}, 0.0, std::nullopt};
}

std::string cause_of(const space::Configuration& configuration) {
  return space::to_string(*configuration.find("micro_batch")) + "," +
         space::to_string(*configuration.find("activation_checkpointing")) + "," +
         space::to_string(*configuration.find("zero_stage"));
}

double best_of_all(const Problem& problem) {
  double best = 0.0;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    if (gigabytes(problem.candidates[i]) <= kWall) best = std::max(best, tokens_per_s(problem.candidates[i]));
  }
  return best;
}

// Learned from failures alone, 10 or 11 of these 30 trials ran out of memory, 4 to 6 of them for a reason that an
// earlier trial had shown, and no search found the best configuration.
TEST(Bayes, LearnsFromEachTrialOutOfMemoryOnce) {
  const Problem problem(script_session(), Problem::WithPhysics{});
  std::size_t repeats = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const search::History history = problem.drive(search::StrategyKind::kBayes, seed, 30, outcome_of);
    std::multiset<std::string> causes;
    double best = 0.0;
    for (const journal::Trial& trial : history) {
      const space::Configuration& configuration = trial.proposal.configuration;
      if (trial::ran(*trial.outcome)) best = std::max(best, tokens_per_s(configuration));
      if (trial::ran_out_of_memory(*trial.outcome)) causes.insert(cause_of(configuration));
    }
    EXPECT_LE(causes.size(), 4u) << "seed " << seed;
    const std::size_t different = std::set<std::string>(causes.begin(), causes.end()).size();
    EXPECT_LE(causes.size(), different + 2) << "seed " << seed;
    repeats += causes.size() - different;
    EXPECT_DOUBLE_EQ(best, best_of_all(problem)) << "seed " << seed;
  }
  EXPECT_LE(repeats, 8u) << "between one and two in a search";
}

journal::Trial told(const std::string& configuration, trial::Outcome outcome) {
  journal::Trial trial;
  trial.proposal.configuration = space::configuration_from_json(parse_json(configuration, "test"), "test", "");
  trial.outcome = std::move(outcome);
  return trial;
}

trial::Outcome ran(std::optional<Bytes> peak = std::nullopt) {
  return trial::Measured{{{"tokens_per_s", 1.0}}, 0.0, peak};
}

/// The probability that `configuration` does not run out of memory after a history.
double fits_after(const Problem& problem, const search::History& history, const std::string& configuration) {
  const search::LearnedMemory memory(problem.candidates, history);
  return memory.probability(problem.candidates.encode({told(configuration, ran()).proposal.configuration}))(0);
}

std::string script(int micro_batch, const char* checkpointing, int stage, int depth = 4,
                   const char* loader = "threads") {
  return fmt::format(R"({{"micro_batch": {}, "activation_checkpointing": "{}", "zero_stage": {}, "prefetch_depth": {},
                         "loader": "{}"}})",
                     micro_batch, checkpointing, stage, depth, loader);
}

TEST(LearnedMemory, WhatNeedsAtLeastAsMuchAsATrialOutOfMemoryFailsToo) {
  const Problem problem(script_session());
  const search::History history{told(script(8, "none", 1), trial::OutOfMemory{}), told(script(1, "full", 3), ran())};
  EXPECT_LE(fits_after(problem, history, script(8, "none", 1, 1, "processes")), 0.25);
  EXPECT_LE(fits_after(problem, history, script(16, "none", 1, 8)), 0.15);
  EXPECT_LE(fits_after(problem, history, script(8, "none", 0, 1, "processes")), 0.2);
  EXPECT_GE(fits_after(problem, history, script(2, "full", 3)), 0.8);
}

TEST(LearnedMemory, WhatNeedsNoMoreThanATrialThatRanRunsToo) {
  const Problem problem(script_session());
  const search::History history{told(script(8, "none", 1), trial::OutOfMemory{}), told(script(4, "none", 1), ran())};
  EXPECT_GE(fits_after(problem, history, script(4, "none", 1, 1, "processes")), 0.75);
  EXPECT_GE(fits_after(problem, history, script(2, "none", 1)), 0.85);
  EXPECT_GE(fits_after(problem, history, script(4, "full", 2, 8)), 0.9);
}

TEST(LearnedMemory, EvidenceMaySpeakForAParameterOfUnknownName) {
  const Problem problem(script_session());
  search::History history{told(script(8, "none", 1, 8), trial::OutOfMemory{}), told(script(8, "none", 1, 1), ran())};
  const double before = fits_after(problem, history, script(4, "none", 1, 1));
  history.push_back(told(script(4, "none", 1, 8), trial::OutOfMemory{}));
  history.push_back(told(script(16, "none", 1, 1), ran()));
  EXPECT_GE(fits_after(problem, history, script(16, "none", 3, 1)), 0.8);
  EXPECT_LE(fits_after(problem, history, script(16, "none", 1, 8)), 0.1);
  EXPECT_GE(fits_after(problem, history, script(4, "none", 1, 1)), before);
}

// The trial that ran out of memory puts the wall at 30 to 60 GB. What full recomputation leaves decides then whether
// twice the micro-batch fits.
TEST(LearnedMemory, MeasuredPeaksShowHowFarTheWallIs) {
  const Problem problem(script_session());
  const auto if_full_needs = [&](std::int64_t bytes) {
    const search::History history{told(script(8, "none", 1), trial::OutOfMemory{}),
                                  told(script(4, "none", 1), ran(Bytes{30'000'000'000})),
                                  told(script(8, "full", 1), ran(Bytes{bytes}))};
    return fits_after(problem, history, script(16, "full", 1));
  };
  EXPECT_GE(if_full_needs(10'000'000'000), 0.9);
  EXPECT_LE(if_full_needs(29'000'000'000), 0.7);
}

TEST(LearnedMemory, KnowsTheOtherNamesOfParameters) {
  session::Session session =
      plain_session(R"({"mbs": [1, 2, 4, 8], "tp": [1, 2, 4], "gradient_checkpointing": [false, true],
                                               "seed": [1, 2, 3]})");
  const Problem problem(std::move(session));
  const auto at = [](int micro_batch, int ranks, bool recomputes) {
    return fmt::format(R"({{"mbs": {}, "tp": {}, "gradient_checkpointing": {}, "seed": 1}})", micro_batch, ranks,
                       recomputes);
  };
  const search::History history{told(at(4, 2, true), trial::OutOfMemory{}), told(at(1, 2, true), ran())};
  EXPECT_LE(fits_after(problem, history, at(4, 1, true)), 0.15);
  EXPECT_LE(fits_after(problem, history, at(8, 2, false)), 0.1);
  EXPECT_GE(fits_after(problem, history, at(1, 4, true)), 0.85);
}

TEST(LearnedMemory, SaysNothingBeforeATrialRanOutOfMemoryAndWhereMemoryIsPlanned) {
  const Problem problem(script_session());
  const trial::Outcome crashed = trial::Failed{trial::FailureReason::kCrash, 1, ""};
  EXPECT_FALSE(search::LearnedMemory(problem.candidates, {told(script(8, "none", 1), crashed)}).knows());
  EXPECT_FALSE(search::LearnedMemory(problem.candidates, {told(script(8, "none", 1), ran())}).knows());
  const Problem planned(uncertain_session());
  const std::string configuration = R"({"zero_stage": 0, "micro_batch": 32, "activation_checkpointing": "none"})";
  EXPECT_FALSE(search::LearnedMemory(planned.candidates, {told(configuration, trial::OutOfMemory{})}).knows());
}

}  // namespace krigtune::learned_memory_test
