// The places of parameters, gradients and optimizer state, and the times at which they travel, never change the
// training. They do not change a single bit as long as sums are formed in the same order, which is true with one
// micro-step.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/trainer.h"
#include "small_model.h"

namespace krigtune::zero_equality_test {

constexpr int kSteps = 2;
constexpr std::int64_t kTiny = 1;
constexpr std::int64_t kMedium = 3000;
constexpr std::int64_t kHuge = 500'000'000;

using Settings = std::vector<std::pair<std::string, space::Value>>;

space::Configuration with(space::Configuration configuration, const Settings& settings) {
  for (const auto& [name, value] : settings) configuration.set(name, value);
  return configuration;
}

engine::TrainingOptions unobserved() {
  engine::TrainingOptions options;
  options.observe_arena = false;
  return options;
}

std::vector<float> train(const workload::Workload& workload, std::int64_t ranks,
                         const space::Configuration& configuration, std::int64_t tensor_rank = 0) {
  const SystemClock clock;
  engine::Trainer trainer(plan::build_plan(workload, cpu_ranks(ranks), configuration), std::nullopt, clock,
                          unobserved());
  for (int step = 0; step < kSteps; ++step) trainer.step();
  return trainer.parameters(tensor_rank);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Every stage with buckets and overlap, every knob of stage 3, and offload.
std::vector<space::Configuration> placements() {
  std::vector<space::Configuration> all;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (const std::int64_t bucket : {kTiny, kMedium, kHuge}) {
      for (const bool overlap : {false, true}) {
        if (bucket == kHuge && overlap) continue;
        all.push_back(configuration(stage, 2, 1, bucket, bucket, overlap));
      }
    }
    const space::Configuration offloading =
        with(configuration(stage, 2, 1, kMedium, kMedium, true), {{"offload_optimizer", "cpu"}});
    all.push_back(offloading);
    if (stage < 3) continue;
    all.push_back(with(offloading, {{"offload_param", "cpu"}}));
    all.push_back(
        with(offloading, {{"offload_param", "cpu"}, {"stage3_param_persistence_threshold", std::int64_t{72}}}));
    all.push_back(with(configuration(3, 2, 1, kMedium, kMedium, true), {{"offload_param", "cpu"}}));
  }
  const space::Configuration stage3 = configuration(3, 2, 1, kMedium, kMedium, true);
  for (const std::int64_t elems : {std::int64_t{72}, std::int64_t{1000}, kHuge}) {
    all.push_back(with(stage3, {{"stage3_param_persistence_threshold", elems}}));
    all.push_back(with(stage3, {{"stage3_prefetch_bucket_size", elems}}));
    all.push_back(with(stage3, {{"stage3_prefetch_bucket_size", kHuge}, {"stage3_max_live_parameters", elems}}));
    all.push_back(with(stage3, {{"stage3_prefetch_bucket_size", kMedium}, {"stage3_max_reuse_distance", elems}}));
  }
  return all;
}

struct Training {
  workload::Precision precision = workload::Precision::kFp32;
  workload::OptimizerKind optimizer = workload::OptimizerKind::kAdamW;
  double gradient_clipping = 0.0;
  std::int64_t adapter_rank = 0;
};

workload::Workload workload_of(const Training& training, workload::Dialect dialect) {
  workload::Workload workload = small_model();
  workload.precision = training.precision;
  workload.optimizer = training.optimizer;
  workload.gradient_clipping = training.gradient_clipping;
  workload.training.lora.rank = training.adapter_rank;
  workload.dialect = dialect;
  return workload;
}

void expect_same_everywhere(const Training& training, std::int64_t ranks) {
  const space::Configuration plain = configuration(0, 2, 1, kHuge, kHuge, false);
  const std::vector<float> expected = train(workload_of(training, workload::Dialect::kCanonical), ranks, plain);
  ASSERT_TRUE(std::isfinite(expected.front()));
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    for (const space::Configuration& now : placements()) {
      EXPECT_TRUE(same_bits(train(workload_of(training, dialect), ranks, now), expected))
          << ranks << " ranks, deepspeed " << (dialect == workload::Dialect::kDeepSpeed) << ", precision "
          << static_cast<int>(training.precision) << ", clipping " << training.gradient_clipping << ": " << now.text();
    }
  }
}

class Placement : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Placement, testing::Values(1, 2, 3, 4));

TEST_P(Placement, ChangesNoBitInFp32) { expect_same_everywhere({}, GetParam()); }

