#include "plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/plan_fixtures.h"
#include "plan/random_plans.h"

namespace krigtune::memory_test {

std::vector<std::vector<std::size_t>> users_of_buffers(const plan::StepPlan& plan) {
  std::vector<std::vector<std::size_t>> users(plan.buffers.size());
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    for (const plan::Operand& operand : plan.operations[i].operands) {
      users[static_cast<std::size_t>(operand.range.buffer)].push_back(i);
    }
  }
  return users;
}

TEST(LayOut, SharesBytesOnlyBetweenBuffersThatAreNeverInUseTogether) {
  for_each_plan([](const plan::StepPlan& plan) {
    const Reachability order(plan);
    const auto users = users_of_buffers(plan);
    const auto all_before = [&](std::size_t a, std::size_t b) {
      return std::all_of(users[a].begin(), users[a].end(), [&](std::size_t i) {
        return std::all_of(users[b].begin(), users[b].end(), [&](std::size_t j) { return order.before(i, j); });
      });
    };
    for (std::size_t a = 0; a < plan.buffers.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const plan::Buffer& x = plan.buffers[a];
        const plan::Buffer& y = plan.buffers[b];
        const bool overlap = x.offset_bytes < y.offset_bytes + y.bytes() && y.offset_bytes < x.offset_bytes + x.bytes();
        if (!overlap) continue;
        ASSERT_FALSE(x.persistent || y.persistent) << x.name << ", " << y.name;
        ASSERT_TRUE(all_before(a, b) || all_before(b, a)) << x.name << ", " << y.name;
      }
    }
  });
}

TEST(LayOut, AlignsEveryBufferAndEndsAtTheHighestOne) {
  for_each_plan([](const plan::StepPlan& plan) {
    std::int64_t end_bytes = 0;
    for (const plan::Buffer& buffer : plan.buffers) {
      EXPECT_GE(buffer.offset_bytes, 0) << buffer.name;
      EXPECT_EQ(buffer.offset_bytes % schedule::kAlignmentBytes, 0) << buffer.name;
      end_bytes = std::max(end_bytes, buffer.offset_bytes + buffer.bytes());
    }
    EXPECT_EQ(plan.arena_bytes, end_bytes);
  });
}

// The lower bound is the largest sum of bytes that are known to be in use together. It is not always reached: more
// bytes may be in use than at the examined moments, or the greedy order may not be the best.
TEST(LayOut, NeedsAtMostThreePercentMoreThanTheLowerBoundButForFewPlans) {
  const auto excess = [](const plan::PlaceReport& report) {
    EXPECT_GE(report.fragmentation_bytes, 0);
    return static_cast<double>(report.fragmentation_bytes) /
           static_cast<double>(std::max<std::int64_t>(report.lower_bound_bytes, 1));
  };
  for_each_plan([&](const plan::StepPlan& plan) { EXPECT_LE(excess(plan::explain(plan)), 0.03); });
  RandomPlans draws(3);
  constexpr int kPlans = sweep(1000);
  int above = 0;
  for (int i = 0; i < kPlans; ++i) {
    const PlanCase drawn = draws.next();
    const plan::MemoryReport report = plan::explain(drawn.plan());
    const double worst = std::max(excess(report), excess(report.host));
    above += worst > 0.03 ? 1 : 0;
    EXPECT_LE(worst, 0.30) << drawn.text();
  }
  EXPECT_LE(above, kPlans / 10);
}

// ZeRO paper, section 5, for fp32 training: 4 Psi for parameters, 4 Psi for gradients, 8 Psi for AdamW's moments, each
// divided by N from the stage on that shards it.
TEST(Explain, GivesTheModelStatesOfTheZeroPaper) {
  for_each_plan([](const plan::StepPlan& plan) {
    const plan::MemoryReport report = plan::explain(plan);
    const auto bytes = [&](schedule::Term term) { return report.term_bytes[static_cast<std::size_t>(term)]; };
    const std::int64_t psi = plan.padded_parameter_elems * 4;
    const auto shared_from = [&](std::int64_t stage) { return plan.zero_stage >= stage ? plan.ranks : 1; };
    EXPECT_EQ(bytes(schedule::Term::kParameters), psi / shared_from(3));
    EXPECT_EQ(bytes(schedule::Term::kGradients), psi / shared_from(2));
    EXPECT_EQ(bytes(schedule::Term::kOptimizerState), 2 * psi / shared_from(1));
    EXPECT_EQ(bytes(schedule::Term::kGatheredParameters) > 0, plan.zero_stage == 3);
    EXPECT_TRUE(plan.zero_stage >= 2 || bytes(schedule::Term::kReduceBuckets) == 0);
    EXPECT_EQ(std::accumulate(report.term_bytes.begin(), report.term_bytes.end(), report.fragmentation_bytes),
              plan.arena_bytes);
  });
}

// Stage 0: all activations and the logits are alive at the head. Stage 3 with one bucket: all gradients of the
// micro-step are alive when those of the last block have been written.
TEST(Explain, NamesThePhaseThatPeaks) {
  const plan::StepPlan head = plan::build_plan(small_workload(), cpu_ranks(2), knobs(0, 8, 2, 5'000, false));
  EXPECT_EQ(plan::explain(head).peak_at, "forward (linear_forward), micro-step 0");
  const plan::StepPlan bucket = plan::build_plan(small_workload(), cpu_ranks(4), knobs(2, 1, 1, 10'000'000, false));
  EXPECT_EQ(plan::explain(bucket).peak_at, "backward of block 0");
}

TEST(Memory, ShrinksWithTheStageAndGrowsWithTheMicroBatch) {
  const auto peak = [](std::int64_t stage, std::int64_t micro_batch) {
    return plan::build_plan(small_workload(), cpu_ranks(4), knobs(stage, micro_batch, 1, 5'000, false)).arena_bytes;
  };
  for (const std::int64_t stage : {1, 2, 3}) EXPECT_LT(peak(stage, 1), peak(stage - 1, 1)) << stage;
  for (const std::int64_t stage : {0, 1, 2, 3}) EXPECT_LT(peak(stage, 1), peak(stage, 4)) << stage;
}

TEST(ExactVerdict, FitsUpToTheLastByte) {
  EXPECT_EQ(plan::exact_verdict({100}, {100}).verdict, plan::Verdict::kFits);
  EXPECT_EQ(plan::exact_verdict({101}, {100}).verdict, plan::Verdict::kTooLarge);
  EXPECT_EQ(plan::exact_verdict({101}, {100}).probability_fits, 0.0);
}

}  // namespace krigtune::memory_test
