// Planned memory against observed memory.
#include "engine/host/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/host/arena.h"
#include "engine/trainer.h"
#include "plan/random_plans.h"
#include "small_model.h"

namespace krigtune::arena_test {

constexpr std::int64_t kHuge = 500'000'000;

TEST(Arena, SeesTheHighestChangedByte) {
  const engine::Arena arena(1000, true);
  EXPECT_EQ(arena.highest_changed_bytes(), 0);
  *arena.at(17) = std::byte{1};
  EXPECT_EQ(arena.highest_changed_bytes(), 18);
  *arena.at(999) = std::byte{0};
  EXPECT_EQ(arena.highest_changed_bytes(), 1000);
  *arena.at(1000 + 4095) = std::byte{2};  // beyond the plan
  EXPECT_EQ(arena.highest_changed_bytes(), 1000 + 4096);
  EXPECT_GE(arena.total_bytes(), 1000 + (1 << 20));
}

TEST(Arena, StartsOnAPage) {
  const engine::Arena arena(1, false);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.at(0)) % 4096, 0U);
}

std::int64_t observed_peak(const plan::StepPlan& plan) {
  const SystemClock clock;
  engine::Trainer trainer(plan, std::nullopt, clock);
  trainer.step();
  return trainer.arena_peak_bytes();
}

// Returns the end of what is persistent and of what operations access. It is less than the plan if a bucket is never
// full (DeepSpeed's buckets have the knob's size).
std::int64_t named_bytes(const plan::StepPlan& plan, schedule::Place place) {
  std::int64_t end = 0;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.place == place && buffer.persistent) end = std::max(end, buffer.offset_bytes + buffer.bytes());
  }
  for (const plan::Operation& operation : plan.operations) {
    for (const plan::Operand& operand : operation.operands) {
      const plan::Range& range = operand.range;
      const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(range.buffer)];
      const std::int64_t last = (plan.group_ranks(operation.group) - 1) * range.rank_stride_elems;
      const std::int64_t end_elems = range.begin_elems + last + range.elems;
      if (buffer.place == place)
        end = std::max(end, buffer.offset_bytes + end_elems * schedule::size_bytes(buffer.type));
    }
  }
  return end;
}

TEST(ArenaPeak, IsThePlannedPeakToTheByteForRandomModelsAndConfigurations) {
  RandomPlans draws(2);
  const SystemClock clock;
  constexpr int kConfigurations = sweep(1000);
  int unfilled = 0;
  for (int i = 0; i < kConfigurations; ++i) {
    const PlanCase drawn = draws.next_executed();
    const plan::StepPlan plan = drawn.plan();
    engine::Trainer trainer(plan, std::nullopt, clock);
    trainer.step();
    for (const schedule::Place place : {schedule::Place::kDevice, schedule::Place::kHost}) {
      const std::int64_t planned = place == schedule::Place::kDevice ? plan.arena_bytes : plan.host_arena_bytes;
      EXPECT_EQ(trainer.arena_peak_bytes(place), named_bytes(plan, place)) << drawn.text();
      const bool is_unfilled = plan.dialect == workload::Dialect::kDeepSpeed && named_bytes(plan, place) < planned;
      unfilled += is_unfilled ? 1 : 0;
      EXPECT_TRUE(is_unfilled || trainer.arena_peak_bytes(place) == planned) << drawn.text();
    }
  }
  EXPECT_LE(unfilled, kConfigurations / 50);
}

plan::StepPlan ordinary_plan() {
  return plan::build_plan(small_model(), cpu_ranks(2), configuration(2, 2, 1, 4000, kHuge, true));
}

// Makes every part of the plan see the buffer 64 bytes shorter. Kernels that compute the size from the shape still
// write all of it.
void shrink(plan::StepPlan& plan, std::size_t id) {
  plan::Buffer& buffer = plan.buffers[id];
  buffer.elems -= schedule::kAlignmentBytes / schedule::size_bytes(buffer.type);
  for (plan::Operation& operation : plan.operations) {
    for (plan::Operand& operand : operation.operands) {
      plan::Range& range = operand.range;
      if (range.buffer != static_cast<plan::BufferId>(id)) continue;
      range.elems = std::min(range.elems, buffer.elems - range.begin_elems);
    }
  }
}

