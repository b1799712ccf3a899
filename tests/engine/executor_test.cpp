// The executor on small handmade plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "engine/host/processes.h"
#include "engine/host/rank_executor.h"
#include "engine/host/thread_communicator.h"
#include "engine/shared_clock.h"
#include "engine/trainer.h"

namespace krigtune::executor_test {

// One tensor of `elems` elements, all `initial`; persistent buffers for parameters (0), loss (1), gradients (2), m (3)
// and v (4), and a transient one (5), laid out one after the other.
plan::StepPlan small_plan(std::int64_t ranks, std::int64_t elems, double initial) {
  plan::StepPlan plan;
  plan.ranks = ranks;
  plan.tensors = {{"p", elems, elems, 0, initial, 0.0, schedule::Split::kNone, {}, elems}};
  plan.padded_parameter_elems = elems;
  plan.parameters = {{0, 0, false, {0, 0, elems, 0}}};
  plan.loss = 1;
  plan.buffers = {
      {"parameters", schedule::Term::kParameters, schedule::DType::kFp32, elems, true, schedule::Place::kDevice, -1},
      {"loss", schedule::Term::kInputs, schedule::DType::kFp32, 1, true, schedule::Place::kDevice, -1},
      {"gradients", schedule::Term::kGradients, schedule::DType::kFp32, elems, true, schedule::Place::kDevice, -1},
      {"m", schedule::Term::kOptimizerState, schedule::DType::kFp32, elems, true, schedule::Place::kDevice, -1},
      {"v", schedule::Term::kOptimizerState, schedule::DType::kFp32, elems, true, schedule::Place::kDevice, -1},
      {"work", schedule::Term::kWorkspace, schedule::DType::kFp32, elems, false, schedule::Place::kDevice, -1}};
  for (plan::Buffer& buffer : plan.buffers) {
    buffer.offset_bytes = plan.arena_bytes;
    plan.arena_bytes += (buffer.bytes() + 63) / 64 * 64;
  }
  return plan;
}

plan::OpId add(plan::StepPlan& plan, schedule::OpKind kind, schedule::Stream stream,
               std::vector<plan::Operand> operands, std::vector<plan::OpId> waits = {}) {
  plan::Operation operation;
  operation.kind = kind;
  operation.stream = stream;
  operation.operands = std::move(operands);
  operation.waits = std::move(waits);
  plan.operations.push_back(operation);
  return static_cast<plan::OpId>(plan.operations.size()) - 1;
}

plan::Operand whole(plan::BufferId buffer, std::int64_t elems, plan::Access access) {
  return {{buffer, 0, elems, 0}, access};
}

TEST(Executor, HonoursWaitsBetweenStreams) {
  constexpr std::int64_t kElems = 4096;
  plan::StepPlan plan = small_plan(2, kElems, 1.0);
  // compute: work = p; reduce: work = sum over ranks = 2 p; compute: p += work; gather: p += work. So p becomes 5 p,
  // and something else if any of the waits is ignored.
  const plan::OpId copied = add(plan, schedule::OpKind::kAccumulate, schedule::Stream::kCompute,
                                {whole(0, kElems, plan::Access::kRead), whole(5, kElems, plan::Access::kWrite)});
  const plan::OpId reduced = add(plan, schedule::OpKind::kAllReduce, schedule::Stream::kReduce,
                                 {whole(5, kElems, plan::Access::kReadWrite)}, {copied});
  const plan::OpId added =
      add(plan, schedule::OpKind::kAdd, schedule::Stream::kCompute,
          {whole(0, kElems, plan::Access::kReadWrite), whole(5, kElems, plan::Access::kRead)}, {reduced});
  add(plan, schedule::OpKind::kAdd, schedule::Stream::kGather,
      {whole(0, kElems, plan::Access::kReadWrite), whole(5, kElems, plan::Access::kRead)}, {added});
  const SystemClock clock;
  engine::Trainer trainer(plan, std::nullopt, clock);
  double expected = 1.0;
  for (int step = 0; step < 6; ++step) {
    trainer.step();
    expected *= 5.0;
    for (const float value : trainer.parameters()) ASSERT_EQ(value, static_cast<float>(expected));
  }
}

TEST(Executor, MakesParametersThatDependOnTheSeedAlone) {
  const SystemClock clock;
  plan::StepPlan whole_plan = small_plan(1, 96, 0.5);
  whole_plan.tensors = {{"p", 90, 96, 0, 0.5, 2.0, schedule::Split::kNone, {}, 90}};
  plan::StepPlan sharded = small_plan(3, 32, 0.5);
  sharded.tensors = whole_plan.tensors;
  sharded.parameters.front().sharded = true;
  const auto one = engine::Trainer(whole_plan, std::nullopt, clock).parameters();
  EXPECT_EQ(one.size(), 90U);
  EXPECT_EQ(engine::Trainer(sharded, std::nullopt, clock).parameters(), one);
  EXPECT_NE(engine::Trainer(whole_plan, std::nullopt, clock, {.seed = 2}).parameters(), one);
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : one) {
    sum += static_cast<double>(value) / 90.0;
    squares += (static_cast<double>(value) - 0.5) * (static_cast<double>(value) - 0.5) / 90.0;
  }
  EXPECT_LE(std::abs(sum - 0.5), 5.0 * 2.0 / std::sqrt(90.0));
  EXPECT_LE(std::abs(squares - 4.0), 5.0 * 4.0 * std::sqrt(2.0 / 90.0));
}

