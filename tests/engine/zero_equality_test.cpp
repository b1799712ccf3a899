// Where parameters, gradients and optimizer state live, and when they travel, never changes the training: not by one
// bit as long as sums are formed in the same order, which holds with one micro-step.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "krigtune/engine/trainer.h"
#include "small_model.h"

namespace krigtune {
namespace {

constexpr int kSteps = 3;
constexpr std::int64_t kTiny = 1;
constexpr std::int64_t kMedium = 3000;
constexpr std::int64_t kHuge = 500'000'000;

using Settings = std::vector<std::pair<std::string, Value>>;

Configuration with(Configuration configuration, const Settings& settings) {
  for (const auto& [name, value] : settings) configuration.set(name, value);
  return configuration;
}

std::vector<float> train(const Workload& workload, std::int64_t ranks, const Configuration& configuration,
                         double first_loss_scale = 0.0, int steps = kSteps) {
  const SystemClock clock;
  StepPlan plan = build_plan(workload, cpu_ranks(ranks), configuration);
  if (first_loss_scale > 0.0) plan.first_loss_scale = first_loss_scale;
  TrainingOptions options;
  options.observe_arena = false;
  Trainer trainer(std::move(plan), std::nullopt, clock, options);
  for (int step = 0; step < steps; ++step) trainer.step();
  return trainer.parameters();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Every stage with buckets and overlap, every knob of stage 3, and offload.
std::vector<Configuration> placements() {
  std::vector<Configuration> all;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (const std::int64_t bucket : {kTiny, kMedium, kHuge}) {
      for (const bool overlap : {false, true}) {
        if (bucket == kHuge && overlap) continue;
        all.push_back(configuration(stage, 2, 1, bucket, bucket, overlap));
      }
    }
    const Configuration offloading =
        with(configuration(stage, 2, 1, kMedium, kMedium, true), {{"offload_optimizer", "cpu"}});
    all.push_back(offloading);
    if (stage < 3) continue;
    all.push_back(with(offloading, {{"offload_param", "cpu"}}));
    all.push_back(with(offloading, {{"offload_param", "cpu"}, {"stage3_param_persistence_threshold", std::int64_t{72}}}));
    all.push_back(with(configuration(3, 2, 1, kMedium, kMedium, true), {{"offload_param", "cpu"}}));
  }
  const Configuration stage3 = configuration(3, 2, 1, kMedium, kMedium, true);
  for (const std::int64_t elems : {std::int64_t{72}, std::int64_t{1000}, kHuge}) {
    all.push_back(with(stage3, {{"stage3_param_persistence_threshold", elems}}));
    all.push_back(with(stage3, {{"stage3_prefetch_bucket_size", elems}}));
    all.push_back(with(stage3, {{"stage3_prefetch_bucket_size", kHuge}, {"stage3_max_live_parameters", elems}}));
    all.push_back(with(stage3, {{"stage3_prefetch_bucket_size", kMedium}, {"stage3_max_reuse_distance", elems}}));
  }
  return all;
}

struct Training {
  Precision precision = Precision::kFp32;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  double gradient_clipping = 0.0;
};

Workload workload_of(const Training& training, Dialect dialect) {
  Workload workload = small_model();
  workload.precision = training.precision;
  workload.optimizer = training.optimizer;
  workload.gradient_clipping = training.gradient_clipping;
  workload.dialect = dialect;
  return workload;
}

void expect_same_everywhere(const Training& training, std::int64_t ranks) {
  const Configuration plain = configuration(0, 2, 1, kHuge, kHuge, false);
  const std::vector<float> expected = train(workload_of(training, Dialect::kCanonical), ranks, plain);
  ASSERT_TRUE(std::isfinite(expected.front()));
  for (const Dialect dialect : {Dialect::kCanonical, Dialect::kDeepSpeed}) {
    for (const Configuration& now : placements()) {
      EXPECT_TRUE(same_bits(train(workload_of(training, dialect), ranks, now), expected))
          << ranks << " ranks, deepspeed " << (dialect == Dialect::kDeepSpeed) << ", precision "
          << static_cast<int>(training.precision) << ", clipping " << training.gradient_clipping << ": " << now.text();
    }
  }
}

class Placement : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Placement, testing::Values(1, 2, 3, 4));

TEST_P(Placement, ChangesNoBitInFp32) { expect_same_everywhere({}, GetParam()); }

TEST_P(Placement, ChangesNoBitInBf16) { expect_same_everywhere({.precision = Precision::kBf16}, GetParam()); }

TEST_P(Placement, ChangesNoBitInFp16WithLossScaling) {
  expect_same_everywhere({.precision = Precision::kFp16}, GetParam());
}

TEST_P(Placement, ChangesNoBitOfClippedGradients) {
  expect_same_everywhere({.gradient_clipping = 0.1}, GetParam());
}

TEST_P(Placement, ChangesNoBitOfSgdWithMomentum) {
  expect_same_everywhere({.precision = Precision::kBf16, .optimizer = OptimizerKind::kSgd, .gradient_clipping = 0.5},
                         GetParam());
}

}  // namespace
}  // namespace krigtune
