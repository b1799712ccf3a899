// One model, many schedules: ZeRO stage, buckets and overlap may change time and memory, but never the training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/trainer.h"
#include "small_model.h"

namespace krigtune::equality_test {

constexpr int kSteps = 5;
constexpr std::int64_t kTiny = 1;       // every tensor a bucket of its own
constexpr std::int64_t kMedium = 3000;  // a few tensors each
constexpr std::int64_t kHuge = 500'000'000;

std::vector<float> train(std::int64_t ranks, const space::Configuration& configuration) {
  const SystemClock clock;
  engine::Trainer trainer(plan::build_plan(small_model(), cpu_ranks(ranks), configuration), std::nullopt, clock);
  for (int step = 0; step < kSteps; ++step) trainer.step();
  return trainer.parameters();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// || a - b || / || a - start ||: relative to what training has changed.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& start) {
  double difference = 0.0;
  double change = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    change += std::pow(static_cast<double>(a[i]) - static_cast<double>(start[i]), 2);
  }
  return std::sqrt(difference / change);
}

class TrainingOnRanks : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, TrainingOnRanks, testing::Values(1, 2, 4));

TEST_P(TrainingOnRanks, GivesTheSameBitsInEveryStageAndWithEveryBucketAndOverlap) {
  const std::vector<float> expected = train(GetParam(), configuration(0, 2, 1, kHuge, kHuge, false));
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    for (const std::int64_t reduce_bucket : {kTiny, kMedium, kHuge}) {
      for (const std::int64_t gather_bucket : {kTiny, kMedium, kHuge}) {
        if ((stage == 0 || stage == 3) && gather_bucket != kHuge) continue;  // it has no effect there
        for (const bool overlap : {false, true}) {
          const space::Configuration now = configuration(stage, 2, 1, reduce_bucket, gather_bucket, overlap);
          EXPECT_TRUE(same_bits(train(GetParam(), now), expected)) << now.text();
        }
      }
    }
  }
}

TEST_P(TrainingOnRanks, WithMicroStepsAgreesWithinTheStagesThatSumInTheSameOrder) {
  const auto run = [&](std::int64_t stage, std::int64_t bucket, bool overlap) {
    return train(GetParam(), configuration(stage, 2, 3, bucket, bucket, overlap));
  };
  const std::vector<float> micro_steps_first = run(0, kHuge, false);
  const std::vector<float> ranks_first = run(2, kHuge, false);
  for (const bool overlap : {false, true}) {
    for (const std::int64_t bucket : {kTiny, kMedium}) {
      EXPECT_TRUE(same_bits(run(0, bucket, overlap), micro_steps_first));
      EXPECT_TRUE(same_bits(run(1, bucket, overlap), micro_steps_first));
      EXPECT_TRUE(same_bits(run(2, bucket, overlap), ranks_first));
      EXPECT_TRUE(same_bits(run(3, bucket, overlap), ranks_first));
    }
  }
  // Sums of a handful of floats in another order differ by about 1e-7 of their terms. AdamW divides by the gradient's
  // own size, so a gradient element that nearly cancels can turn that into a visible part of its step. A tolerance of
  // 1e-3 of the whole change covers this; a forgotten micro-step or rank would change it by the order of 1.
  const SystemClock clock;
  const std::vector<float> start = engine::Trainer(plan::build_plan(small_model(), cpu_ranks(GetParam()),
                                                                    configuration(0, 2, 3, kHuge, kHuge, false)),
                                                   std::nullopt, clock)
                                       .parameters();
  EXPECT_LE(relative_difference(micro_steps_first, ranks_first, start), 1e-3);
}

// The same global batch is split into ranks and micro-steps in different ways.
TEST(Training, DependsOnTheGlobalBatchAndNotOnHowItIsCut) {
  const std::vector<float> one_rank = train(1, configuration(0, 8, 1, kHuge, kHuge, false));
  const SystemClock clock;
  const std::vector<float> start =
      engine::Trainer(plan::build_plan(small_model(), cpu_ranks(1), configuration(0, 8, 1, kHuge, kHuge, false)),
                      std::nullopt, clock)
          .parameters();
  EXPECT_LE(relative_difference(one_rank, train(1, configuration(0, 2, 4, kHuge, kHuge, false)), start), 1e-3);
  EXPECT_LE(relative_difference(one_rank, train(2, configuration(2, 2, 2, kMedium, kHuge, true)), start), 1e-3);
  EXPECT_LE(relative_difference(one_rank, train(4, configuration(3, 2, 1, kMedium, kHuge, true)), start), 1e-3);
}

TEST(Training, IsTheSameOverAnEmulatedNetwork) {
  const SystemClock clock;
  const plan::StepPlan plan =
      plan::build_plan(small_model(), cpu_ranks(2), configuration(3, 1, 2, kMedium, kHuge, true));
  engine::Trainer local(plan, std::nullopt, clock);
  engine::Trainer emulated(plan, workload::EmulatedNetwork{"test", 1e-4, 1e9}, clock);
  for (int step = 0; step < 3; ++step) {
    local.step();
    emulated.step();
  }
  EXPECT_EQ(local.parameters_fnv1a64(), emulated.parameters_fnv1a64());
  EXPECT_EQ(local.parameters_fnv1a64().size(), 16U);
}

TEST(Training, LowersTheLoss) {
  const SystemClock clock;
  engine::TrainingOptions options;
  options.learning_rate = 1e-2;
  engine::Trainer trainer(plan::build_plan(small_model(1), cpu_ranks(2), configuration(1, 8, 1, kHuge, kHuge, true)),
                          std::nullopt, clock, options);
  const double first = trainer.step().loss;
  // An untrained model gives each of the 67 tokens about the same probability.
  EXPECT_LE(std::abs(first - std::log(67.0)), 0.1);
  double last = 0.0;
  for (int step = 0; step < 99; ++step) last = trainer.step().loss;
  // The best possible is the entropy of the corpus, about 0.75 nats.
  EXPECT_LE(last, 0.6 * first);
  EXPECT_GE(last, 0.5);
}

TEST(Training, LowersTheLossWithDefaultOptions) {
  const SystemClock clock;
  engine::Trainer trainer(plan::build_plan(small_model(1), cpu_ranks(1), configuration(0, 8, 1, kHuge, kHuge, false)),
                          std::nullopt, clock);
  const double first = trainer.step().loss;
  double last = 0.0;
  for (int step = 0; step < 59; ++step) last = trainer.step().loss;
  EXPECT_LE(last, first - 0.1);
}

}  // namespace krigtune::equality_test
