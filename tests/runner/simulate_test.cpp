#include "runner/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "cost/time/step_cost.h"

namespace krigtune::simulate_test {

constexpr const char* kWorkload = R"({"model": {"preset": "gpt2-1.5b"}, "precision": "bf16", "train_batch_size": 64,
                                      "framework": "deepspeed"})";
constexpr const char* kCluster = R"({"gpus_per_node": 8, "gpu": "a100-80gb"})";
constexpr const char* kSpace = R"({"zero_stage": [1, 2, 3], "micro_batch": [1, 2, 4, 8],
                                   "activation_checkpointing": ["none", "full"], "overlap_comm": [true, false]})";

runner::SimulateJob job(const runner::SimulateSpec& spec) {
  const workload::Workload workload = workload::read_workload(parse_json(kWorkload, "w"), "w", "");
  const workload::ClusterSpec cluster = workload::read_cluster(parse_json(kCluster, "c"), "c", "");
  space::JobFacts facts;
  facts.ranks = cluster.ranks();
  facts.train_batch_size = workload.train_batch_size;
  const space::Space space(space::read_parameters(parse_json(kSpace, "s"), "s", ""), facts);
  return {workload, cluster, {}, space, spec};
}

// Only what is requested explicitly.
runner::SimulateSpec quiet() {
  runner::SimulateSpec spec;
  spec.noise = spec.systematic_error = spec.memory_error = 0.0;
  spec.straggler_probability = spec.unforeseen_fraction = spec.crash_probability = 0.0;
  return spec;
}

std::vector<space::Configuration> all(const space::Space& space) {
  std::vector<space::Configuration> configurations;
  space.for_each(
      [&](const space::Configuration& configuration) { return configurations.push_back(configuration), true; });
  return configurations;
}

std::optional<double> step_time(const trial::Outcome& outcome) {
  const auto* measured = std::get_if<trial::Measured>(&outcome);
  return measured == nullptr ? std::nullopt : std::optional(measured->metrics.at("step_time_s"));
}

// Returns the step times of the configurations that run, in the space's order.
std::vector<double> step_times(const runner::SimulateSpec& spec) {
  const runner::SimulateJob simulated = job(spec);
  const auto runner = runner::make_simulate_runner(simulated);
  std::vector<double> times;
  for (const space::Configuration& configuration : all(simulated.space)) {
    if (const auto time = step_time(runner->run(configuration, ""))) times.push_back(*time);
  }
  return times;
}

int inversions(const std::vector<double>& a, const std::vector<double>& b) {
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) count += (a[i] < a[j]) != (b[i] < b[j]) ? 1 : 0;
  }
  return count;
}

TEST(Simulate, WithoutErrorsIsWhatThePredictionSaysAndItsRatesFollow) {
  const runner::SimulateJob simulated = job(quiet());
  const cost::StepCostModel predicted(simulated.workload, simulated.cluster);
  const auto runner = runner::make_simulate_runner(simulated);
  const space::Configuration configuration = all(simulated.space).front();
  const trial::Outcome outcome = runner->run(configuration, "");
  const auto& metrics = std::get<trial::Measured>(outcome).metrics;
  const double step_s = predicted(configuration).step_time_s;
  EXPECT_DOUBLE_EQ(metrics.at("step_time_s"), step_s);
  EXPECT_DOUBLE_EQ(metrics.at("samples_per_s"), 64.0 / step_s);
  EXPECT_DOUBLE_EQ(metrics.at("tokens_per_s"), 64.0 * 1024.0 / step_s);
  EXPECT_DOUBLE_EQ(metrics.at("flops_per_s"), workload::model_flops(simulated.workload.model, 64) / step_s / 8.0);
  EXPECT_LE(metrics.at("exposed_comm_s"), step_s);
  EXPECT_GT(std::get<trial::Measured>(outcome).peak_memory->count, 0);
}

TEST(Simulate, NoiseHasTheStatedSpreadFromTrialToTrial) {
  runner::SimulateSpec spec = quiet();
  spec.noise = 0.1;
  const runner::SimulateJob simulated = job(spec);
  const auto runner = runner::make_simulate_runner(simulated);
  const space::Configuration configuration = all(simulated.space).front();
  constexpr int kTrials = 2000;
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kTrials; ++i) {
    const double log_time = std::log(*step_time(runner->run(configuration, "")));
    sum += log_time;
    squares += log_time * log_time;
  }
  const double mean = sum / kTrials;
  const double stddev = std::sqrt(squares / kTrials - mean * mean);
  // Four standard errors: s / sqrt(2 n) and s / sqrt(n).
  EXPECT_LE(std::abs(stddev - 0.1), 4.0 * 0.1 / std::sqrt(2.0 * kTrials));
  const double predicted = cost::StepCostModel(simulated.workload, simulated.cluster)(configuration).step_time_s;
  EXPECT_LE(std::abs(mean - std::log(predicted)), 4.0 * 0.1 / std::sqrt(1.0 * kTrials));
}

TEST(Simulate, HiddenFactorsChangeTheRankingAndAreTheSeeds) {
  runner::SimulateSpec spec = quiet();
  const std::vector<double> predicted = step_times(spec);
  spec.systematic_error = 0.3;
  const std::vector<double> hidden = step_times(spec);
  ASSERT_EQ(predicted.size(), hidden.size());
  EXPECT_GT(inversions(predicted, hidden), 0);
  EXPECT_EQ(hidden, step_times(spec));
  spec.seed = 2;
  EXPECT_NE(hidden, step_times(spec));
}

