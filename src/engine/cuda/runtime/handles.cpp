#include "engine/cuda/runtime/handles.h"

#include <algorithm>

#include "engine/cuda/runtime/check.h"

namespace krigtune::cuda {
namespace {

Event make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  KRIGTUNE_CHECK_CUDA(cudaEventCreateWithFlags(&event, flags));
  return Event(event);
}

}  // namespace

Event make_order_event() { return make_event(cudaEventDisableTiming); }
Event make_timed_event() { return make_event(cudaEventDefault); }

StreamHandle make_stream(bool urgent) {
  int least = 0;
  int greatest = 0;
  KRIGTUNE_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  KRIGTUNE_CHECK_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? greatest : least));
  return StreamHandle(stream);
}

GraphExec end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  KRIGTUNE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  KRIGTUNE_CHECK_CUDA(made);
  return GraphExec(executable);
}

DeviceBytes allocate_device(std::int64_t bytes) {
  void* memory = nullptr;
  KRIGTUNE_CHECK_CUDA(cudaMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
  return DeviceBytes(static_cast<std::byte*>(memory));
}

PinnedBytes allocate_pinned(std::int64_t bytes) {
  void* memory = nullptr;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  KRIGTUNE_CHECK_CUDA(cudaHostAlloc(&memory, size, cudaHostAllocPortable));
  return PinnedBytes(static_cast<std::byte*>(memory));
}

MemoryState memory_state() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  KRIGTUNE_CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  return {static_cast<std::int64_t>(total_bytes), static_cast<std::int64_t>(total_bytes - free_bytes)};
}

double elapsed_s(const Event& from, const Event& to) {
  constexpr double kMillisecond = 1e-3;
  float elapsed_ms = 0.0F;
  KRIGTUNE_CHECK_CUDA(cudaEventElapsedTime(&elapsed_ms, from.get(), to.get()));
  return static_cast<double>(elapsed_ms) * kMillisecond;
}

}  // namespace krigtune::cuda
