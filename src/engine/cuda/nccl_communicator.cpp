// NCCL is used without blocking calls. Each call returns at once, with ncclInProgress if it continues in the
// background, and is polled until it ends, so that a rank that has died is noticed and the others can be freed (NCCL
// user guide, "Fault tolerance"). NCCL never computes averages here, because it first rounds 1 / N to the type of the
// data.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "core/error.h"
#include "engine/cuda/device_communicator.h"
#include "engine/cuda/runtime/library_versions.h"
#include "engine/cuda/runtime/nccl_library.h"

namespace krigtune::cuda {
namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(NcclId));

ncclDataType_t nccl_type(schedule::DType type) {
  switch (type) {
    case schedule::DType::kFp32:
      return ncclFloat32;
    case schedule::DType::kBf16:
      return ncclBfloat16;
    case schedule::DType::kFp16:
      return ncclFloat16;
    case schedule::DType::kInt32:
      return ncclInt32;
    case schedule::DType::kUint8:
      return ncclUint8;
  }
  throw std::logic_error("NCCL knows no such type");
}

using Buffers = schedule::NcclKnobs::Buffers;

// A field of ncclConfig_t exists only in the headers of the version that introduced it and of later ones.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 17, 0)
constexpr auto kMaxCtasField = &ncclConfig_t::maxCTAs;
#else
constexpr int ncclConfig_t::*kMaxCtasField = nullptr;
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
constexpr auto kCtaPolicyField = &ncclConfig_t::CTAPolicy;
#else
constexpr int ncclConfig_t::*kCtaPolicyField = nullptr;
#endif

void set(ncclConfig_t& config, int ncclConfig_t::*field, std::int64_t value, const char* name) {
  if (field == nullptr) {
    throw UserError(fmt::format("krigtune-bench-cuda was built with headers of an NCCL without ncclConfig_t.{}", name),
                    "build it with a newer NCCL, or leave this parameter out");
  }
  config.*field = static_cast<int>(value);
}

ncclConfig_t config_for(const schedule::NcclKnobs& knobs) {
  constexpr int kZeroCtas = 2;  // NCCL_CTA_POLICY_ZERO
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (knobs.max_ctas > 0) set(config, kMaxCtasField, knobs.max_ctas, "maxCTAs");
  if (knobs.buffers == Buffers::kCopyEngines) set(config, kCtaPolicyField, kZeroCtas, "CTAPolicy");
  return config;
}

