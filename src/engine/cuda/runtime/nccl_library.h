#pragma once
#include <nccl.h>

#include <cstddef>

#include "engine/cuda/runtime/check.h"

namespace krigtune::cuda {

/// The functions of NCCL that the program calls, taken from the library that is found at run time. Their names are the
/// library's without "nccl".
struct NcclFunctions {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclCommAbort) comm_abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  // The functions of newer versions are null if the library is older. They are declared here because an older header
  // lacks them too. A window (ncclWindow_t) is a pointer.
  ncclResult_t (*mem_alloc)(void**, std::size_t);  ///< since 2.19, as are the next two
  ncclResult_t (*mem_free)(void*);
  ncclResult_t (*comm_register)(ncclComm_t, void*, std::size_t, void**);
  ncclResult_t (*comm_window_register)(ncclComm_t, void*, std::size_t, void**, int);  ///< since 2.27
};
/// Opens NCCL at the first call. Throws EnvironmentError if there is none.
const NcclFunctions& nccl();

/// Throws DeviceError with kCommunication unless NCCL's code is ncclSuccess or ncclInProgress.
void check_nccl(int code, const char* call, const char* file, int line);

}  // namespace krigtune::cuda

#define KRIGTUNE_CHECK_NCCL(call) ::krigtune::cuda::check_nccl(static_cast<int>(call), #call, __FILE__, __LINE__)