// Returns a buffer after which no other buffer's bytes follow, so it is the last one of the arena.
std::size_t top_buffer(const plan::StepPlan& plan) {
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].offset_bytes + plan.buffers[b].bytes() == plan.arena_bytes) return b;
  }
  return 0;
}

TEST(ArenaPeak, ShowsABufferThatIsPlanned64BytesTooShort) {
  plan::StepPlan plan = ordinary_plan();
  shrink(plan, top_buffer(plan));
  plan.arena_bytes -= schedule::kAlignmentBytes;
#if defined(__SANITIZE_ADDRESS__)
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(observed_peak(plan), "use-after-poison");
#else
  EXPECT_EQ(observed_peak(plan), plan.arena_bytes + schedule::kAlignmentBytes);
#endif
}

TEST(ArenaPeak, OfAPlanThatLeavesItsBuffersIsNeverMeasured) {
  plan::StepPlan plan = ordinary_plan();
  plan.buffers[top_buffer(plan)].elems -= 16;
  EXPECT_THROW(observed_peak(plan), std::logic_error);
}

TEST(PoisonedArena, EndsTheProgramWhereABufferIsPlanned64BytesTooShort) {
#if defined(__SANITIZE_ADDRESS__)
  plan::StepPlan plan = ordinary_plan();
  const auto logits = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                   [](const plan::Buffer& buffer) { return buffer.term == schedule::Term::kLogits; });
  ASSERT_NE(logits, plan.buffers.end());
  shrink(plan, static_cast<std::size_t>(logits - plan.buffers.begin()));
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(observed_peak(plan), "use-after-poison");
#else
  GTEST_SKIP() << "needs the preset asan-ubsan: only AddressSanitizer sees bytes between buffers";
#endif
}

TEST(PoisonedArena, IsOpenWhereABufferLivesAndNowhereElse) {
#if defined(__SANITIZE_ADDRESS__)
  plan::StepPlan plan;
  plan.buffers = {
      {"kept", schedule::Term::kParameters, schedule::DType::kFp32, 16, true, schedule::Place::kDevice, 0},
      {"first", schedule::Term::kWorkspace, schedule::DType::kFp32, 10, false, schedule::Place::kDevice, 64},
      {"second", schedule::Term::kWorkspace, schedule::DType::kFp32, 16, false, schedule::Place::kDevice,
       64}};  // in the place of the first one
  plan.arena_bytes = 128;
  plan::Operation uses_first;
  uses_first.operands = {{{1, 0, 10, 0}, plan::Access::kWrite}, {{1, 0, 5, 0}, plan::Access::kRead}};
  plan::Operation uses_second;
  uses_second.operands = {{{2, 0, 16, 0}, plan::Access::kWrite}};
  plan.operations = {uses_first, uses_first, uses_second};
  const engine::RankMemory memory(plan, true);
  const engine::Arena& arena = memory.device;
  engine::BufferLifetimes lifetimes(plan, memory);
  const auto open_bytes = [&](std::int64_t from) {
    std::int64_t at = from;
    while (at < arena.total_bytes() && __asan_address_is_poisoned(arena.at(at)) == 0) ++at;
    return at - from;
  };
  for (int step = 0; step < 2; ++step) {
    lifetimes.begin_step();
    EXPECT_EQ(open_bytes(0), 64);
    lifetimes.begin_use({1});
    EXPECT_EQ(open_bytes(64), 40);
    lifetimes.end_use({1});
    EXPECT_EQ(open_bytes(64), 40);  // one use is still to come
    lifetimes.begin_use({1});
    lifetimes.end_use({1});
    EXPECT_EQ(open_bytes(0), 64);
    lifetimes.begin_use({2});
    EXPECT_EQ(open_bytes(0), 128);
    lifetimes.end_use({2});
    EXPECT_EQ(open_bytes(0), 64);
  }
#else
  GTEST_SKIP() << "needs the preset asan-ubsan: only AddressSanitizer sees bytes between buffers";
#endif
}

}  // namespace krigtune::arena_test
