// What krigtune-bench --measure-rates measures: the members of each group, and how often each operation is timed, on
// threads and on processes.
#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>

#include "core/clock.h"
#include "engine/thread_processes.h"
#include "programs/bench/rank_device.h"
#include "programs/bench/rates_run.h"

namespace krigtune::rates_test {

using workload::CopyKind;
using workload::ExchangeKind;
using workload::RankScope;

// Two nodes, one of three ranks and one of two.
bench::JobRanks uneven() { return {{0, 0, 0, 1, 1}, {"a", "b"}}; }

TEST(JobRanks, FormsGroupsWithinNodesAndBetweenThem) {
  const bench::JobRanks job = uneven();
  EXPECT_EQ(job.members(RankScope::kNode, 1), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(job.members(RankScope::kNode, 4), (std::vector<int>{3, 4}));
  EXPECT_EQ(job.members(RankScope::kAcross, 0), (std::vector<int>{0, 3}));
  EXPECT_EQ(job.members(RankScope::kAcross, 4), (std::vector<int>{1, 4}));
  EXPECT_EQ(job.members(RankScope::kAcross, 2), (std::vector<int>{2}));  // the other node has no corresponding rank
  EXPECT_EQ(job.members(RankScope::kAll, 2), (std::vector<int>{0, 1, 2, 3, 4}));
  const plan::GroupSpan all = job.span(RankScope::kAll, 0);
  EXPECT_EQ(all.ranks, 5);
  EXPECT_EQ(all.nodes, 2);
  EXPECT_EQ(all.ranks_per_node, 2);  // on the node with the fewest
}

TEST(JobRanks, MeasuresOnlyGroupsThatSaySomething) {
  EXPECT_EQ((bench::JobRanks{{0, 0}, {"a"}}).scopes(), (std::vector<RankScope>{RankScope::kNode}));
  EXPECT_EQ((bench::JobRanks{{0, 1}, {"a", "b"}}).scopes(), (std::vector<RankScope>{RankScope::kAcross}));
  EXPECT_EQ(uneven().scopes(), (std::vector<RankScope>{RankScope::kNode, RankScope::kAcross, RankScope::kAll}));
  EXPECT_TRUE((bench::JobRanks{{0}, {"a"}}).scopes().empty());
}

/// Each operation takes a fixed time on a clock that nothing else moves.
class TimedDevice final : public bench::RankDevice {
 public:
  explicit TimedDevice(ManualClock& clock) : clock_(clock) {}
  Work product(workload::Precision precision, const bench::RateSizes::Product&) override {
    return takes(precision == workload::Precision::kFp32 ? 4e-3 : 1e-3);
  }
  Work copy(CopyKind kind, std::int64_t bytes) override {
    return takes((kind == CopyKind::kMemory ? 1e-9 : 2e-9) * static_cast<double>(bytes));
  }
  Work collective(ExchangeKind, RankScope, std::int64_t) override {
    return [] {};
  }
  void wait() override {}

 private:
  Work takes(double seconds) {
    return [this, seconds] { clock_.advance_s(seconds); };
  }
  ManualClock& clock_;
};

TEST(MeasureRates, FindsWhatTheClockSays) {
  ManualClock clock;
  const bench::JobRanks job{{0}, {"a"}};
  bench::RankGroups groups(job, nullptr, clock);
  bench::RateSizes sizes;
  sizes.products = {{8, 4, 2}};
  sizes.memory_copies_bytes = {1 << 20};
  sizes.host_copies_bytes = {1 << 20};
  std::vector<std::unique_ptr<bench::RankDevice>> devices;
  devices.push_back(std::make_unique<TimedDevice>(clock));
  const workload::MeasuredRates rates =
      bench::measure_rates({job, groups, nullptr, clock}, devices, sizes, [](auto&) {});
  ASSERT_EQ(rates.products.size(), 3U);  // one for each precision
  EXPECT_EQ(rates.products[0].flops(), 128.0);
  EXPECT_NEAR(rates.products[0].times.median_s, 4e-3, 1e-8);
  EXPECT_NEAR(rates.products[1].times.median_s, 1e-3, 1e-8);
  ASSERT_EQ(rates.copies.size(), 3U);
  EXPECT_NEAR(rates.copies[0].times.median_s, 1e-9 * (1 << 20), 1e-8);
  EXPECT_NEAR(rates.copies[2].times.slowest_s, 2e-9 * (1 << 20), 1e-8);
  EXPECT_TRUE(rates.collectives.empty());
}

bench::RateSizes few_sizes() {
  bench::RateSizes sizes;
  sizes.products = {{16, 16, 16}};
  sizes.memory_copies_bytes = {4096};
  sizes.least_collective_bytes = 1024;
  sizes.most_collective_bytes = 64 << 10;
  sizes.block_s = 1e-3;
  return sizes;
}

// The time is at least that of the emulated network, on any machine.
TEST(MeasureRates, HoldsCollectivesForTheNetworkThatIsEmulated) {
  const SystemClock clock;
  const bench::JobRanks job{{0, 0, 1, 1}, {"a", "b"}};
  bench::RankGroups groups(job, nullptr, clock);
  const workload::EmulatedNetwork network{"1 ms + 100 MB/s", 1e-3, 100e6};
  const bench::RankWorld world{job, groups, nullptr, clock, network};
  const workload::MeasuredRates rates =
      bench::measure_rates(world, bench::make_host_devices(world), few_sizes(), [](auto&) {});
  EXPECT_EQ(rates.ranks(), 4);
  EXPECT_EQ(rates.ranks_per_node(), 2);
  ASSERT_EQ(rates.collectives.size(), 3U * 3U * 4U);  // kinds, scopes, sizes 1 KiB to 64 KiB
  for (const workload::MeasuredCollective& one : rates.collectives) {
    EXPECT_EQ(one.ranks, one.scope == RankScope::kAll ? 4 : 2);
    EXPECT_EQ(one.nodes, one.scope == RankScope::kNode ? 1 : 2);
    // The ranks exchange their times in single precision.
    EXPECT_GE(one.seconds, 0.9999 * (1e-3 + one.wire_bytes() / 100e6)) << one.bytes;
  }
  for (const workload::MeasuredProduct& one : rates.products) EXPECT_GT(one.times.median_s, 0.0);
}

TEST(MeasureRates, GivesAllProcessesTheSameNumbers) {
  std::mutex mutex;
  std::vector<std::string> documents;
  as_processes(4, [&](engine::Processes& processes) {
    const SystemClock clock;
    workload::ClusterSpec cluster;
    cluster.nodes = 2;
    const bench::JobRanks job = bench::job_ranks(cluster, true, &processes);
    bench::RankGroups groups(job, &processes, clock);
    const bench::RankWorld world{job, groups, &processes, clock};
    const auto rates = bench::measure_rates(world, bench::make_host_devices(world), few_sizes(), [](auto&) {});
    const std::scoped_lock lock(mutex);
    documents.push_back(workload::to_json(rates).dump());
  });
  ASSERT_EQ(documents.size(), 4U);
  for (const std::string& document : documents) EXPECT_EQ(document, documents[0]);
}

TEST(MeasureRates, FindsOutWhichProcessesShareAMachine) {
  as_processes(2, [&](engine::Processes& processes) {
    const bench::JobRanks job = bench::job_ranks({}, false, &processes);
    EXPECT_EQ(job.nodes, (std::vector<int>{0, 0}));
    EXPECT_EQ(job.hosts.size(), 1U);
  });
}

/// Fails at its first product.
class BrokenDevice final : public bench::RankDevice {
 public:
  Work product(workload::Precision, const bench::RateSizes::Product&) override { throw std::runtime_error("broken"); }
  Work copy(CopyKind, std::int64_t) override {
    return [] {};
  }
  Work collective(ExchangeKind, RankScope, std::int64_t) override {
    return [] {};
  }
  void wait() override {}
};

TEST(MeasureRates, EndsForAllWhereOneRankFails) {
  const SystemClock clock;
  const bench::JobRanks job{{0, 0}, {"a"}};
  bench::RankGroups groups(job, nullptr, clock);
  const bench::RankWorld world{job, groups, nullptr, clock};
  auto devices = bench::make_host_devices(world);
  devices[1] = std::make_unique<BrokenDevice>();
  EXPECT_THROW(bench::measure_rates(world, devices, few_sizes(), [](auto&) {}), std::runtime_error);
}

}  // namespace krigtune::rates_test
