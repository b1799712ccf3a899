#pragma once
#include "core/error.h"

namespace krigtune::cuda {

/// A call of CUDA, cuBLASLt or NCCL has failed. After most failures the CUDA context is unusable, so the process must
/// end.
class DeviceError : public CodedError {
 public:
  using CodedError::CodedError;
};

/// Throws DeviceError unless CUDA's code is 0. Takes the code as an int, so that this header does not need CUDA's.
void check_cuda(int code, const char* call, const char* file, int line);

/// Throws DeviceError with the text of the call, the reason, the code and the place.
[[noreturn]] void fail(int exit_code, const char* call, const char* reason, int code, const char* file, int line);

/// Returns whether cudaGetDeviceCount's code means that this machine has no usable GPU.
bool means_no_device(int code);

}  // namespace krigtune::cuda

#define KRIGTUNE_CHECK_CUDA(call) ::krigtune::cuda::check_cuda(static_cast<int>(call), #call, __FILE__, __LINE__)
