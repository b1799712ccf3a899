// Where the time of a step goes: computed by hand for synthetic times, and the trace of these.
#include "plan/step_breakdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "core/json.h"
#include "engine/shared_clock.h"
#include "engine/trainer.h"
#include "plan/build_plan.h"
#include "plan/op_traits.h"
#include "plan/trace.h"
#include "programs/bench/bench_result.h"

namespace krigtune::step_breakdown_test {

struct Timed {
  schedule::OpKind kind;
  schedule::Stream stream;
  schedule::Phase phase;
  plan::OperationTime time;
};

plan::StepBreakdown of(const std::vector<Timed>& operations) {
  plan::StepPlan plan;
  std::vector<plan::OperationTime> times;
  for (const Timed& timed : operations) {
    plan::Operation operation;
    operation.kind = timed.kind;
    operation.stream = timed.stream;
    operation.phase = timed.phase;
    plan.operations.push_back(operation);
    times.push_back(timed.time);
  }
  return plan::break_down(plan, times);
}

double sum_of(const plan::StepBreakdown& b) {
  double sum = std::accumulate(b.compute_s.begin(), b.compute_s.end(), b.waiting_s + b.idle_s);
  for (const plan::ActivityTime& activity : b.activities) sum += activity.exposed_s;
  return sum;
}

double exposed(const plan::StepBreakdown& b, plan::Activity a) {
  return b.activities[static_cast<std::size_t>(a)].exposed_s;
}
double time_of(const plan::StepBreakdown& b, plan::Activity a) {
  return b.activities[static_cast<std::size_t>(a)].time_s;
}

TEST(StepBreakdown, GivesEachPieceOfTheStepToWhatHeldItUp) {
  const plan::StepBreakdown b = of({
      // A gather for which rank 1's data are late until 2. The forward pass waits for it until 5, and runs until 9.
      {schedule::OpKind::kAllGather, schedule::Stream::kGather, schedule::Phase::kForward, {0, 0, 2, 5}},
      {schedule::OpKind::kLinearForward, schedule::Stream::kCompute, schedule::Phase::kForward, {0, 5, 5, 9}},
      // The backward pass (10 to 14) begins a second late without a reason. The reduction beside it ends 3 later.
      {schedule::OpKind::kLinearBackwardInput, schedule::Stream::kCompute, schedule::Phase::kBackward, {9, 10, 10, 14}},
      {schedule::OpKind::kReduceScatter, schedule::Stream::kReduce, schedule::Phase::kBackward, {0, 11, 12, 17}},
      {schedule::OpKind::kAdamW, schedule::Stream::kCompute, schedule::Phase::kOptimizer, {14, 17, 17, 18}},
      // Only the step waits for the last gather.
      {schedule::OpKind::kAllGather, schedule::Stream::kGather, schedule::Phase::kOptimizer, {5, 18, 18, 22}},
  });
  EXPECT_EQ(b.span_s, 22.0);
  EXPECT_EQ(b.compute_s, (std::array<double, schedule::kPhaseCount>{4.0, 0.0, 4.0, 1.0}));
  EXPECT_EQ(b.waiting_s, 2.0);
  EXPECT_EQ(b.idle_s, 1.0);
  EXPECT_EQ(exposed(b, plan::Activity::kAllGather), 3.0 + 4.0);
  EXPECT_EQ(exposed(b, plan::Activity::kReduceScatter), 3.0);
  EXPECT_EQ(time_of(b, plan::Activity::kReduceScatter), 5.0);
  EXPECT_EQ(b.exposed_comm_s(), 12.0);
  EXPECT_EQ(b.communication_s(), 12.0);
  EXPECT_DOUBLE_EQ(b.overlap_fraction(), 1.0 - 10.0 / 12.0);
  EXPECT_EQ(sum_of(b), b.span_s);
}

TEST(StepBreakdown, SharesAGapAmongCollectivesAndPutsThemBeforeCopies) {
  const plan::StepBreakdown b = of({
      {schedule::OpKind::kAllGather, schedule::Stream::kGather, schedule::Phase::kForward, {0, 0, 0, 4}},
      {schedule::OpKind::kAllReduce, schedule::Stream::kReduce, schedule::Phase::kForward, {0, 2, 2, 4}},
      {schedule::OpKind::kCopy, schedule::Stream::kCopy, schedule::Phase::kForward, {0, 0, 0, 6}},
      {schedule::OpKind::kAdamW, schedule::Stream::kHost, schedule::Phase::kOptimizer, {0, 5, 5, 7}},
      {schedule::OpKind::kLinearForward, schedule::Stream::kCompute, schedule::Phase::kForward, {0, 7, 7, 8}},
      // On the compute stream itself, so all of it is exposed.
      {schedule::OpKind::kAllReduce, schedule::Stream::kCompute, schedule::Phase::kForward, {8, 8, 8.5, 10}},
      {schedule::OpKind::kLinearForward, schedule::Stream::kCompute, schedule::Phase::kRecompute, {10, 10, 10, 12}},
  });
  EXPECT_EQ(exposed(b, plan::Activity::kAllGather), 2.0 + 1.0);
  EXPECT_EQ(exposed(b, plan::Activity::kAllReduce), 1.0 + 1.5);
  EXPECT_EQ(exposed(b, plan::Activity::kCopies), 1.0 + 0.5);
  EXPECT_EQ(exposed(b, plan::Activity::kHost), 0.5 + 1.0);
  EXPECT_EQ(b.waiting_s, 0.5);
  EXPECT_EQ(b.compute_s[1], 2.0);
  EXPECT_EQ(sum_of(b), 12.0);
  EXPECT_EQ(of({}).span_s, 0.0);
}

class TrainedBreakdown : public testing::Test {
 protected:
  static workload::Workload workload() {
    workload::Workload work;
    work.model = {.layers = 2, .hidden = 32, .heads = 2, .kv_heads = 2, .ffn_hidden = 128, .vocab = 64, .seq_len = 16};
    return work;
  }
  static workload::ClusterSpec cluster() {
    workload::ClusterSpec two;
    two.gpus_per_node = 2;
    return two;
  }
  static plan::StepPlan plan(std::int64_t stage) {
    return plan::build_plan(
        workload(), cluster(),
        {{"zero_stage", stage}, {"micro_batch", std::int64_t{2}}, {"gradient_accumulation_steps", std::int64_t{2}}});
  }