TEST_P(Placement, ChangesNoBitInBf16) { expect_same_everywhere({.precision = workload::Precision::kBf16}, GetParam()); }

TEST_P(Placement, ChangesNoBitInFp16WithLossScaling) {
  expect_same_everywhere({.precision = workload::Precision::kFp16}, GetParam());
}

TEST_P(Placement, ChangesNoBitOfClippedGradients) { expect_same_everywhere({.gradient_clipping = 0.1}, GetParam()); }

TEST_P(Placement, ChangesNoBitOfSgdWithMomentum) {
  expect_same_everywhere(
      {.precision = workload::Precision::kBf16, .optimizer = workload::OptimizerKind::kSgd, .gradient_clipping = 0.5},
      GetParam());
}

// Frozen weights are gathered at stage 3, and nothing else is done to them.
TEST_P(Placement, ChangesNoBitOfAdapters) {
  expect_same_everywhere({.precision = workload::Precision::kBf16, .gradient_clipping = 0.1, .adapter_rank = 3},
                         GetParam());
}

// || a - b || / || a ||
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / size);
}

// Stages 0 and 1 sum first over micro-steps and then over ranks, stages 2 and 3 the other way round.
TEST(PlacementOverMicroSteps, ChangesNoBitAmongTheStagesThatSumInTheSameOrder) {
  for (const workload::Precision precision : {workload::Precision::kFp32, workload::Precision::kBf16}) {
    const Training training{.precision = precision, .gradient_clipping = 0.1};
    std::vector<std::vector<float>> by_order;
    for (const std::int64_t first_stage : {0, 2}) {
      const std::vector<float> expected = train(workload_of(training, workload::Dialect::kCanonical), 3,
                                                configuration(first_stage, 2, 3, kHuge, kHuge, false));
      by_order.push_back(expected);
      for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
        for (const std::int64_t stage : {first_stage, first_stage + 1}) {
          const space::Configuration now =
              with(configuration(stage, 2, 3, kMedium, kMedium, true), {{"stage3_prefetch_bucket_size", kMedium}});
          const space::Configuration offloaded = with(now, {{"offload_optimizer", "cpu"}, {"offload_param", "cpu"}});
          EXPECT_TRUE(same_bits(train(workload_of(training, dialect), 3, now), expected)) << now.text();
          EXPECT_TRUE(same_bits(train(workload_of(training, dialect), 3, offloaded), expected)) << offloaded.text();
        }
      }
    }
    // Two steps of 1e-3 change the parameters by a few per cent of their size. A lost micro-step, which would reverse
    // the signs of AdamW's first steps, would change a good part of that. Rounding of sums in fp32 and in bf16 (2^-9)
    // changes much less.
    EXPECT_LE(relative_difference(by_order[0], by_order[1]), precision == workload::Precision::kFp32 ? 1e-6 : 1e-3);
  }
}

TEST(PlacementWithinTensorParallelRanks, ChangesNoBit) {
  workload::Workload workload =
      workload_of({.precision = workload::Precision::kBf16, .gradient_clipping = 0.1}, workload::Dialect::kCanonical);
  workload.model.heads = workload.model.kv_heads = 2;
  workload.model.seq_len = 10;
  for (const bool sequence_parallel : {false, true}) {
    const Settings parallel = {{"tensor_parallel", std::int64_t{2}}, {"sequence_parallel", sequence_parallel}};
    for (const std::int64_t tensor_rank : {0, 1}) {
      workload.dialect = workload::Dialect::kCanonical;
      const std::vector<float> expected =
          train(workload, 4, with(configuration(0, 2, 1, kHuge, kHuge, false), parallel), tensor_rank);
      for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
        workload.dialect = dialect;
        for (const std::int64_t stage : {0, 1, 2, 3}) {
          const space::Configuration now = with(configuration(stage, 2, 1, kMedium, kMedium, true), parallel);
          EXPECT_TRUE(same_bits(train(workload, 4, now, tensor_rank), expected)) << now.text();
          const space::Configuration offloaded = with(now, {{"offload_optimizer", "cpu"}});
          EXPECT_TRUE(same_bits(train(workload, 4, offloaded, tensor_rank), expected)) << offloaded.text();
        }
      }
    }
  }
}

