#pragma once
// Emulates, on a CPU, the part of the CUDA runtime that the engine uses. Work on streams waits until somebody
// synchronises with it. Then it is executed in a random order that keeps only the order within each stream and the
// waits, so that a missing wait shows. Every thread of this machine has one device of its own, with a clock. The clock
// advances by a microsecond with each item of work and whenever a kernel reads it, and by the time of set_kernel_time
// with each kernel. Sources that are compiled for the emulation find this header in place of NVIDIA's. Functions do
// what the CUDA Runtime API reference says, and return cudaSuccess unless stated otherwise.
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
/// Finds only cuTensorMapEncodeTiled.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* found);

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDefault = 4 };
inline constexpr unsigned cudaHostAllocPortable = 1;
/// Fills the memory with NaN.
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
/// cudaMemcpy and cudaMemset happen at once. They wait for no stream, as on a GPU with non-blocking streams.
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
/// Returns cudaErrorNotReady at the first call after the event was recorded, so that both answers occur.
cudaError_t cudaEventQuery(cudaEvent_t event);
/// Works for events that were recorded in a graph too: the last launch counts.
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

/// Sets the largest shared memory of a block from now on, on all devices, in bytes. At first it is that of Hopper.
void set_shared_limit(int bytes);
/// Puts work on a stream.
void enqueue(cudaStream_t stream, std::function<void()> work);
/// Makes this thread's device draw the order of its work with this seed from now on.
void set_seed(std::uint64_t seed);
/// Returns the bytes that are allocated on this thread's device, without pinned host memory.
std::size_t allocated_bytes();
/// Returns the number of kernels that this thread's device has executed.
std::int64_t kernels_executed();
/// Makes each kernel take this long on this thread's device from now on, in addition to the microsecond.
void set_kernel_time(std::uint64_t length_ns);
void begin_kernel();
void end_kernel();
/// What a device does not support: everything is supported, no kernels on a stream that is captured, or no
/// instantiation of graphs.
enum class GraphsLack : std::uint8_t { kNothing, kKernels, kInstantiation };
/// Sets it for this thread's device from now on.
void set_graphs_lack(GraphsLack what);
/// Returns whether a kernel may be put on this stream. If not, the capture of the stream is lost.
bool takes_kernel(cudaStream_t stream);
/// Sets how many bytes of this thread's device are used by others.
void set_others_bytes(std::size_t bytes);
/// Returns the number of mma instructions that warps have executed in this thread's kernels.
std::int64_t warp_products_executed();
void count_warp_product();

}  // namespace krigtune::emulation

/// Copies the arguments at once.
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
