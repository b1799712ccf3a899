// CPU ranks. Matrix products use the engine's kernels (16-bit types are computed through fp32, as in training),
// collectives its communicators. Device and host memory are the same, so there are no copies between them.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "engine/host/arena.h"
#include "engine/host/bound_plan.h"
#include "programs/bench/rank_device.h"
#include "schedule/knobs.h"

namespace krigtune::bench {
namespace {

class HostRankDevice final : public RankDevice {
 public:
  HostRankDevice(const RankWorld& world, int rank) : world_(world), rank_(rank) {
    for (const workload::RankScope scope : world.job.scopes()) {
      ends_.push_back(world.groups.open(scope, rank));
      communicators_[scope] = ends_.back().get();
      if (!world.network) continue;
      ends_.push_back(
          engine::make_emulated(*ends_.back(), link_, *world.network, world.job.span(scope, rank), world.clock));
      communicators_[scope] = ends_.back().get();
    }
  }

  Work product(workload::Precision precision, const RateSizes::Product& size) override {
    const schedule::DType type = schedule::compute_type(precision);
    operation_ = {};
    operation_.kind = schedule::OpKind::kLinearForward;
    operation_.shape.rows = size.rows;
    operation_.shape.inner = size.depth;
    operation_.shape.outer = size.cols;
    bound_ = {};
    bound_.operation = &operation_;
    bound_.kernel = engine::kernel_for<float>(operation_.kind);
    const std::array elems = {size.rows * size.depth, size.cols * size.depth, size.rows * size.cols};
    take((elems[0] + elems[1] + elems[2]) * schedule::size_bytes(type));
    std::int64_t begin_elems = 0;
    for (std::size_t i = 0; i < elems.size(); ++i) {
      const plan::Access access = i == 2 ? plan::Access::kWrite : plan::Access::kRead;
      bound_.operands.push_back({memory_->at(begin_elems * schedule::size_bytes(type)), elems[i], access, type});
      begin_elems += elems[i];
    }
    scratch_.resize(static_cast<std::size_t>(engine::call_scratch_elems(bound_)));
    return [this] { engine::call_kernel(bound_, context_, scratch_.data()); };
  }

  Work copy(workload::CopyKind /*kind*/, std::int64_t bytes) override {
    take(2 * bytes);
    return [from = memory_->at(0), to = memory_->at(bytes), bytes] {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    };
  }

  Work collective(workload::ExchangeKind kind, workload::RankScope scope, std::int64_t bytes) override {
    const plan::GroupSpan span = world_.job.span(scope, rank_);
    if (span.ranks == 1) return [] {};
    take(bytes);
    constexpr std::int64_t kFloatBytes = 4;
    const std::vector<int> members = world_.job.members(scope, rank_);
    const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
    segment_ = {memory_->at(0), bytes / kFloatBytes, memory_->at(bytes / span.ranks * place), schedule::DType::kFp32};
    const workload::MeasuredCollective counted{kind, scope, span.ranks, span.nodes, bytes, 1.0};
    const engine::Collective one{std::span(&segment_, 1), static_cast<std::int64_t>(counted.wire_bytes())};
    engine::Communicator& among = *communicators_.at(scope);
    switch (kind) {
      case workload::ExchangeKind::kAllReduce:
        return [&among, one] { among.all_reduce(one); };
      case workload::ExchangeKind::kReduceScatter:
        return [&among, one] { among.reduce_scatter(one); };
      case workload::ExchangeKind::kAllGather:
        return [&among, one] { among.all_gather(one); };
    }
    return {};
  }

  void wait() override {}

 private:
  // Writing to the memory makes the system allocate its pages.
  void take(std::int64_t bytes) {
    memory_.reset();
    memory_.emplace(bytes, true);
  }

  RankWorld world_;
  int rank_;
  engine::EmulatedLink link_;
  std::vector<std::unique_ptr<engine::Communicator>> ends_;  ///< decorators come after what they decorate
  std::map<workload::RankScope, engine::Communicator*> communicators_;
  std::optional<engine::Arena> memory_;
  std::vector<float> scratch_;
  plan::Operation operation_;
  engine::BoundOperation bound_;
  engine::StepContext context_;
  engine::Segment segment_;
};

}  // namespace

std::vector<std::unique_ptr<RankDevice>> make_host_devices(const RankWorld& world) {
  std::vector<std::unique_ptr<RankDevice>> devices;
  for (int rank = 0; rank < world.job.size(); ++rank) {
    if (world.processes != nullptr && rank != world.processes->rank()) continue;
    devices.push_back(std::make_unique<HostRankDevice>(world, rank));
  }
  return devices;
}

// Copies larger than every cache; products of a small model's sizes, which the engine computes within a second.
RateSizes host_rate_sizes() {
  RateSizes sizes;
  sizes.products = {{64, 64, 64}, {128, 512, 128}, {256, 256, 256}, {512, 512, 512}, {512, 2048, 512}};
  sizes.memory_copies_bytes = {std::int64_t{1} << 16, std::int64_t{1} << 20, std::int64_t{64} << 20};
  return sizes;
}

}  // namespace krigtune::bench
