#pragma once
#include "core/error.h"

namespace krigtune::cuda {

/// A call of CUDA, cuBLASLt or NCCL has failed. After most of them the context is of no more use: the process ends.
class DeviceError : public CodedError {
 public:
  using CodedError::CodedError;
};

// They take the libraries' codes as int, so that this header needs none of theirs. Each throws unless the code is 0.
void check_cuda(int code, const char* call, const char* file, int line);
void check_blas(int code, const char* call, const char* file, int line);
/// ncclInProgress passes, too.
void check_nccl(int code, const char* call, const char* file, int line);

/// Throws DeviceError.
[[noreturn]] void fail(int exit_code, const char* call, const char* reason, int code, const char* file, int line);

/// Whether cudaGetDeviceCount's code means that this machine has no GPU that can be used.
bool means_no_device(int code);

}  // namespace krigtune::cuda

#define KRIGTUNE_CHECK_CUDA(call) ::krigtune::cuda::check_cuda(static_cast<int>(call), #call, __FILE__, __LINE__)
#define KRIGTUNE_CHECK_BLAS(call) ::krigtune::cuda::check_blas(static_cast<int>(call), #call, __FILE__, __LINE__)
#define KRIGTUNE_CHECK_NCCL(call) ::krigtune::cuda::check_nccl(static_cast<int>(call), #call, __FILE__, __LINE__)