  SystemClock clock_;
};

TEST_F(TrainedBreakdown, AddsUpToTheStepOnEveryRank) {
  engine::Trainer trainer(plan(3), workload::EmulatedNetwork{"slow", 1e-4, 1e9}, clock_);
  for (int step = 0; step < 3; ++step) {
    const engine::StepResult result = trainer.step();
    EXPECT_LE(result.breakdown.span_s, result.step_time_s);
    for (const std::int64_t rank : {0, 1}) {
      const plan::StepBreakdown b = plan::break_down(trainer.plan(), trainer.operation_times(rank));
      EXPECT_LE(std::abs(sum_of(b) - b.span_s), 1e-9);
      EXPECT_LE(b.exposed_comm_s(), result.exposed_comm_s);
      EXPECT_GT(b.communication_s(), 0.0);
    }
  }
}

TEST_F(TrainedBreakdown, RecordsTimesThatHonourThePlan) {
  engine::Trainer trainer(plan(3), std::nullopt, clock_);
  trainer.step();
  for (const std::int64_t rank : {0, 1}) {
    const std::vector<plan::OperationTime> times = trainer.operation_times(rank);
    ASSERT_EQ(times.size(), trainer.plan().operations.size());
    std::array<double, schedule::kStreamCount> stream_free_s{};
    for (std::size_t i = 0; i < times.size(); ++i) {
      const plan::Operation& operation = trainer.plan().operations[i];
      EXPECT_LE(times[i].queued_s, times[i].start_s);
      EXPECT_LE(times[i].start_s, times[i].ready_s);
      EXPECT_LE(times[i].ready_s, times[i].end_s);
      double& free_s = stream_free_s[static_cast<std::size_t>(operation.stream)];
      EXPECT_GE(times[i].queued_s, free_s);
      free_s = times[i].end_s;
      for (const plan::OpId other : operation.waits) {
        EXPECT_GE(times[i].start_s, times[static_cast<std::size_t>(other)].end_s) << i << " waits for " << other;
      }
    }
  }
}

TEST_F(TrainedBreakdown, SilentStepsCommunicateNothingAndTakeNoTimeForIt) {
  const SharedClock clock;  // only the network moves it
  engine::Trainer trainer(plan(3), workload::EmulatedNetwork{"slow", 0.5, 1e9}, clock);
  const double loud_s = trainer.step().breakdown.communication_s();
  EXPECT_GE(loud_s, 0.5);
  trainer.silence(true);
  const engine::StepResult silent = trainer.step();
  EXPECT_EQ(silent.breakdown.communication_s(), 0.0);
  EXPECT_EQ(silent.step_time_s, 0.0);
  trainer.silence(false);
  EXPECT_DOUBLE_EQ(trainer.step().breakdown.communication_s(), loud_s);
}

TEST_F(TrainedBreakdown, IsTracedInChromesFormat) {
  engine::Trainer trainer(plan(2), std::nullopt, clock_);
  trainer.step();
  plan::TracedStep traced{7, {}};
  for (const std::int64_t rank : {0, 1}) {
    const std::vector<plan::OperationTime> times = trainer.operation_times(rank);
    traced.ranks.push_back(times);
  }
  const Json document = Json::parse(plan::trace_json(trainer.plan(), traced));
  std::size_t operations = 0;
  std::set<std::string> named;
  for (const Json& event : document["traceEvents"]) {
    ASSERT_TRUE(event["pid"] == 0 || event["pid"] == 1);
    if (event["ph"] == "M") {
      named.insert(event["name"].get<std::string>() + " " + event["args"]["name"].get<std::string>());
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), 0.0);
    EXPECT_GE(event["dur"].get<double>(), 0.0);
    if (event["cat"] == "wait") continue;
    ++operations;
    const plan::Operation& operation = trainer.plan().operations[event["args"]["operation"].get<std::size_t>()];
    EXPECT_EQ(event["tid"].get<int>(), static_cast<int>(operation.stream));
    EXPECT_EQ(event["name"].get<std::string>().find(plan::to_string(operation.kind)), 0U);
  }
  EXPECT_EQ(operations, 2 * trainer.plan().operations.size());
  for (const char* name : {"process_name rank 0", "process_name rank 1", "thread_name compute", "thread_name reduce"}) {
    EXPECT_EQ(named.count(name), 1U) << name;
  }
}

