#pragma once
#include <nccl.h>

#include <cstddef>

#include "engine/cuda/runtime/check.h"

namespace krigtune::cuda {

/// The functions of NCCL that are called, from the library that is found at run time; named as there, without "nccl".
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
  // Those of newer versions are null in an older one, and are declared here because its header lacks them too. A window
  // (ncclWindow_t) is a pointer.
  ncclResult_t (*mem_alloc)(void**, std::size_t);  ///< 2.19, likewise the next two
  ncclResult_t (*mem_free)(void*);
  ncclResult_t (*comm_register)(ncclComm_t, void*, std::size_t, void**);
  ncclResult_t (*comm_window_register)(ncclComm_t, void*, std::size_t, void**, int);  ///< 2.27
};
/// Opens NCCL at the first call. Throws EnvironmentError where there is none.
const NcclFunctions& nccl();

/// As check_cuda; ncclInProgress passes, too.
void check_nccl(int code, const char* call, const char* file, int line);

}  // namespace krigtune::cuda

#define KRIGTUNE_CHECK_NCCL(call) ::krigtune::cuda::check_nccl(static_cast<int>(call), #call, __FILE__, __LINE__)
