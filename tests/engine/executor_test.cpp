// The executor on small plans made by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

#include "engine/shared_clock.h"
#include "engine/trainer.h"

namespace krigtune::executor_test {

// One tensor of `elems` elements, all `initial`; persistent buffers parameters (0), loss (1), gradients (2), m (3), v
// (4) and a transient one (5), laid out one behind the other.
StepPlan small_plan(std::int64_t ranks, std::int64_t elems, double initial) {
  StepPlan plan;
  plan.ranks = ranks;
  plan.tensors = {{"p", elems, elems, 0, initial, 0.0, Split::kNone, {}, elems}};
  plan.padded_parameter_elems = elems;
  plan.parameters = {{0, 0, false, {0, 0, elems, 0}}};
  plan.loss = 1;
  plan.buffers = {{"parameters", Term::kParameters, DType::kFp32, elems, true, Place::kDevice, -1},
                  {"loss", Term::kInputs, DType::kFp32, 1, true, Place::kDevice, -1},
                  {"gradients", Term::kGradients, DType::kFp32, elems, true, Place::kDevice, -1},
                  {"m", Term::kOptimizerState, DType::kFp32, elems, true, Place::kDevice, -1},
                  {"v", Term::kOptimizerState, DType::kFp32, elems, true, Place::kDevice, -1},
                  {"work", Term::kWorkspace, DType::kFp32, elems, false, Place::kDevice, -1}};
  for (Buffer& buffer : plan.buffers) {
    buffer.offset_bytes = plan.arena_bytes;
    plan.arena_bytes += (buffer.bytes() + 63) / 64 * 64;
  }
  return plan;
}

OpId add(StepPlan& plan, OpKind kind, Stream stream, std::vector<Operand> operands, std::vector<OpId> waits = {}) {
  Operation operation;
  operation.kind = kind;
  operation.stream = stream;
  operation.operands = std::move(operands);
  operation.waits = std::move(waits);
  plan.operations.push_back(operation);
  return static_cast<OpId>(plan.operations.size()) - 1;
}

Operand whole(BufferId buffer, std::int64_t elems, Access access) { return {{buffer, 0, elems, 0}, access}; }

TEST(Executor, HonoursWaitsBetweenStreams) {
  constexpr std::int64_t kElems = 4096;
  StepPlan plan = small_plan(2, kElems, 1.0);
  // compute: work = p; reduce: work = sum over ranks = 2 p; compute: p += work; gather: p += work. So p becomes 5 p,
  // and something else if any of the waits is not honoured.
  const OpId copied = add(plan, OpKind::kAccumulate, Stream::kCompute,
                          {whole(0, kElems, Access::kRead), whole(5, kElems, Access::kWrite)});
  const OpId reduced = add(plan, OpKind::kAllReduce, Stream::kReduce, {whole(5, kElems, Access::kReadWrite)}, {copied});
  const OpId added = add(plan, OpKind::kAdd, Stream::kCompute,
                         {whole(0, kElems, Access::kReadWrite), whole(5, kElems, Access::kRead)}, {reduced});
  add(plan, OpKind::kAdd, Stream::kGather, {whole(0, kElems, Access::kReadWrite), whole(5, kElems, Access::kRead)},
      {added});
  const SystemClock clock;
  Trainer trainer(plan, std::nullopt, clock);
  double expected = 1.0;
  for (int step = 0; step < 6; ++step) {
    trainer.step();
    expected *= 5.0;
    for (const float value : trainer.parameters()) ASSERT_EQ(value, static_cast<float>(expected));
  }
}

TEST(Executor, MakesParametersThatDependOnTheSeedAlone) {
  const SystemClock clock;
  StepPlan whole_plan = small_plan(1, 96, 0.5);
  whole_plan.tensors = {{"p", 90, 96, 0, 0.5, 2.0, Split::kNone, {}, 90}};
  StepPlan sharded = small_plan(3, 32, 0.5);
  sharded.tensors = whole_plan.tensors;
  sharded.parameters.front().sharded = true;
  const auto one = Trainer(whole_plan, std::nullopt, clock).parameters();
  EXPECT_EQ(one.size(), 90U);
  EXPECT_EQ(Trainer(sharded, std::nullopt, clock).parameters(), one);
  EXPECT_NE(Trainer(whole_plan, std::nullopt, clock, {.seed = 2}).parameters(), one);
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
  StepPlan plan = small_plan(3, 48, 1.0);
  plan.buffers[5].type = DType::kInt32;
  Operation load;
  load.kind = OpKind::kLoadBatch;
  load.shape = {.batch = 1, .seq = 16, .outer = 64};
  load.operands = {{{5, 0, 16, 0}, Access::kWrite}, {{5, 16, 16, 0}, Access::kWrite}};
  plan.operations.push_back(load);
  Operation look_up;
  look_up.kind = OpKind::kEmbeddingForward;
  look_up.shape = {.rows = 16, .inner = 1, .outer = 48};
  // A table of 48 rows for 64 tokens.
  look_up.operands = {{{5, 0, 16, 0}, Access::kRead}, {{0, 0, 48, 0}, Access::kRead}, {{4, 0, 16, 0}, Access::kWrite}};
  plan.operations.push_back(look_up);
  const OpId reduced = add(plan, OpKind::kAllReduce, Stream::kReduce, {whole(2, 48, Access::kReadWrite)}, {1});
  add(plan, OpKind::kAdd, Stream::kCompute, {whole(0, 48, Access::kReadWrite), whole(2, 48, Access::kRead)}, {reduced});
  const SystemClock clock;
  Trainer trainer(plan, std::nullopt, clock);
  const auto steps = [&] {
    for (int step = 0; step < 50; ++step) trainer.step();  // 16 of 64 tokens are not in the table
  };
  EXPECT_THROW(steps(), std::runtime_error);
  EXPECT_THROW(trainer.step(), std::runtime_error);
}

TEST(Executor, RefusesPlansThatLeaveTheirBuffers) {
  const SystemClock clock;
  const auto refused = [&](const std::function<void(StepPlan&)>& mutate) {
    StepPlan plan = small_plan(2, 64, 1.0);
    add(plan, OpKind::kZero, Stream::kCompute, {whole(5, 64, Access::kWrite)});
    mutate(plan);
    EXPECT_THROW(Trainer(plan, std::nullopt, clock), std::logic_error);
  };
  EXPECT_NO_THROW(Trainer(small_plan(2, 64, 1.0), std::nullopt, clock));
  refused([](StepPlan& plan) { plan.buffers[5].elems -= 16; });
  refused([](StepPlan& plan) { plan.arena_bytes -= 64; });
  refused([](StepPlan& plan) { plan.buffers[5].offset_bytes += 4; });
  refused([](StepPlan& plan) { plan.buffers[5].offset_bytes = -1; });
  refused([](StepPlan& plan) { plan.operations[0].operands[0].range.rank_stride_elems = 16; });
  refused([](StepPlan& plan) { plan.operations[0].operands[0].range.buffer = 6; });
  refused([](StepPlan& plan) { plan.operations[0].waits = {0}; });
  refused([](StepPlan& plan) { plan.operations[0].operands.clear(); });
  refused([](StepPlan& plan) { plan.buffers[0].persistent = false; });
  refused(
      [](StepPlan& plan) { add(plan, OpKind::kReduceScatter, Stream::kReduce, {whole(5, 63, Access::kReadWrite)}); });
}

TEST(Executor, CountsAStalledComputeStreamAsExposedCommunication) {
  constexpr std::int64_t kElems = 64;
  StepPlan plan = small_plan(2, kElems, 1.0);
  const OpId reduced = add(plan, OpKind::kAllReduce, Stream::kReduce, {whole(2, kElems, Access::kReadWrite)});
  plan.operations[0].wire_bytes = 100;
  add(plan, OpKind::kAdd, Stream::kCompute, {whole(0, kElems, Access::kReadWrite), whole(2, kElems, Access::kRead)},
      {reduced});
  // A collective on the compute stream itself is all exposed.
  add(plan, OpKind::kAllReduce, Stream::kCompute, {whole(3, kElems, Access::kReadWrite)});
  plan.operations[2].wire_bytes = 300;
  const SharedClock clock;
  Trainer trainer(plan, EmulatedNetwork{"test", 1.0, 100.0}, clock);
  const StepResult result = trainer.step();
  EXPECT_DOUBLE_EQ(result.step_time_s, 2.0 + 4.0);
  EXPECT_DOUBLE_EQ(result.breakdown.activities[0].time_s, 2.0 + 4.0);
  EXPECT_EQ(result.breakdown.communication_s(), 2.0 + 4.0);
  // The first wait may have been over before the compute stream looked.
  EXPECT_GE(result.exposed_comm_s, 4.0);
  EXPECT_LE(result.exposed_comm_s, 6.0);
}

}  // namespace krigtune::executor_test