// The formulas: per token 6 P_mat + 12 L s h c for the model, and 14 L s h c if the backward pass of attention
// recomputes the scores.
TEST_F(TrainedBreakdown, CountsFlopsInThreeConventions) {
  bench::TrainingJob job;
  job.workload = workload();
  job.cluster = cluster();
  bench::BenchResult result;
  result.planned = bench::plan_job(job, plan(2), 1.0);
  result.trained.emplace();
  result.trained->measurement.step_time_s = 0.5;
  const workload::ModelSpec& model = job.workload.model;
  const double tokens = 2.0 * 2.0 * 2.0 * 16.0;
  const double matrices = 2.0 * 12.0 * 32.0 * 32.0 + 64.0 * 32.0;
  const double attention = 2.0 * 16.0 * 32.0 * 12.0;  // 12 L s h
  const double causal = 17.0 / 32.0;
  const double rank_seconds = 2.0 * 0.5;
  const auto near = [](double value, double expected) { EXPECT_LE(std::abs(value / expected - 1.0), 1e-12); };
  near(result.flops_per_s(), tokens * (6.0 * matrices + attention * causal) / rank_seconds);
  near(result.palm_flops_per_s(), tokens * (6.0 * matrices + attention) / rank_seconds);
  near(result.hardware_flops_per_s(), tokens * (6.0 * matrices + attention * causal * 14.0 / 12.0) / rank_seconds);
  near(workload::palm_flops(model, 8), tokens * (6.0 * matrices + attention));
}

}  // namespace krigtune::step_breakdown_test
