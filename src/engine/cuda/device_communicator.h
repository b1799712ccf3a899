#pragma once
#include <array>
#include <functional>
#include <memory>
#include <span>

#include "engine/cuda/kernels/device_kernel.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/host/kernels/kernel.h"
#include "plan/collective_time.h"
#include "plan/step_plan.h"

namespace krigtune::cuda {

/// One rank's end of a communicator between devices: collectives are put on a stream, in the same order by all ranks.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;
  /// Operands in the order of OpTraits: all-gather (shard, whole)*, the others (whole)*. Sums only, or maxima. What is
  /// put on several streams happens in the order of these calls.
  virtual void start(const plan::Operation& operation, std::span<const engine::OperandView> operands, Queue queue) = 0;
  /// Throws DeviceError where a rank or the network has failed meanwhile.
  virtual void check() = 0;
  /// Ends what waits for other ranks; for good. From any thread.
  virtual void abort() noexcept = 0;
};

/// A group of one rank: only an all-gather into another place moves anything.
std::unique_ptr<DeviceCommunicator> make_self_communicator();

/// This GPU's link into a network that is not there. Its collectives, of whatever group and stream, share it.
class EmulatedDeviceLink {
 public:
  EmulatedDeviceLink();
  /// Whether collectives that are started from now on are held as long as the network needs, as at first; otherwise
  /// they only move bytes.
  void set_held(bool held) { held_ = held; }
  bool held() const { return held_; }
  /// On the device: from when on it is free, in nanoseconds of the device's clock.
  unsigned long long* free_from() const { return reinterpret_cast<unsigned long long*>(free_from_.get()); }

 private:
  DeviceBytes free_from_;
  bool held_ = true;
};

/// A group whose other ranks do not exist: this is rank 0. Moves the bytes that it would move, in this GPU's memory,
/// and holds the stream until the moment at which the network would be done. What comes from others is made of its own:
/// their shards are its shard in another order, sums are as large as those of independent numbers. `link` must outlive
/// it.
std::unique_ptr<DeviceCommunicator> make_emulated_communicator(const workload::EmulatedNetwork& network,
                                                               const plan::GroupSpan& span,
                                                               const EmulatedDeviceLink& link);

/// What the ranks of a communicator have in common.
using NcclId = std::array<char, 128>;
NcclId new_nccl_id();

/// Called again and again while others are waited for; throws to give up.
using Poll = std::function<void()>;

/// How a communicator of NCCL is made.
struct NcclOptions {
  schedule::NcclKnobs knobs;
  /// All of the memory that collectives will read and write. If knobs.buffers is not kPlain, it comes from
  /// allocate_for_nccl and must outlive the communicator, and tensors lie at the same place in it on all ranks.
  std::span<std::byte> memory;
};

/// Allocates memory of the current device that NCCL can register. Throws DeviceError, and UserError if this NCCL is too
/// old for `buffers`.
DeviceBytes allocate_for_nccl(std::int64_t bytes, schedule::NcclKnobs::Buffers buffers);

/// NCCL on the current device. Returns once all `ranks` have called it with the same id, each from a thread or process
/// of its own. `poll` is kept.
std::unique_ptr<DeviceCommunicator> make_nccl_communicator(const NcclId& id, int rank, int ranks,
                                                           const NcclOptions& options, Poll poll);

}  // namespace krigtune::cuda
