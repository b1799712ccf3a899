// Runs krigtune-bench-cuda --measure-rates on the emulation of CUDA. Each rank is a thread with a device of its own,
// and communicators between the threads stand in for NCCL. The measured rates mean nothing; what counts is that
// everything runs, on the right groups.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "engine/thread_processes.h"
#include "programs/bench/cuda/cuda_rank_device.h"

namespace krigtune::cuda_rates_test {

bench::RateSizes tiny_sizes() {
  bench::RateSizes sizes;
  sizes.products = {{8, 16, 4}};
  sizes.memory_copies_bytes = {4096};
  sizes.host_copies_bytes = {4096};
  sizes.least_collective_bytes = 1024;
  sizes.most_collective_bytes = 4096;
  sizes.block_s = 1e-4;
  return sizes;
}

workload::MeasuredRates measure_on_devices(const bench::JobRanks& job) {
  workload::MeasuredRates of_first;
  as_processes(job.size(), [&](engine::Processes& processes) {
    const SystemClock clock;
    bench::RankGroups groups(job, &processes, clock);
    const bench::RankWorld world{job, groups, &processes, clock};
    const auto rates = bench::measure_rates(world, bench::make_cuda_devices(world, 0), tiny_sizes(), [](auto&) {});
    if (processes.rank() == 0) of_first = rates;
  });
  return of_first;
}

TEST(CudaRates, AreMeasuredInAllPrecisionsAndGroups) {
  const workload::MeasuredRates rates = measure_on_devices({{0, 0, 1, 1}, {"a", "b"}});
  EXPECT_EQ(rates.products.size(), 3U);
  EXPECT_EQ(rates.copies.size(), 3U);                 // within the device, to it and back
  EXPECT_EQ(rates.collectives.size(), 3U * 3U * 2U);  // kinds, scopes, sizes
  for (const workload::MeasuredCollective& one : rates.collectives) {
    EXPECT_EQ(one.ranks, one.scope == workload::RankScope::kAll ? 4 : 2);
    EXPECT_GT(one.seconds, 0.0);
  }
}

TEST(CudaRates, MeasureOneGpuAlone) {
  const SystemClock clock;
  const bench::JobRanks job{{0}, {"a"}};
  bench::RankGroups groups(job, nullptr, clock);
  const bench::RankWorld world{job, groups, nullptr, clock};
  const auto rates = bench::measure_rates(world, bench::make_cuda_devices(world, 0), tiny_sizes(), [](auto&) {});
  EXPECT_EQ(rates.products.size(), 3U);
  EXPECT_TRUE(rates.collectives.empty());
}

TEST(CudaRates, TellWhatOthersHaveOfTheMemory) {
  const SystemClock clock;
  const bench::JobRanks job{{0}, {"a"}};
  bench::RankGroups groups(job, nullptr, clock);
  const auto devices = bench::make_cuda_devices({job, groups, nullptr, clock}, 0);
  emulation::set_others_bytes(7'000'000);
  devices.front()->copy(workload::CopyKind::kMemory, 4096)();
  constexpr std::int64_t kWorkspaceBytes = 32 << 20;                       // cuBLASLt's
  EXPECT_EQ(devices.front()->taken_bytes(), 7'000'000 + kWorkspaceBytes);  // without the copies' buffers
  emulation::set_others_bytes(0);
}

TEST(CudaRates, RefuseAnEmulatedNetwork) {
  const SystemClock clock;
  const bench::JobRanks job{{0}, {"a"}};
  bench::RankGroups groups(job, nullptr, clock);
  const workload::EmulatedNetwork network{"1 us + 1 MB/s", 1e-6, 1e6};
  EXPECT_THROW(bench::make_cuda_devices({job, groups, nullptr, clock, network}, 0), UserError);
}

}  // namespace krigtune::cuda_rates_test
