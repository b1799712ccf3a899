// AdamW in fp32 on the host, as an offloaded optimizer runs it: 28 bytes per element (four arrays read, three written),
// by several threads. Beside it, a copy by as many threads, which reads and writes each byte once. The ratio of their
// bytes_per_second is the fraction of the memory's bandwidth that the update reaches.
#include <benchmark/benchmark.h>

#include <cstring>
#include <functional>
#include <thread>

#include "engine/host/update_slices.h"

namespace krigtune::engine {
namespace {

constexpr std::int64_t kElems = std::int64_t{1} << 25U;  // 128 MiB per array, more than any cache

void on_threads(std::size_t count, const std::function<void(std::size_t)>& act) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(act, i);
  act(0);
}

void host_adamw(benchmark::State& state) {
  std::array<std::vector<float>, 4> arrays;
  arrays.fill(std::vector<float>(static_cast<std::size_t>(kElems), 0.5F));
  plan::Operation operation;
  operation.kind = schedule::OpKind::kAdamW;
  BoundOperation bound;
  bound.operation = &operation;
  bound.kernel = kernel_for<float>(operation.kind);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const plan::Access access = i == 1 ? plan::Access::kRead : plan::Access::kReadWrite;
    bound.operands.push_back({arrays[i].data(), kElems, access, schedule::DType::kFp32});
  }
  const std::vector<BoundOperation> slices = slices_of(bound, static_cast<int>(state.range(0)));
  const StepContext context;
  for (auto _ : state) {
    on_threads(slices.size(), [&](std::size_t i) { call_kernel(slices[i], context, nullptr); });
  }
  state.SetBytesProcessed(state.iterations() * kElems * 28);
}

void copy_beside(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  const auto elems = static_cast<std::size_t>(kElems);
  const std::vector<float> from(elems, 0.5F);
  std::vector<float> to(elems, 0.0F);
  for (auto _ : state) {
    on_threads(threads, [&](std::size_t i) {
      const std::size_t begin = elems * i / threads;
      std::memcpy(&to[begin], &from[begin], (elems * (i + 1) / threads - begin) * sizeof(float));
    });
  }
  state.SetBytesProcessed(state.iterations() * kElems * 8);
}

void thread_counts(benchmark::internal::Benchmark* all) {
  const int cores = cores_of_a_process(1);
  for (int threads = 1; threads < cores; threads *= 2) all->Arg(threads);
  all->Arg(cores)->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK(host_adamw)->Apply(thread_counts);
BENCHMARK(copy_beside)->Apply(thread_counts);

}  // namespace
}  // namespace krigtune::engine