TEST(Executor, EndsTheStepOfAllRanksWhenOneFails) {
  plan::StepPlan plan = small_plan(3, 48, 1.0);
  plan.buffers[5].type = schedule::DType::kInt32;
  plan::Operation load;
  load.kind = schedule::OpKind::kLoadBatch;
  load.shape = {.batch = 1, .seq = 16, .outer = 64};
  load.operands = {{{5, 0, 16, 0}, plan::Access::kWrite}, {{5, 16, 16, 0}, plan::Access::kWrite}};
  plan.operations.push_back(load);
  plan::Operation look_up;
  look_up.kind = schedule::OpKind::kEmbeddingForward;
  look_up.shape = {.rows = 16, .inner = 1, .outer = 48};
  // A table of 48 rows for 64 tokens.
  look_up.operands = {{{5, 0, 16, 0}, plan::Access::kRead},
                      {{0, 0, 48, 0}, plan::Access::kRead},
                      {{4, 0, 16, 0}, plan::Access::kWrite}};
  plan.operations.push_back(look_up);
  const plan::OpId reduced =
      add(plan, schedule::OpKind::kAllReduce, schedule::Stream::kReduce, {whole(2, 48, plan::Access::kReadWrite)}, {1});
  add(plan, schedule::OpKind::kAdd, schedule::Stream::kCompute,
      {whole(0, 48, plan::Access::kReadWrite), whole(2, 48, plan::Access::kRead)}, {reduced});
  const SystemClock clock;
  engine::Trainer trainer(plan, std::nullopt, clock);
  const auto steps = [&] {
    for (int step = 0; step < 50; ++step) trainer.step();  // 16 of 64 tokens are not in the table
  };
  EXPECT_THROW(steps(), std::runtime_error);
  EXPECT_THROW(trainer.step(), std::runtime_error);
}

