// Apart from check.cpp, so that what needs neither cuBLASLt nor NCCL can do without.
#include <cublasLt.h>
#include <nccl.h>

#include "core/error.h"
#include "engine/cuda/runtime/check.h"

namespace krigtune::cuda {

void check_blas(int code, const char* call, const char* file, int line) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  const int exit_code = code == CUBLAS_STATUS_ALLOC_FAILED ? BenchExit::kOutOfMemory : BenchExit::kInternal;
  fail(exit_code, call, cublasLtGetStatusName(static_cast<cublasStatus_t>(code)), code, file, line);
}

void check_nccl(int code, const char* call, const char* file, int line) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  fail(BenchExit::kCommunication, call, ncclGetErrorString(static_cast<ncclResult_t>(code)), code, file, line);
}

}  // namespace krigtune::cuda
