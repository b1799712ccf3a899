#include "cost/time/virtual_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/json.h"
#include "cost/time/recorder.h"
#include "plan/build_plan.h"

namespace krigtune::virtual_clock_test {

using Behind = std::array<std::int32_t, schedule::kStreamCount>;

cost::TimedOperation kernel(double seconds, double issue_s = 0.0, const Behind& behind = {}) {
  cost::TimedOperation operation;
  operation.seconds = seconds;
  operation.issue_s = issue_s;
  operation.behind = behind;
  return operation;
}

cost::TimedOperation collective(schedule::Stream stream, double seconds, const Behind& behind = {}) {
  cost::TimedOperation operation = kernel(seconds, 0.0, behind);
  operation.stream = stream;
  operation.collective = true;
  return operation;
}

TEST(RunClock, OverlapsStreamsAndHonoursWaits) {
  const std::vector<cost::TimedOperation> operations = {kernel(1.0, 0.0, {}),
                                                        collective(schedule::Stream::kReduce, 3.0, {1}),
                                                        kernel(2.0, 0.0, {}), kernel(1.0, 0.0, {0, 0, 1})};
  const auto times = cost::run_clock(operations, {.overlap_slowdown = 1.0});
  EXPECT_DOUBLE_EQ(times[1].start_s, 1.0);
  EXPECT_DOUBLE_EQ(times[2].end_s, 3.0);
  EXPECT_DOUBLE_EQ(times[3].start_s, 4.0);
  EXPECT_DOUBLE_EQ(times[3].end_s, 5.0);
}

// One second of kernels runs beside a collective of 0.75 s at half the speed: 0.75 s do 0.5 s of work, the remainder
// takes 0.5 s.
TEST(RunClock, StretchesKernelsWhileACollectiveRuns) {
  const std::vector<cost::TimedOperation> operations = {collective(schedule::Stream::kReduce, 0.75),
                                                        kernel(1.0, 0.0, {})};
  const auto times = cost::run_clock(operations, {.overlap_slowdown = 1.5});
  EXPECT_DOUBLE_EQ(times[1].end_s, 1.25);
}

TEST(RunClock, CarriesOneCollectiveAtATime) {
  const std::vector<cost::TimedOperation> operations = {collective(schedule::Stream::kReduce, 2.0),
                                                        collective(schedule::Stream::kGather, 1.0)};
  const auto times = cost::run_clock(operations, {.overlap_slowdown = 1.0});
  EXPECT_DOUBLE_EQ(times[1].ready_s, 2.0);
  EXPECT_DOUBLE_EQ(times[1].end_s, 3.0);
}

TEST(RunClock, StartsNoKernelBeforeItWasIssued) {
  const std::vector<cost::TimedOperation> operations = {kernel(0.5, 1.0, {}), kernel(0.5, 1.0, {})};
  const auto times = cost::run_clock(operations, {.overlap_slowdown = 1.0});
  EXPECT_DOUBLE_EQ(times[1].start_s, 2.0);
}

TEST(RunClock, LetsTwoLanesShareTheirLinksOrHaveTheirOwn) {
  std::vector<cost::TimedOperation> operations = {collective(schedule::Stream::kReduce, 1.0),
                                                  collective(schedule::Stream::kGather, 2.0)};
  operations[1].lane = 1;
  const auto apart = cost::run_clock(operations, {});
  EXPECT_DOUBLE_EQ(apart[0].end_s, 1.0);
  EXPECT_DOUBLE_EQ(apart[1].end_s, 2.0);
  const auto shared = cost::run_clock(operations, {.lanes_share = true});
  EXPECT_DOUBLE_EQ(shared[0].end_s, 2.0);
  EXPECT_DOUBLE_EQ(shared[1].end_s, 3.0);
}

TEST(RunClock, LetsWhatComputesShareTheCores) {
  std::vector<cost::TimedOperation> operations = {kernel(1.0), kernel(2.0)};
  operations[1].stream = schedule::Stream::kHost;
  EXPECT_DOUBLE_EQ(cost::run_clock(operations, {.cores = 2.0})[1].end_s, 2.0);
  const auto times = cost::run_clock(operations, {.cores = 1.0});
  EXPECT_DOUBLE_EQ(times[0].end_s, 2.0);
  EXPECT_DOUBLE_EQ(times[1].end_s, 3.0);
}

// A second of core time beside a kernel on one core takes two seconds; the link's part continues meanwhile.
TEST(RunClock, EndsACollectiveWhenLinkAndCoresAreDone) {
  std::vector<cost::TimedOperation> operations = {collective(schedule::Stream::kReduce, 0.5), kernel(1.0)};
  operations[0].core_s = 1.0;
  const cost::ClockRules one_core{.cores = 1.0, .sleeping_links = true};
  EXPECT_DOUBLE_EQ(cost::run_clock(operations, one_core)[0].end_s, 2.0);
  EXPECT_DOUBLE_EQ(cost::run_clock(operations, one_core)[1].end_s, 2.0);
  operations[0].seconds = 3.0;
  EXPECT_DOUBLE_EQ(cost::run_clock(operations, one_core)[0].end_s, 3.0);
}

TEST(RunClock, SlowsKernelsOnlyWhileASleepingLinksCollectiveTakesACore) {
  std::vector<cost::TimedOperation> operations = {collective(schedule::Stream::kReduce, 9.0), kernel(2.0)};
  operations[0].core_s = 1.0;
  // One second does half of the work; the remainder takes a second and a half.
  EXPECT_DOUBLE_EQ(cost::run_clock(operations, {.overlap_slowdown = 2.0, .sleeping_links = true})[1].end_s, 2.5);
}

TEST(RunClock, WakesWhoHasWaitedLate) {
  const std::vector<cost::TimedOperation> operations = {kernel(1.0), collective(schedule::Stream::kReduce, 1.0, {1}),
                                                        kernel(1.0, 0.0, {0, 0, 1}), kernel(1.0)};
  const auto times = cost::run_clock(operations, {.wake_s = 0.25});
  EXPECT_DOUBLE_EQ(times[1].start_s, 1.25);
  EXPECT_DOUBLE_EQ(times[2].start_s, 2.5);
  EXPECT_DOUBLE_EQ(times[3].start_s, 3.5);
}

TEST(RunClock, TakesKernelsInARowAsOneForWhatTheyTakeOneByOne) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  for (int i = 0; i < 100; ++i) {
    std::vector<cost::TimedOperation> one_by_one;
    cost::StepSegment segment;
    for (int n = 0; n < 8; ++n) {
      one_by_one.push_back(kernel(uniform(random), uniform(random)));
      segment.append(cost::single(one_by_one.back().seconds, one_by_one.back().issue_s));
    }
    cost::TimedOperation together = kernel(segment.work_s, segment.first_s);
    together.issue_rest_s = segment.issue_s - segment.first_s;
    together.least_s = segment.least_s;
    EXPECT_NEAR(cost::run_clock({&together, 1}, {})[0].end_s, cost::run_clock(one_by_one, {}).back().end_s, 1e-12);
    const cost::StepSegment twice = cost::repeated(segment, 2.0);
    const std::vector<cost::TimedOperation> once = one_by_one;
    one_by_one.insert(one_by_one.end(), once.begin(), once.end());
    EXPECT_NEAR(twice.least_s, cost::run_clock(one_by_one, {}).back().end_s, 1e-12);
  }
}