TEST(Executor, RefusesPlansThatLeaveTheirBuffers) {
  const SystemClock clock;
  const auto refused = [&](const std::function<void(plan::StepPlan&)>& mutate) {
    plan::StepPlan plan = small_plan(2, 64, 1.0);
    add(plan, schedule::OpKind::kZero, schedule::Stream::kCompute, {whole(5, 64, plan::Access::kWrite)});
    mutate(plan);
    EXPECT_THROW(engine::Trainer(plan, std::nullopt, clock), std::logic_error);
  };
  EXPECT_NO_THROW(engine::Trainer(small_plan(2, 64, 1.0), std::nullopt, clock));
  refused([](plan::StepPlan& plan) { plan.buffers[5].elems -= 16; });
  refused([](plan::StepPlan& plan) { plan.arena_bytes -= 64; });
  refused([](plan::StepPlan& plan) { plan.buffers[5].offset_bytes += 4; });
  refused([](plan::StepPlan& plan) { plan.buffers[5].offset_bytes = -1; });
  refused([](plan::StepPlan& plan) { plan.operations[0].operands[0].range.rank_stride_elems = 16; });
  refused([](plan::StepPlan& plan) { plan.operations[0].operands[0].range.buffer = 6; });
  refused([](plan::StepPlan& plan) { plan.operations[0].waits = {0}; });
  refused([](plan::StepPlan& plan) { plan.operations[0].operands.clear(); });
  refused([](plan::StepPlan& plan) { plan.buffers[0].persistent = false; });
  refused([](plan::StepPlan& plan) {
    add(plan, schedule::OpKind::kReduceScatter, schedule::Stream::kReduce, {whole(5, 63, plan::Access::kReadWrite)});
  });
}

TEST(Executor, CountsAStalledComputeStreamAsExposedCommunication) {
  constexpr std::int64_t kElems = 64;
  plan::StepPlan plan = small_plan(2, kElems, 1.0);
  const plan::OpId reduced =
      add(plan, schedule::OpKind::kAllReduce, schedule::Stream::kReduce, {whole(2, kElems, plan::Access::kReadWrite)});
  plan.operations[0].wire_bytes = 100;
  add(plan, schedule::OpKind::kAdd, schedule::Stream::kCompute,
      {whole(0, kElems, plan::Access::kReadWrite), whole(2, kElems, plan::Access::kRead)}, {reduced});
  // A collective on the compute stream itself is completely exposed.
  add(plan, schedule::OpKind::kAllReduce, schedule::Stream::kCompute, {whole(3, kElems, plan::Access::kReadWrite)});
  plan.operations[2].wire_bytes = 300;
  const SharedClock clock;
  engine::Trainer trainer(plan, workload::EmulatedNetwork{"test", 1.0, 100.0}, clock);
  const engine::StepResult result = trainer.step();
  EXPECT_DOUBLE_EQ(result.step_time_s, 2.0 + 4.0);
  EXPECT_DOUBLE_EQ(result.breakdown.activities[0].time_s, 2.0 + 4.0);
  EXPECT_EQ(result.breakdown.communication_s(), 2.0 + 4.0);
  // The first wait may be over before the compute stream checks it.
  EXPECT_GE(result.exposed_comm_s, 4.0);
  EXPECT_LE(result.exposed_comm_s, 6.0);
  // The clock stands still while kernels run.
  EXPECT_EQ(result.slowest_rank_kernels_s, 0.0);
}

TEST(Executor, TheMedianOfTheRanksKernelsIsTheLowerOfTwoInTheMiddle) {
  engine::StepResult result;
  engine::set_rank_kernels({3.0, 1.0, 4.0, 2.0}, result);
  EXPECT_EQ(result.median_rank_kernels_s, 2.0);
  EXPECT_EQ(result.slowest_rank_kernels_s, 4.0);
  engine::set_rank_kernels({5.0}, result);
  EXPECT_EQ(result.median_rank_kernels_s, 5.0);
}

// A rank fails on its way to a collective. The others wait for it there, and must not wait forever.
TEST(Workers, FreeThoseThatWaitForOneThatFailsAndThrowWhatItThrew) {
  const SharedClock clock;
  engine::ThreadGroup group(2, clock);
  const auto waits = group.member(0);
  const auto fails = group.member(1);
  engine::Workers workers({[&] { waits->all_reduce({}); }, [] { throw std::bad_alloc(); }}, [&] { group.abort(); });
  EXPECT_THROW(workers.run_round(), std::bad_alloc);
}

}  // namespace krigtune::executor_test
