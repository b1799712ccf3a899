// Stands in for NCCL, with communicators between threads of this process, each of which has a device of its own.
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <vector>

#include "core/clock.h"
#include "engine/cuda/device_communicator.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/runtime/library_versions.h"
#include "engine/host/thread_communicator.h"

namespace krigtune::cuda {
namespace {

/// The groups of all communicators, by their id.
struct Groups {
  std::mutex mutex;
  SystemClock clock;
  std::map<NcclId, std::shared_ptr<engine::ThreadGroup>> by_id;
  char made = 0;
};
Groups& groups() {
  static Groups all;
  return all;
}

std::vector<engine::Segment> segments_of(schedule::OpKind kind, std::span<const engine::OperandView> operands) {
  std::vector<engine::Segment> segments;
  if (kind == schedule::OpKind::kAllGather) {
    for (std::size_t i = 0; i + 1 < operands.size(); i += 2) {
      const engine::OperandView& whole = operands[i + 1];
      segments.push_back({whole.data, whole.elems, operands[i].data, whole.type});
    }
  } else {
    for (const engine::OperandView& whole : operands)
      segments.push_back({whole.data, whole.elems, nullptr, whole.type});
  }
  return segments;
}

class ThreadsAsDevices final : public DeviceCommunicator {
 public:
  ThreadsAsDevices(std::shared_ptr<engine::ThreadGroup> group, int rank)
      : group_(std::move(group)), mine_(group_->member(rank)) {}

  // As in NCCL, the collectives of a communicator run one after another, whatever their streams are. The wait is
  // refused if the event was recorded in a graph, where it is not needed because each step has an end of its own.
  void start(const plan::Operation& operation, std::span<const engine::OperandView> operands, Queue queue) override {
    const schedule::OpKind kind = operation.kind;
    cudaStreamWaitEvent(queue, last_.get(), 0);
    emulation::enqueue(queue, [this, kind, segments = segments_of(kind, operands)] {
      const engine::Collective collective{segments, 0};
      switch (kind) {
        case schedule::OpKind::kAllGather:
          mine_->all_gather(collective);
          break;
        case schedule::OpKind::kReduceScatter:
          mine_->reduce_scatter(collective);
          break;
        case schedule::OpKind::kAllReduceMax:
          mine_->all_reduce_max(collective);
          break;
        default:
          mine_->all_reduce(collective);
      }
    });
    cudaEventRecord(last_.get(), queue);
  }
  void check() override {}
  void abort() noexcept override { group_->abort(); }

 private:
  std::shared_ptr<engine::ThreadGroup> group_;
  std::unique_ptr<engine::Communicator> mine_;
  Event last_ = make_order_event();
};

}  // namespace

LibraryVersion nccl_version() { return {1, "emulated", ""}; }

NcclId new_nccl_id() {
  Groups& all = groups();
  const std::scoped_lock lock(all.mutex);
  NcclId id{};
  id[0] = ++all.made;
  return id;
}

DeviceBytes allocate_for_nccl(std::int64_t bytes, schedule::NcclKnobs::Buffers /*buffers*/) {
  return allocate_device(bytes);
}

std::unique_ptr<DeviceCommunicator> make_nccl_communicator(const NcclId& id, int rank, int ranks,
                                                           const NcclOptions& /*options*/, Poll /*poll*/) {
  Groups& all = groups();
  const std::scoped_lock lock(all.mutex);
  auto& group = all.by_id[id];
  if (!group) group = std::make_shared<engine::ThreadGroup>(ranks, all.clock);
  return std::make_unique<ThreadsAsDevices>(group, rank);
}

}  // namespace krigtune::cuda