// Shows an element of the control block after the step in the place of the loss, because plans are data.
plan::StepPlan showing(plan::StepPlan plan, schedule::ControlElement element) {
  plan::Operation show;
  show.kind = schedule::OpKind::kCopy;
  show.operands = {{{plan.control, element, 1, 0}, plan::Access::kRead}, {{plan.loss, 0, 1, 0}, plan::Access::kWrite}};
  for (plan::OpId op = 0; op < static_cast<plan::OpId>(plan.operations.size()); ++op) show.waits.push_back(op);
  plan.operations.push_back(show);
  return plan;
}

// Values that tensor-parallel ranks share count once; values that only one rank has count in full.
TEST(GradientNorm, IsTheSameWithAndWithoutTensorParallelRanks) {
  workload::Workload workload = workload_of({.gradient_clipping = 1.0}, workload::Dialect::kCanonical);
  workload.model.heads = workload.model.kv_heads = 2;
  workload.model.seq_len = 10;
  const SystemClock clock;
  const auto norm = [&](std::int64_t ranks, const Settings& settings) {
    const space::Configuration now = with(configuration(2, 2, 1, kMedium, kMedium, true), settings);
    plan::StepPlan plan = showing(plan::build_plan(workload, cpu_ranks(ranks), now), schedule::kNormElement);
    return engine::Trainer(std::move(plan), std::nullopt, clock, unobserved()).step().loss;
  };
  const double expected = norm(2, {});
  EXPECT_GT(expected, 0.0);
  for (const bool sequence_parallel : {false, true}) {
    const double now = norm(4, {{"tensor_parallel", std::int64_t{2}}, {"sequence_parallel", sequence_parallel}});
    EXPECT_LE(std::abs(now / expected - 1.0), 1e-5);
  }
}

TEST(LossScaling, SkipsAnOverflowAndHalvesTheScaleInEveryStage) {
  constexpr double kFirst = 0x1p40;  // with this scale, no gradient of this model fits into fp16
  const SystemClock clock;
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    const workload::Workload workload = workload_of({.precision = workload::Precision::kFp16}, dialect);
    for (const std::int64_t stage : {0, 1, 2, 3}) {
      plan::StepPlan plan =
          showing(plan::build_plan(workload, cpu_ranks(2), configuration(stage, 2, 1, kMedium, kMedium, true)),
                  schedule::kLossScaleElement);
      plan.first_loss_scale = kFirst;
      engine::Trainer trainer(plan, std::nullopt, clock, unobserved());
      const std::vector<float> start = trainer.parameters();
      double scale = kFirst;
      int overflows = 0;
      for (double next = trainer.step().loss; next < scale; next = trainer.step().loss) {
        ASSERT_EQ(next, scale / 2.0);
        ASSERT_TRUE(same_bits(trainer.parameters(), start)) << "stage " << stage;
        scale = next;
        ++overflows;
      }
      EXPECT_FALSE(same_bits(trainer.parameters(), start));
      EXPECT_GE(overflows, 10);
      EXPECT_GT(scale, 1.0);
    }
  }
}

// With SGD, the first step is learning_rate * gradient.
TEST(Clipping, LimitsTheNormOfWhatAStepChanges) {
  const SystemClock clock;
  const space::Configuration of_stage3 = configuration(3, 2, 1, kMedium, kMedium, true);
  const auto first_change = [&](double clipping) {
    const workload::Workload workload = workload_of(
        {.optimizer = workload::OptimizerKind::kSgd, .gradient_clipping = clipping}, workload::Dialect::kCanonical);
    engine::TrainingOptions options = unobserved();
    options.learning_rate = 1.0;
    options.weight_decay = 0.0;
    engine::Trainer trainer(showing(plan::build_plan(workload, cpu_ranks(3), of_stage3), schedule::kNormElement),
                            std::nullopt, clock, options);
    const std::vector<float> start = trainer.parameters();
    const double norm = trainer.step().loss;
    const std::vector<float> end = trainer.parameters();
    double squares = 0.0;
    for (std::size_t i = 0; i < end.size(); ++i) {
      squares += std::pow(static_cast<double>(end[i]) - static_cast<double>(start[i]), 2);
    }
    return std::pair(norm, std::sqrt(squares));
  };
  const auto [norm, unclipped_change] = first_change(1e6);
  EXPECT_LE(std::abs(unclipped_change / norm - 1.0), 1e-4);  // differences of fp32 numbers around 1
  const auto [same_norm, change] = first_change(norm / 4.0);
  EXPECT_EQ(same_norm, norm);
  EXPECT_LE(std::abs(change / (norm / 4.0) - 1.0), 1e-4);
}

}  // namespace krigtune::zero_equality_test
