#include "engine/cuda/runtime/check.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace krigtune::cuda {

void fail(int exit_code, const char* call, const char* reason, int code, const char* file, int line) {
  throw DeviceError(exit_code, fmt::format("{} gives {} ({}) at {}:{}", call, reason, code, file, line));
}

bool means_no_device(int code) {
  constexpr std::array kCodes = {cudaErrorInitializationError,
                                 cudaErrorStubLibrary,
                                 cudaErrorInsufficientDriver,
                                 cudaErrorDevicesUnavailable,
                                 cudaErrorNoDevice,
                                 cudaErrorInvalidDevice,
                                 cudaErrorSystemNotReady,
                                 cudaErrorSystemDriverMismatch,
                                 cudaErrorCompatNotSupportedOnDevice};
  return std::find(kCodes.begin(), kCodes.end(), static_cast<cudaError_t>(code)) != kCodes.end();
}

void check_cuda(int code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  const int exit_code = code == cudaErrorMemoryAllocation ? BenchExit::kOutOfMemory
                        : means_no_device(code)           ? BenchExit::kNoDevice
                                                          : BenchExit::kInternal;
  fail(exit_code, call, cudaGetErrorName(static_cast<cudaError_t>(code)), code, file, line);
}

}  // namespace krigtune::cuda