TEST(RunClock, SaysWhatWentOnWhileNoKernelRan) {
  std::vector<cost::TimedOperation> operations = {kernel(1.0, 0.5), collective(schedule::Stream::kReduce, 2.0, {1}),
                                                  kernel(1.0), kernel(1.0, 0.0, {2, 0, 1})};
  operations[2].stream = schedule::Stream::kCopy;
  operations[2].behind = {1, 0, 1};
  operations[3].behind = {1, 0, 1, 1};
  const std::vector<plan::OpId> marks = {0};
  const auto totals = cost::run_clock_totals(operations, {}, marks);
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_DOUBLE_EQ(totals[0].span_s, 1.5);
  EXPECT_DOUBLE_EQ(totals[1].span_s, 5.5);
  EXPECT_DOUBLE_EQ(totals[1].kernels_s, 2.0);
  EXPECT_DOUBLE_EQ(totals[1].exposed_comm_s, 2.0);
  EXPECT_DOUBLE_EQ(totals[1].exposed_copies_s, 1.0);
  EXPECT_DOUBLE_EQ(totals[1].idle_s, 0.5);
}

plan::StepPlan small_plan() {
  workload::Workload workload;
  workload.model = {
      .layers = 3, .hidden = 64, .heads = 4, .kv_heads = 4, .ffn_hidden = 256, .vocab = 128, .seq_len = 32};
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = 2;
  return plan::build_plan(workload, cluster,
                          {{"zero_stage", std::int64_t{3}},
                           {"gradient_accumulation_steps", std::int64_t{2}},
                           {"offload_optimizer", std::string("cpu")}});
}

cost::Machine small_machine() {
  cost::Machine machine;
  for (workload::ClassRate& rate : machine.rates) rate = {1e-6, 1e12, 0.0, 1e11};
  machine.network.bytes_per_s = 1e9;
  return machine;
}

TEST(PredictedStep, UsesNoMoreMemoryThanIsLaidOut) {
  const plan::StepPlan plan = small_plan();
  const cost::PredictedStep step = cost::predict_step(plan, small_machine());
  std::array<std::int64_t, schedule::kPlaceCount> most{};
  double last_s = 0.0;
  for (const plan::MemoryPoint& point : step.memory) {
    EXPECT_GE(point.at_s, last_s);
    last_s = point.at_s;
    for (std::size_t place = 0; place < most.size(); ++place) most[place] = std::max(most[place], point.bytes[place]);
  }
  EXPECT_LE(most[0], plan.arena_bytes);
  EXPECT_GE(static_cast<double>(most[0]), 0.8 * static_cast<double>(plan.arena_bytes));
  EXPECT_LE(most[1], plan.host_arena_bytes);
  EXPECT_EQ(step.memory.front().bytes, step.memory.back().bytes);
}

TEST(PredictedStep, IsTracedWithCountersOfMemory) {
  const plan::StepPlan plan = small_plan();
  const cost::PredictedStep step = cost::predict_step(plan, small_machine());
  const Json document = Json::parse(plan::trace_json(plan, cost::traced(step)));
  std::size_t counters = 0;
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] != "C") continue;
    const plan::MemoryPoint& point = step.memory[counters++];
    EXPECT_DOUBLE_EQ(event["ts"].get<double>(), point.at_s * 1e6);
    EXPECT_EQ(event["args"]["device"].get<std::int64_t>(), point.bytes[0]);
    EXPECT_EQ(event["args"]["host"].get<std::int64_t>(), point.bytes[1]);
  }
  EXPECT_EQ(counters, step.memory.size());
  EXPECT_EQ(document["otherData"]["program"], "krigtune plan");
}

}  // namespace krigtune::virtual_clock_test