/// The oldest NCCL that supports a kind of buffers, as ncclGetVersion returns it and as text for messages.
struct OldestNccl {
  std::size_t version;
  const char* text;
};
OldestNccl oldest_for(Buffers buffers) {
  if (buffers == Buffers::kCopyEngines) return {22800, "2.28"};
  if (buffers == Buffers::kSymmetric) return {22700, "2.27"};
  return {21900, "2.19"};
}

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(const NcclId& id, int rank, int ranks, const NcclOptions& options, Poll poll)
      : rank_(rank), ranks_(ranks), poll_(std::move(poll)) {
    ncclUniqueId unique;
    std::memcpy(&unique, id.data(), id.size());
    ncclConfig_t config = config_for(options.knobs);
    ncclComm_t communicator = nullptr;
    KRIGTUNE_CHECK_NCCL(nccl().comm_init_rank_config(&communicator, ranks, unique, rank, &config));
    communicator_.store(communicator);
    settle();
    register_memory(options);
  }
  // Does not wait for other ranks: at the end all streams are idle, and after a failure the others may never arrive.
  ~NcclCommunicator() override { abort(); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  void start(const plan::Operation& operation, std::span<const engine::OperandView> operands, Queue queue) override {
    const schedule::OpKind kind = operation.kind;
    if (communicator_.load() == nullptr) throw std::runtime_error("the communicator was aborted");
    KRIGTUNE_CHECK_NCCL(nccl().group_start());
    if (kind == schedule::OpKind::kAllGather) {
      for (std::size_t i = 0; i + 1 < operands.size(); i += 2) gather(operands[i], operands[i + 1], queue);
    } else {
      for (const engine::OperandView& whole : operands) reduce(kind, whole, queue);
    }
    KRIGTUNE_CHECK_NCCL(nccl().group_end());
    settle();
  }

  void check() override { state(); }

  void abort() noexcept override {
    if (ncclComm_t communicator = communicator_.exchange(nullptr); communicator != nullptr) {
      nccl().comm_abort(communicator);
    }
  }

 private:
  // The registration ends with the communicator.
  void register_memory(const NcclOptions& options) {
    constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
    void* handle = nullptr;
    if (options.knobs.buffers == Buffers::kRegistered) {
      KRIGTUNE_CHECK_NCCL(
          nccl().comm_register(communicator_.load(), options.memory.data(), options.memory.size(), &handle));
    } else if (options.knobs.buffers != Buffers::kPlain) {
      KRIGTUNE_CHECK_NCCL(nccl().comm_window_register(communicator_.load(), options.memory.data(),
                                                      options.memory.size(), &handle, kSymmetric));
    }
    settle();
  }

  ncclResult_t state() {
    ncclComm_t communicator = communicator_.load();
    if (communicator == nullptr) return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    KRIGTUNE_CHECK_NCCL(nccl().comm_get_async_error(communicator, &result));
    check_nccl(result, "a collective", __FILE__, __LINE__);
    return result;
  }

  // Waits until the last call has been carried out, which the next call requires.
  void settle() {
    while (state() == ncclInProgress) poll_();
  }

  void reduce(schedule::OpKind kind, const engine::OperandView& whole, Queue queue) {
    const ncclRedOp_t operation = kind == schedule::OpKind::kAllReduceMax ? ncclMax : ncclSum;
    const auto elems = static_cast<std::size_t>(whole.elems);
    const ncclDataType_t type = nccl_type(whole.type);
    if (kind != schedule::OpKind::kReduceScatter) {
      KRIGTUNE_CHECK_NCCL(
          nccl().all_reduce(whole.data, whole.data, elems, type, operation, communicator_.load(), queue));
      return;
    }
    const std::size_t shard = elems / static_cast<std::size_t>(ranks_);
    auto* own = static_cast<std::byte*>(whole.data) +
                shard * static_cast<std::size_t>(rank_) * static_cast<std::size_t>(schedule::size_bytes(whole.type));
    KRIGTUNE_CHECK_NCCL(nccl().reduce_scatter(whole.data, own, shard, type, operation, communicator_.load(), queue));
  }

  void gather(const engine::OperandView& shard, const engine::OperandView& whole, Queue queue) {
    KRIGTUNE_CHECK_NCCL(nccl().all_gather(shard.data, whole.data, static_cast<std::size_t>(shard.elems),
                                          nccl_type(shard.type), communicator_.load(), queue));
  }

  int rank_;
  int ranks_;
  Poll poll_;
  std::atomic<ncclComm_t> communicator_{nullptr};
};

}  // namespace

NcclId new_nccl_id() {
  ncclUniqueId unique;
  KRIGTUNE_CHECK_NCCL(nccl().get_unique_id(&unique));
  NcclId id{};
  std::memcpy(id.data(), &unique, id.size());
  return id;
}

DeviceBytes allocate_for_nccl(std::int64_t bytes, schedule::NcclKnobs::Buffers buffers) {
  const OldestNccl oldest = oldest_for(buffers);
  if (nccl_version().version < oldest.version) {
    throw UserError(fmt::format("{} buffers need NCCL {} or newer, and {} is older", schedule::to_string(buffers),
                                oldest.text, nccl_version().path),
                    "install a newer NCCL, or leave this value out");
  }
  void* memory = nullptr;
  KRIGTUNE_CHECK_NCCL(nccl().mem_alloc(&memory, static_cast<std::size_t>(bytes)));
  return DeviceBytes(static_cast<std::byte*>(memory), FreeDevice{[](void* own) { nccl().mem_free(own); }});
}

std::unique_ptr<DeviceCommunicator> make_nccl_communicator(const NcclId& id, int rank, int ranks,
                                                           const NcclOptions& options, Poll poll) {
  return std::make_unique<NcclCommunicator>(id, rank, ranks, options, std::move(poll));
}

}  // namespace krigtune::cuda
