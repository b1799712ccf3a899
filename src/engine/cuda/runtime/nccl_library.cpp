// Only jobs on several GPUs need NCCL, so it is opened when the first communicator is created.
#include "engine/cuda/runtime/nccl_library.h"

#include "core/error.h"
#include "engine/cuda/runtime/library_search.h"
#include "engine/cuda/runtime/library_versions.h"

namespace krigtune::cuda {
namespace {

struct NcclLibrary {
  FoundLibrary found;
  NcclFunctions functions{};
};

NcclLibrary open_nccl() {
  NcclLibrary nccl{find_library("NCCL", {"libnccl.so.2"}), {}};
  FoundLibrary& found = nccl.found;
  if (!found.library) return nccl;
  NcclFunctions& f = nccl.functions;
  const FunctionBinder bind{found, "NCCL", "2.14"};
  bind("ncclGetVersion", f.get_version);
  bind("ncclGetErrorString", f.get_error_string);
  bind("ncclGetUniqueId", f.get_unique_id);
  bind("ncclCommInitRankConfig", f.comm_init_rank_config);
  bind("ncclCommGetAsyncError", f.comm_get_async_error);
  bind("ncclCommAbort", f.comm_abort);
  bind("ncclGroupStart", f.group_start);
  bind("ncclGroupEnd", f.group_end);
  bind("ncclAllReduce", f.all_reduce);
  bind("ncclReduceScatter", f.reduce_scatter);
  bind("ncclAllGather", f.all_gather);
  const auto find_newer = [&]<class Function>(const char* name, Function*& function) {
    function = engine::find<Function>(found.library, name);
  };
  find_newer("ncclMemAlloc", f.mem_alloc);
  find_newer("ncclMemFree", f.mem_free);
  find_newer("ncclCommRegister", f.comm_register);
  find_newer("ncclCommWindowRegister", f.comm_window_register);
  return nccl;
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = open_nccl();
  return library;
}

}  // namespace

const NcclFunctions& nccl() {
  const NcclLibrary& library = nccl_library();
  if (!library.found.missing.empty()) throw EnvironmentError(library.found.missing, kLibraryHint);
  return library.functions;
}

LibraryVersion nccl_version() {
  const NcclLibrary& library = nccl_library();
  if (!library.found.missing.empty()) return {0, library.found.path, library.found.missing};
  int version = 0;
  library.functions.get_version(&version);
  return {static_cast<std::size_t>(version), library.found.path, ""};
}

void check_nccl(int code, const char* call, const char* file, int line) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  fail(BenchExit::kCommunication, call, nccl().get_error_string(static_cast<ncclResult_t>(code)), code, file, line);
}

}  // namespace krigtune::cuda