TEST(Simulate, AnOutcomeDependsOnHowOftenItWasMeasuredAndOnNothingElse) {
  runner::SimulateSpec spec;
  const runner::SimulateJob simulated = job(spec);
  const std::vector<space::Configuration> configurations = all(simulated.space);
  const auto one = runner::make_simulate_runner(simulated);
  const auto other = runner::make_simulate_runner(simulated);
  std::vector<std::optional<double>> forwards;
  std::vector<std::optional<double>> backwards;
  for (const space::Configuration& configuration : configurations)
    forwards.push_back(step_time(one->run(configuration, "")));
  for (auto at = configurations.rbegin(); at != configurations.rend(); ++at) {
    backwards.push_back(step_time(other->run(*at, "")));
  }
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
  std::vector<std::optional<double>> again;
  for (const space::Configuration& configuration : configurations)
    again.push_back(step_time(one->run(configuration, "")));
  EXPECT_NE(forwards, again);
}

TEST(Simulate, AnotherDayIsTheSameMachineWithOtherNoiseAndAnotherSpeed) {
  runner::SimulateSpec spec = quiet();
  spec.systematic_error = 0.3;
  const std::vector<double> yesterday = step_times(spec);
  spec.today = {1.8, 9};
  const std::vector<double> today = step_times(spec);
  ASSERT_EQ(yesterday.size(), today.size());
  for (std::size_t i = 0; i < today.size(); ++i) EXPECT_LE(std::abs(today[i] / yesterday[i] - 1.8), 1e-12);
  spec.noise = 0.01;
  const std::vector<double> noisy = step_times(spec);
  spec.today.seed = 10;
  EXPECT_NE(noisy, step_times(spec));
}

TEST(Simulate, EndsATrialEarlyOnlyWhereAskedTo) {
  runner::SimulateSpec spec = quiet();
  const runner::SimulateJob whole = job(spec);
  const space::Configuration configuration = all(whole.space).front();
  const trial::Rival rival{"samples_per_s", true, 1e6, 0.0};
  EXPECT_TRUE(
      std::holds_alternative<trial::Measured>(runner::make_simulate_runner(whole)->run(configuration, "", rival)));
  spec.early_end = true;
  const auto runner = runner::make_simulate_runner(job(spec));
  EXPECT_TRUE(std::holds_alternative<trial::Bounded>(runner->run(configuration, "", rival)));
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(runner->run(configuration, "")));
}

TEST(Simulate, StragglersSlowDownByTheStatedFactor) {
  runner::SimulateSpec spec = quiet();
  spec.straggler_probability = 0.5;
  spec.straggler_slowdown = 2.0;
  const runner::SimulateJob simulated = job(spec);
  const auto runner = runner::make_simulate_runner(simulated);
  const space::Configuration configuration = all(simulated.space).front();
  const double predicted = cost::StepCostModel(simulated.workload, simulated.cluster)(configuration).step_time_s;
  int slow = 0;
  for (int i = 0; i < 200; ++i) {
    const double ratio = *step_time(runner->run(configuration, "")) / predicted;
    EXPECT_TRUE(std::abs(ratio - 1.0) <= 1e-12 || std::abs(ratio - 2.0) <= 1e-12) << ratio;
    slow += ratio > 1.5 ? 1 : 0;
  }
  EXPECT_GT(slow, 60);
  EXPECT_LT(slow, 140);
}

TEST(Simulate, APartOfTheSpaceFailsWhateverIsTriedAndCrashesComeByChance) {
  runner::SimulateSpec spec = quiet();
  spec.unforeseen_fraction = 0.25;
  const runner::SimulateJob simulated = job(spec);
  const auto runner = runner::make_simulate_runner(simulated);
  int failed = 0;
  const std::vector<space::Configuration> configurations = all(simulated.space);
  for (const space::Configuration& configuration : configurations) {
    const trial::Outcome first = runner->run(configuration, "");
    const auto* failure = std::get_if<trial::Failed>(&first);
    if (failure == nullptr) continue;
    ++failed;
    EXPECT_EQ(failure->reason, trial::FailureReason::kCrash);
    EXPECT_EQ(failure->last_lines, "simulated: this part of the space fails");
    EXPECT_TRUE(std::holds_alternative<trial::Failed>(runner->run(configuration, "")));
  }
  const double share = static_cast<double>(failed) / static_cast<double>(configurations.size());
  EXPECT_LE(std::abs(share - 0.25), 0.1);

  spec = quiet();
  spec.crash_probability = 0.5;
  const auto crashing = runner::make_simulate_runner(job(spec));
  int crashes = 0;
  for (int i = 0; i < 200; ++i) {
    crashes += std::holds_alternative<trial::Failed>(crashing->run(configurations.front(), "")) ? 1 : 0;
  }
  EXPECT_GT(crashes, 60);
  EXPECT_LT(crashes, 140);
}

TEST(Simulate, WhatNeedsMoreThanTheDeviceHasRunsOutOfMemory) {
  runner::SimulateJob simulated = job(quiet());
  simulated.memory.limit_gib = 4.0;
  const trial::Outcome outcome = runner::make_simulate_runner(simulated)->run(all(simulated.space).front(), "");
  const auto* memory = std::get_if<trial::OutOfMemory>(&outcome);
  ASSERT_NE(memory, nullptr);
  EXPECT_FALSE(memory->predicted);
  EXPECT_GT(memory->requested->count, 4LL << 30);
}

TEST(Simulate, AConfigurationThatCannotBeIsInvalid) {
  const auto runner = runner::make_simulate_runner(job(quiet()));
  const trial::Outcome outcome = runner->run({{"micro_batch", std::int64_t{3}}}, "");
  ASSERT_TRUE(std::holds_alternative<trial::Failed>(outcome));
  EXPECT_EQ(std::get<trial::Failed>(outcome).reason, trial::FailureReason::kInvalid);
}

}  // namespace krigtune::simulate_test
