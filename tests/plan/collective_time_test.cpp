#include "plan/collective_time.h"

#include <gtest/gtest.h>

#include <cmath>

namespace krigtune::collective_time_test {

constexpr double kMicro = 1e-6;

workload::EmulatedNetwork h200_nodes(std::int64_t ranks_per_node) {
  const workload::NetworkLevel nvlink{"nvlink4", workload::Hop::kNvlink, 10e-6, 361.4e9};
  const workload::NetworkLevel infiniband{"ib", workload::Hop::kNetwork, 5e-6, 22.5e9};
  return {"test", 0.0, 0.0, workload::NodeNetwork{nvlink, infiniband, ranks_per_node}};
}

// `size_bytes` is S of nccl-tests: the whole range.
double all_gather_s(const workload::EmulatedNetwork& network, const plan::GroupSpan& span, double size_bytes) {
  const auto ranks = static_cast<double>(span.ranks);
  return plan::collective_time_s(network, schedule::OpKind::kAllGather, span,
                                 std::llround(size_bytes * (ranks - 1.0) / ranks));
}

TEST(CollectiveTime, IsLatencyPlusBytesOverBandwidthOnAFlatNetwork) {
  const workload::EmulatedNetwork flat{"test", 0.5, 100.0};
  for (const schedule::OpKind kind :
       {schedule::OpKind::kAllReduce, schedule::OpKind::kReduceScatter, schedule::OpKind::kAllGather}) {
    EXPECT_DOUBLE_EQ(plan::collective_time_s(flat, kind, {4, 2, 2}, 200), 2.5);
    EXPECT_DOUBLE_EQ(plan::collective_time_s(flat, kind, {4, 2, 2}, 0), 0.0);
  }
}

// NCCL's constants and 361.4 GB/s, measured on eight H200, give bus bandwidths of 51, 108, 235, 285, 318, 351 GB/s.
TEST(CollectiveTime, OfEightRanksOnNvlinkIsWhatNcclExpects) {
  const std::pair<double, double> kTimes[] = {{1e6, 17},   {5e6, 41},    {25e6, 93},
                                              {50e6, 154}, {100e6, 275}, {500e6, 1250}};
  for (const auto& [bytes, expected_us] : kTimes) {
    const double time_us = all_gather_s(h200_nodes(8), {8, 1, 8}, bytes) / kMicro;
    EXPECT_LE(std::abs(time_us / expected_us - 1.0), 0.015) << bytes << " bytes: " << time_us << " us";
  }
}

// For large ranges, the slower one of the links within nodes and all cards of a node decides. All-reduce is two passes.
TEST(CollectiveTime, OfLargeRangesIsThatOfTheSlowestLink) {
  constexpr double kHuge = 1e12;
  const auto bus_bytes_per_s = [&](const plan::GroupSpan& span) {
    const auto n = static_cast<double>(span.ranks);
    return kHuge * (n - 1.0) / n / all_gather_s(h200_nodes(8), span, kHuge);
  };
  EXPECT_LE(std::abs(bus_bytes_per_s({8, 1, 8}) / 361.4e9 - 1.0), 1e-3);
  EXPECT_LE(std::abs(bus_bytes_per_s({16, 2, 8}) / (8 * 22.5e9) - 1.0), 1e-3);
  EXPECT_LE(std::abs(bus_bytes_per_s({4, 4, 1}) / 22.5e9 - 1.0), 1e-3);
  const plan::GroupSpan span{16, 2, 8};
  const double once = plan::collective_time_s(h200_nodes(8), schedule::OpKind::kReduceScatter, span, 1'000'000'000'000);
  const double twice = plan::collective_time_s(h200_nodes(8), schedule::OpKind::kAllReduce, span, 2'000'000'000'000);
  EXPECT_LE(std::abs(twice / once - 2.0), 1e-3);
}

// For tiny ranges, protocol LL: base + hops. Sixteen ranks on two nodes: 15 steps, one of them over the network.
TEST(CollectiveTime, OfTinyRangesIsThatOfItsHops) {
  const plan::GroupSpan span{16, 2, 8};
  const double once_us = 6.6 + 14 * 0.6 + (2.7 + 5.0);
  const double twice_us = 6.6 + 28 * 0.6 + 2 * (2.7 + 5.0);
  const double tiny = 1.0 / 22.5e3;  // the time of one byte, in us, is negligible
  EXPECT_LE(
      std::abs(plan::collective_time_s(h200_nodes(8), schedule::OpKind::kReduceScatter, span, 1) / kMicro - once_us),
      tiny);
  EXPECT_LE(std::abs(plan::collective_time_s(h200_nodes(8), schedule::OpKind::kAllReduce, span, 1) / kMicro - twice_us),
            tiny);
}

TEST(CollectiveTime, NeverFallsWithMoreBytesOrMoreNodes) {
  double before = 0.0;
  for (std::int64_t bytes = 1; bytes < 1'000'000'000'000; bytes *= 3) {
    const double now = plan::collective_time_s(h200_nodes(8), schedule::OpKind::kReduceScatter, {16, 2, 8}, bytes);
    EXPECT_LE(before, now) << bytes;
    EXPECT_LE(plan::collective_time_s(h200_nodes(8), schedule::OpKind::kReduceScatter, {16, 1, 16}, bytes), now)
        << bytes;
    EXPECT_LE(now, plan::collective_time_s(h200_nodes(8), schedule::OpKind::kReduceScatter, {16, 4, 4}, bytes))
        << bytes;
    before = now;
  }
}

TEST(GroupSpan, FollowsTheOrderOfTheRanks) {
  plan::StepPlan plan;
  plan.ranks = 4;
  plan.tensor_ranks = 2;
  const auto expect = [&](schedule::Group group, std::int64_t rank, std::int64_t per_node,
                          const plan::GroupSpan& expected) {
    const plan::GroupSpan span = plan::group_span(plan, group, rank, per_node);
    EXPECT_EQ(span.ranks, expected.ranks);
    EXPECT_EQ(span.nodes, expected.nodes);
    EXPECT_EQ(span.ranks_per_node, expected.ranks_per_node);
  };
  expect(schedule::Group::kTensor, 5, 2, {2, 1, 2});  // neighbours
  expect(schedule::Group::kData, 5, 2, {4, 4, 1});
  expect(schedule::Group::kData, 5, 4, {4, 2, 2});
  expect(schedule::Group::kData, 5, 8, {4, 1, 4});
  expect(schedule::Group::kTensor, 3, 1, {2, 2, 1});
}

}  // namespace krigtune::collective_time_test
