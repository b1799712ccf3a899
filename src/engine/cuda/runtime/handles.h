#pragma once
// Owners of the objects that CUDA creates.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace krigtune::cuda {

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<CUevent_st, DestroyEvent>;

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using StreamHandle = std::unique_ptr<CUstream_st, DestroyStream>;

struct DestroyGraphExec {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using GraphExec = std::unique_ptr<CUgraphExec_st, DestroyGraphExec>;

struct FreeDevice {
  void (*release)(void* memory) = nullptr;  ///< set if another library allocated it
  void operator()(std::byte* memory) const {
    if (release != nullptr) return release(memory);
    cudaFree(memory);
  }
};
using DeviceBytes = std::unique_ptr<std::byte, FreeDevice>;

struct FreePinned {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using PinnedBytes = std::unique_ptr<std::byte, FreePinned>;

// All of these throw DeviceError.
Event make_order_event();  ///< for ordering streams; records no time
Event make_timed_event();
StreamHandle make_stream(bool urgent);
GraphExec end_capture(cudaStream_t stream);  ///< the operations captured since cudaStreamBeginCapture
DeviceBytes allocate_device(std::int64_t bytes);
PinnedBytes allocate_pinned(std::int64_t bytes);

/// The use of the current device's memory by all processes.
struct MemoryState {
  std::int64_t total_bytes = 0;
  std::int64_t used_bytes = 0;
};
MemoryState memory_state();

/// Returns the seconds between two timed events, both of which must have passed.
double elapsed_s(const Event& from, const Event& to);

/// A pair of timed events of a stream.
struct Span {
  Event begin = make_timed_event();
  Event end = make_timed_event();

  double elapsed_s() const { return cuda::elapsed_s(begin, end); }
};

}  // namespace krigtune::cuda
