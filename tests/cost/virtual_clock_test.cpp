#include "krigtune/cost/virtual_clock.h"

#include <gtest/gtest.h>

namespace krigtune {
namespace {

TEST(RunClock, OverlapsStreamsAndHonoursWaits) {
  const std::vector<TimedOperation> operations = {{Stream::kCompute, false, 1.0, 0.0, {}},
                                                  {Stream::kReduce, true, 3.0, 0.0, {1}},
                                                  {Stream::kCompute, false, 2.0, 0.0, {}},
                                                  {Stream::kCompute, false, 1.0, 0.0, {0, 0, 1}}};
  const auto times = run_clock(operations, 1.0);
  EXPECT_DOUBLE_EQ(times[1].start_s, 1.0);
  EXPECT_DOUBLE_EQ(times[2].end_s, 3.0);
  EXPECT_DOUBLE_EQ(times[3].start_s, 4.0);
  EXPECT_DOUBLE_EQ(times[3].end_s, 5.0);
}

// One second of kernels, of which half runs beside a collective of 0.75 s: 0.75 s yield 0.5 s, the rest takes 0.5 s.
TEST(RunClock, StretchesKernelsWhileACollectiveRuns) {
  const std::vector<TimedOperation> operations = {{Stream::kReduce, true, 0.75, 0.0, {}},
                                                  {Stream::kCompute, false, 1.0, 0.0, {}}};
  const auto times = run_clock(operations, 1.5);
  EXPECT_DOUBLE_EQ(times[1].end_s, 1.25);
}

TEST(RunClock, CarriesOneCollectiveAtATime) {
  const std::vector<TimedOperation> operations = {{Stream::kReduce, true, 2.0, 0.0, {}},
                                                  {Stream::kGather, true, 1.0, 0.0, {}}};
  const auto times = run_clock(operations, 1.0);
  EXPECT_DOUBLE_EQ(times[1].ready_s, 2.0);
  EXPECT_DOUBLE_EQ(times[1].end_s, 3.0);
}

TEST(RunClock, StartsNoKernelBeforeItWasIssued) {
  const std::vector<TimedOperation> operations = {{Stream::kCompute, false, 0.5, 1.0, {}},
                                                  {Stream::kCompute, false, 0.5, 1.0, {}}};
  const auto times = run_clock(operations, 1.0);
  EXPECT_DOUBLE_EQ(times[1].start_s, 2.0);
}

}  // namespace
}  // namespace krigtune
