#pragma once
// The part of the CUDA runtime that the engine uses, on a CPU. What is put on a stream waits until somebody asks for
// its end; then what is ready is executed in an order drawn at random, stream by stream and wait by wait: a wait that
// is missing shows. Every thread of this machine has one device of its own, with a clock: a microsecond passes with
// each thing that is executed, with each look of a kernel at the clock, and what set_kernel_time says. Found in place
// of NVIDIA's header by what is compiled for the emulation; functions mean what the CUDA Runtime API reference says,
// and return cudaSuccess unless said otherwise.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "../fibers.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorStubLibrary = 34,
  cudaErrorInsufficientDriver = 35,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorNotSupported = 801,
  cudaErrorSystemNotReady = 802,
  cudaErrorSystemDriverMismatch = 803,
  cudaErrorCompatNotSupportedOnDevice = 804,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorCapturedEvent = 907
};
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
inline cudaError_t cudaGetLastError() { return cudaSuccess; }

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;

struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int multiProcessorCount;
  int major, minor;
};
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDeviceGetPCIBusId(char* address, int size, int device);
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);

#define CUDART_VERSION 13000
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
inline constexpr unsigned long long cudaEnableDefault = 0;
/// Knows cuTensorMapEncodeTiled.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* found);

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDefault = 4 };
inline constexpr unsigned cudaHostAllocPortable = 1;
/// Device memory is filled with NaN.
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
template <class T>
cudaError_t cudaHostAlloc(T** memory, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
/// At once: they wait for no stream, as on a GPU for non-blocking streams.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream);

inline constexpr unsigned cudaStreamNonBlocking = 1;
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
using cudaHostFn_t = void (*)(void*);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);

inline constexpr unsigned cudaEventDefault = 0;
inline constexpr unsigned cudaEventDisableTiming = 2;
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
/// cudaErrorNotReady the first time that it is asked after it was recorded, so that both answers are seen.
cudaError_t cudaEventQuery(cudaEvent_t event);
/// Also of events that were recorded in a graph: the last launch counts.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to);

enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*)(P...), cudaFuncAttribute, int) {
  return cudaSuccess;
}

namespace krigtune::emulation {

/// What a block may have of shared memory from now on, on all devices, in bytes; at first that of Hopper.
void set_shared_limit(int bytes);
/// Puts something on a stream.
void enqueue(cudaStream_t stream, std::function<void()> work);
/// From now on this thread's device draws its orders with this seed.
void set_seed(std::uint64_t seed);
/// What this thread's device has allocated and not freed, in bytes; pinned host memory left out.
std::size_t allocated_bytes();
/// How many kernels this thread's device has executed.
std::int64_t kernels_executed();
/// From now on each kernel takes so long on this thread's device, in addition to the microsecond.
void set_kernel_time(std::uint64_t length_ns);
void begin_kernel();
void end_kernel();
/// What is missing of graphs on this thread's device from now on: nothing; kernels on a stream that is captured;
/// graphs that can be executed.
enum class GraphsLack : std::uint8_t { kNothing, kKernels, kInstantiation };
void set_graphs_lack(GraphsLack what);
/// Whether a kernel may be put on this stream; if not, a capture that goes on there is lost.
bool takes_kernel(cudaStream_t stream);
/// What others have of the memory of this thread's device, in bytes.
void set_others_bytes(std::size_t bytes);
/// How many mma instructions warps have executed in this thread's kernels.
std::int64_t warp_products_executed();
void count_warp_product();

}  // namespace krigtune::emulation

/// The arguments are copied at once.
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  const cudaLaunchConfig_t at = *config;
  if (!krigtune::emulation::takes_kernel(at.stream)) return cudaErrorStreamCaptureUnsupported;
  krigtune::emulation::enqueue(at.stream, [at, kernel, ... copied = P(std::forward<A>(arguments))] {
    krigtune::emulation::begin_kernel();
    krigtune::emulation::run_grid(at.gridDim, at.blockDim, at.dynamicSmemBytes, [&] { kernel(copied...); });
    krigtune::emulation::end_kernel();
  });
  return cudaSuccess;
}
