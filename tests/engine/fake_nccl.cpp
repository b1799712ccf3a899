// A library in place of NCCL that writes down how it is called. Its communicators have one rank, and everything that is
// begun goes on in the background for two looks at it, as NCCL's calls that do not block.
#include "fake_nccl.h"

#include <nccl.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

struct ncclComm {
  int looks_until_done = 2;
};

namespace {

int version_now = NCCL_VERSION_CODE;
std::ostringstream& calls() {
  static std::ostringstream all;
  return all;
}
std::vector<std::unique_ptr<ncclComm>>& alive() {
  static std::vector<std::unique_ptr<ncclComm>> all;
  return all;
}
std::string of(int field) { return field == INT_MIN ? "default" : std::to_string(field); }
void* const kMemory = std::aligned_alloc(4096, 4096);
const char* place(const void* at) { return at == kMemory ? "its memory" : "other memory"; }

}  // namespace

extern "C" {

const char* fake_nccl_calls() {
  static std::string text;
  text = calls().str();
  return text.c_str();
}
void fake_nccl_is(int version) { version_now = version; }

ncclResult_t ncclGetVersion(int* version) {
  *version = version_now;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t /*result*/) { return "an error"; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId /*id*/, int rank,
                                    ncclConfig_t* config) {
  calls() << "init rank " << rank << " of " << ranks << ", blocking " << of(config->blocking) << ", CTAs "
          << of(config->maxCTAs) << ", policy " << of(config->CTAPolicy) << '\n';
  *communicator = alive().emplace_back(std::make_unique<ncclComm>()).get();
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* result) {
  *result = communicator->looks_until_done-- > 0 ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  calls() << "abort\n";
  std::erase_if(alive(), [&](const auto& one) { return one.get() == communicator; });
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
ncclResult_t ncclAllReduce(const void* /*from*/, void* /*to*/, size_t count, ncclDataType_t /*type*/,
                           ncclRedOp_t /*operation*/, ncclComm_t /*communicator*/, cudaStream_t /*stream*/) {
  calls() << "all-reduce " << count << '\n';
  return ncclSuccess;
}
ncclResult_t ncclReduceScatter(const void* /*from*/, void* /*to*/, size_t count, ncclDataType_t /*type*/,
                               ncclRedOp_t /*operation*/, ncclComm_t /*communicator*/, cudaStream_t /*stream*/) {
  calls() << "reduce-scatter " << count << '\n';
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void* /*from*/, void* /*to*/, size_t count, ncclDataType_t /*type*/,
                           ncclComm_t /*communicator*/, cudaStream_t /*stream*/) {
  calls() << "all-gather " << count << '\n';
  return ncclSuccess;
}
ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  calls() << "allocate " << bytes << '\n';
  *memory = kMemory;
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* memory) {
  calls() << "free " << place(memory) << '\n';
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t communicator, void* memory, size_t bytes, void** /*handle*/) {
  calls() << "register " << place(memory) << ", " << bytes << '\n';
  communicator->looks_until_done = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t communicator, void* memory, size_t bytes, void** /*window*/, int flags) {
  calls() << "window of " << place(memory) << ", " << bytes << ", flags " << flags << '\n';
  communicator->looks_until_done = 2;
  return ncclInProgress;
}

}  // extern "C"
