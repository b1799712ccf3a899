#pragma once
#include "core/error.h"

namespace krigtune::cuda {

/// A call of CUDA, cuBLASLt or NCCL has failed. After most of them the context is of no more use: the process ends.
class DeviceError : public CodedError {
 public:
  using CodedError::CodedError;
};

/// Takes CUDA's code as int, so that this header needs none of CUDA's. Throws unless the code is 0.
void check_cuda(int code, const char* call, const char* file, int line);

/// Throws DeviceError.
[[noreturn]] void fail(int exit_code, const char* call, const char* reason, int code, const char* file, int line);

/// Whether cudaGetDeviceCount's code means that this machine has no GPU that can be used.
bool means_no_device(int code);

}  // namespace krigtune::cuda

#define KRIGTUNE_CHECK_CUDA(call) ::krigtune::cuda::check_cuda(static_cast<int>(call), #call, __FILE__, __LINE__)
