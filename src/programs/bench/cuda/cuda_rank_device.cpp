#include "programs/bench/cuda/cuda_rank_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <map>
#include <thread>
#include <utility>

#include "core/error.h"
#include "engine/cuda/blas_gemm.h"
#include "engine/cuda/cuda_trainer.h"
#include "engine/cuda/device_communicator.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handles.h"
#include "schedule/exchange.h"
#include "schedule/knobs.h"

namespace krigtune::bench {
namespace {

class CudaRankDevice final : public RankDevice {
 public:
  CudaRankDevice(const RankWorld& world, int rank, int device)
      : world_(world), rank_(rank), device_(device), gemm_(cuda::make_blas_gemm()) {
    if (world.processes == nullptr) return;
    for (const workload::RankScope scope : world.job.scopes()) connect(scope);
  }

  // CUDA's current device belongs to the thread.
  void enter() override { KRIGTUNE_CHECK_CUDA(cudaSetDevice(device_)); }

  Work product(workload::Precision precision, const RateSizes::Product& size) override {
    const schedule::DType type = schedule::compute_type(precision);
    const std::array elems = {size.rows * size.depth, size.cols * size.depth, size.rows * size.cols};
    take((elems[0] + elems[1] + elems[2]) * schedule::size_bytes(type));
    std::array<engine::OperandView, 3> views;
    std::int64_t begin_elems = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
      const plan::Access access = i == 2 ? plan::Access::kWrite : plan::Access::kRead;
      views[i] = {memory_.get() + begin_elems * schedule::size_bytes(type), elems[i], access, type};
      begin_elems += elems[i];
    }
    const cuda::Product product{.a = views[0],
                                .b = views[1],
                                .d = views[2],
                                .bias = {},
                                .rows = size.rows,
                                .cols = size.cols,
                                .depth = size.depth,
                                .transpose_b = true};
    gemm_->prepare(product);
    return [this, product] { gemm_->multiply(product, stream_.get()); };
  }

  Work copy(workload::CopyKind kind, std::int64_t bytes) override {
    const bool within = kind == workload::CopyKind::kMemory;
    take(within ? 2 * bytes : bytes);
    pinned_.reset();
    if (!within) pinned_ = cuda::allocate_pinned(bytes);
    std::byte* from = kind == workload::CopyKind::kToDevice ? pinned_.get() : memory_.get();
    std::byte* to = within                                  ? memory_.get() + bytes
                    : kind == workload::CopyKind::kToDevice ? memory_.get()
                                                            : pinned_.get();
    return [this, from, to, bytes] {
      KRIGTUNE_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_.get()));
    };
  }

  Work collective(workload::ExchangeKind kind, workload::RankScope scope, std::int64_t bytes) override {
    const auto found = communicators_.find(scope);
    if (found == communicators_.end()) return [] {};
    constexpr std::int64_t kFloatBytes = 4;
    take(bytes);
    const std::vector<int> members = world_.job.members(scope, rank_);
    const auto ranks = static_cast<std::int64_t>(members.size());
    const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
    const engine::OperandView whole{memory_.get(), bytes / kFloatBytes, plan::Access::kReadWrite,
                                    schedule::DType::kFp32};
    const engine::OperandView shard{memory_.get() + bytes / ranks * place, bytes / kFloatBytes / ranks,
                                    plan::Access::kRead, schedule::DType::kFp32};
    plan::Operation operation;
    operation.kind = schedule::collective_of(kind);
    std::vector<engine::OperandView> operands = {whole};
    if (operation.kind == schedule::OpKind::kAllGather) operands = {shard, whole};
    cuda::DeviceCommunicator& among = *found->second;
    return [this, &among, operation = std::move(operation), operands = std::move(operands)] {
      among.start(operation, operands, stream_.get());
    };
  }

  // The process polls its communicators, so it notices when another rank is gone.
  void wait() override {
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(done_.get(), stream_.get()));
    for (;;) {
      const cudaError_t state = cudaEventQuery(done_.get());
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) KRIGTUNE_CHECK_CUDA(state);
      for (const auto& [scope, communicator] : communicators_) communicator->check();
      std::this_thread::yield();
    }
  }

  std::int64_t taken_bytes() override {
    enter();
    wait();
    memory_.reset();
    return cuda::memory_state().used_bytes;
  }

 private:
  // Every process creates an id, and a group uses that of its first member.
  void connect(workload::RankScope scope) {
    const std::vector<int> members = world_.job.members(scope, rank_);
    const auto ids = engine::all_say(world_.processes->control(), cuda::new_nccl_id());
    if (members.size() == 1) return;
    const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
    communicators_[scope] =
        cuda::make_nccl_communicator(ids[static_cast<std::size_t>(members.front())], static_cast<int>(place),
                                     static_cast<int>(members.size()), {}, [] { std::this_thread::yield(); });
  }

  // The values are not zero, because some operations are too fast on zeros.
  void take(std::int64_t bytes) {
    constexpr std::int64_t kAlignment = 64;
    memory_.reset();
    const std::int64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    memory_ = cuda::allocate_device(whole);
    cuda::fill_numbers(memory_.get(), whole, stream_.get());
  }

  RankWorld world_;
  int rank_;
  int device_;
  cuda::StreamHandle stream_ = cuda::make_stream(false);
  cuda::Event done_ = cuda::make_order_event();
  std::unique_ptr<cuda::Gemm> gemm_;
  std::map<workload::RankScope, std::unique_ptr<cuda::DeviceCommunicator>> communicators_;
  cuda::DeviceBytes memory_;
  cuda::PinnedBytes pinned_;
};

}  // namespace

std::vector<std::unique_ptr<RankDevice>> make_cuda_devices(const RankWorld& world, int device) {
  if (world.network) {
    throw UserError("--measure-rates measures links that are there, and \"emulate_network\" imitates one",
                    "leave it out, or use --device cpu");
  }
  cuda::require_code_for(device);
  KRIGTUNE_CHECK_CUDA(cudaSetDevice(device));
  std::vector<std::unique_ptr<RankDevice>> devices;
  const int rank = world.processes == nullptr ? 0 : world.processes->rank();
  devices.push_back(std::make_unique<CudaRankDevice>(world, rank, device));
  return devices;
}

// The matrix products of a transformer with 4096 tokens, and square ones; collectives up to a gigabyte, at which the
// links reach their full rate.
RateSizes cuda_rate_sizes() {
  RateSizes sizes;
  sizes.products = {{256, 256, 256},    {1024, 1024, 1024},  {2048, 2048, 2048},
                    {4096, 4096, 4096}, {4096, 11008, 4096}, {8192, 8192, 8192}};
  sizes.memory_copies_bytes = {std::int64_t{1} << 20, std::int64_t{64} << 20, std::int64_t{1} << 30};
  sizes.host_copies_bytes = {std::int64_t{1} << 20, std::int64_t{256} << 20};
  sizes.most_collective_bytes = std::int64_t{1} << 30;
  return sizes;
}

}  // namespace krigtune::bench
