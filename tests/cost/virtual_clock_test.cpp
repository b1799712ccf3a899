#include "krigtune/cost/virtual_clock.h"

#include <gtest/gtest.h>

namespace krigtune {
namespace {

using Behind = std::array<std::int32_t, kStreamCount>;

TimedOperation kernel(double seconds, double issue_s = 0.0, const Behind& behind = {}) {
  TimedOperation operation;
  operation.seconds = seconds;
  operation.issue_s = issue_s;
  operation.behind = behind;
  return operation;
}

TimedOperation collective(Stream stream, double seconds, const Behind& behind = {}) {
  TimedOperation operation = kernel(seconds, 0.0, behind);
  operation.stream = stream;
  operation.collective = true;
  return operation;
}

TEST(RunClock, OverlapsStreamsAndHonoursWaits) {
  const std::vector<TimedOperation> operations = {kernel(1.0, 0.0, {}), collective(Stream::kReduce, 3.0, {1}),
                                                  kernel(2.0, 0.0, {}), kernel(1.0, 0.0, {0, 0, 1})};
  const auto times = run_clock(operations, {.overlap_slowdown = 1.0});
  EXPECT_DOUBLE_EQ(times[1].start_s, 1.0);
  EXPECT_DOUBLE_EQ(times[2].end_s, 3.0);
  EXPECT_DOUBLE_EQ(times[3].start_s, 4.0);
  EXPECT_DOUBLE_EQ(times[3].end_s, 5.0);
}

// One second of kernels, of which half runs beside a collective of 0.75 s: 0.75 s yield 0.5 s, the rest takes 0.5 s.
TEST(RunClock, StretchesKernelsWhileACollectiveRuns) {
  const std::vector<TimedOperation> operations = {collective(Stream::kReduce, 0.75), kernel(1.0, 0.0, {})};
  const auto times = run_clock(operations, {.overlap_slowdown = 1.5});
  EXPECT_DOUBLE_EQ(times[1].end_s, 1.25);
}

TEST(RunClock, CarriesOneCollectiveAtATime) {
  const std::vector<TimedOperation> operations = {collective(Stream::kReduce, 2.0), collective(Stream::kGather, 1.0)};
  const auto times = run_clock(operations, {.overlap_slowdown = 1.0});
  EXPECT_DOUBLE_EQ(times[1].ready_s, 2.0);
  EXPECT_DOUBLE_EQ(times[1].end_s, 3.0);
}

TEST(RunClock, StartsNoKernelBeforeItWasIssued) {
  const std::vector<TimedOperation> operations = {kernel(0.5, 1.0, {}), kernel(0.5, 1.0, {})};
  const auto times = run_clock(operations, {.overlap_slowdown = 1.0});
  EXPECT_DOUBLE_EQ(times[1].start_s, 2.0);
}

}  // namespace
}  // namespace krigtune
