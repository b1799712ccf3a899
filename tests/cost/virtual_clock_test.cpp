#include "krigtune/cost/virtual_clock.h"

#include <gtest/gtest.h>

namespace krigtune {
namespace {

TEST(RunClock, OverlapsStreamsAndHonoursWaits) {
  const std::vector<TimedOperation> operations = {{Stream::kCompute, false, 1.0, 0.0, {}},
                                                  {Stream::kReduce, true, 3.0, 0.0, {1}},
                                                  {Stream::kCompute, false, 2.0, 0.0, {}},
                                                  {Stream::kCompute, false, 1.0, 0.0, {0, 0, 1}}};
  const auto times = run_clock(operations, {1.0});
  EXPECT_DOUBLE_EQ(times[1].start_s, 1.0);
  EXPECT_DOUBLE_EQ(times[2].end_s, 3.0);
  EXPECT_DOUBLE_EQ(times[3].start_s, 4.0);
  EXPECT_DOUBLE_EQ(times[3].end_s, 5.0);
}

// One second of kernels, of which half runs beside a collective of 0.75 s: 0.75 s yield 0.5 s, the rest takes 0.5 s.
TEST(RunClock, StretchesKernelsWhileACollectiveRuns) {
  const std::vector<TimedOperation> operations = {{Stream::kReduce, true, 0.75, 0.0, {}},
                                                  {Stream::kCompute, false, 1.0, 0.0, {}}};
  const auto times = run_clock(operations, {1.5});
  EXPECT_DOUBLE_EQ(times[1].end_s, 1.25);
}

TEST(RunClock, CarriesOneCollectiveAtATime) {
  const std::vector<TimedOperation> operations = {{Stream::kReduce, true, 2.0, 0.0, {}},
                                                  {Stream::kGather, true, 1.0, 0.0, {}}};
  const auto times = run_clock(operations, {1.0});
  EXPECT_DOUBLE_EQ(times[1].ready_s, 2.0);
  EXPECT_DOUBLE_EQ(times[1].end_s, 3.0);
}

TEST(RunClock, StartsNoKernelBeforeItWasIssued) {
  const std::vector<TimedOperation> operations = {{Stream::kCompute, false, 0.5, 1.0, {}},
                                                  {Stream::kCompute, false, 0.5, 1.0, {}}};
  const auto times = run_clock(operations, {1.0});
  EXPECT_DOUBLE_EQ(times[1].start_s, 2.0);
}

// A kernel of 2 s and a collective of 1 s of computing share one core: the collective has its second at 2 s, when the
// kernel has had one of its two, and has the core to itself from then on.
TEST(RunClock, SharesACoreAmongWhatComputes) {
  std::vector<TimedOperation> operations = {{Stream::kCompute, false, 2.0, 0.0, {}},
                                            {Stream::kReduce, true, 1.0, 0.0, {}}};
  operations[1].core_s = 1.0;
  const auto times = run_clock(operations, {.cores = 1.0});
  EXPECT_DOUBLE_EQ(times[1].end_s, 2.0);
  EXPECT_DOUBLE_EQ(times[0].end_s, 3.0);
  const auto apart = run_clock(operations, {.cores = 2.0});
  EXPECT_DOUBLE_EQ(apart[1].end_s, 1.0);
  EXPECT_DOUBLE_EQ(apart[0].end_s, 2.0);
  const auto half = run_clock(operations, {.cores = 0.5});
  EXPECT_DOUBLE_EQ(half[0].end_s, 6.0);
}

// A collective that is held for 5 s computes for one of them only.
TEST(RunClock, LeavesTheCoreToKernelsWhileACollectiveSleeps) {
  std::vector<TimedOperation> operations = {{Stream::kCompute, false, 4.0, 0.0, {}},
                                            {Stream::kReduce, true, 5.0, 0.0, {}}};
  operations[1].core_s = 1.0;
  const auto times = run_clock(operations, {.cores = 1.0});
  EXPECT_DOUBLE_EQ(times[0].end_s, 5.0);
  EXPECT_DOUBLE_EQ(times[1].end_s, 5.0);
}

TEST(RunClock, LetsStreamsThatWaitedTakeAWhileToWake) {
  const std::vector<TimedOperation> operations = {{Stream::kCompute, false, 1.0, 0.0, {}},
                                                  {Stream::kReduce, true, 1.0, 0.0, {1}},
                                                  {Stream::kCompute, false, 1.0, 0.0, {}}};
  const auto times = run_clock(operations, {.wake_s = 0.25});
  EXPECT_DOUBLE_EQ(times[1].start_s, 1.25);
  EXPECT_DOUBLE_EQ(times[2].start_s, 1.0);  // it has not waited
}

}  // namespace
}  // namespace krigtune
