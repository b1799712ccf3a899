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

/// One rank's end of a communicator between devices. It puts collectives on a stream. All ranks must do so in the same
/// order.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;
  /// Puts a collective on the stream. Operands are in the order of OpTraits: (shard, whole)* for an all-gather,
  /// (whole)* for the others. Reductions compute sums or maxima. Collectives on several streams are executed in the
  /// order of these calls.
  virtual void start(const plan::Operation& operation, std::span<const engine::OperandView> operands, Queue queue) = 0;
  /// Throws DeviceError if a rank or the network has failed meanwhile.
  virtual void check() = 0;
  /// Ends all waiting for other ranks, permanently. Safe from any thread.
  virtual void abort() noexcept = 0;
};

/// Returns the communicator of a group of one rank. Only an all-gather into another place moves bytes.
std::unique_ptr<DeviceCommunicator> make_self_communicator();

/// This GPU's link to an emulated network. All collectives share it, whatever their group and stream.
class EmulatedDeviceLink {
 public:
  /// Measures `launch_ns` on the current device.
  EmulatedDeviceLink();
  /// Sets whether collectives that start from now on are held for as long as the network needs, which is the default.
  /// Otherwise they only move bytes.
  void set_held(bool held) { held_ = held; }
  bool held() const { return held_; }
  /// Returns by how much a collective takes longer than it is held: the launches before and after. Collectives are held
  /// for so much less, since the stated time of a network contains that of launching them.
  double launch_ns() const { return launch_ns_; }
  /// Holds the queue for 0.1 ms. What is put on it meanwhile is timed without the host's time to launch it, as in a
  /// step, whose kernels are launched ahead.
  void occupy(Queue queue) const;
  /// Returns the device address of the time from which the link is free, in nanoseconds of the device's clock.
  unsigned long long* free_from() const { return reinterpret_cast<unsigned long long*>(free_from_.get()); }

 private:
  DeviceBytes free_from_;
  DeviceBytes occupied_;  ///< the end of the last occupation, and the moment from which the next one may begin
  bool held_ = true;
  double launch_ns_ = 0.0;
};

/// Returns the communicator of a group whose other ranks do not exist; this is rank 0. A collective moves the bytes
/// that this rank would move, within this GPU's memory, and holds the stream until the network would be done. The
/// values of the other ranks are made from its own: their shards are its shard in another order, and sums are as large
/// as those of independent numbers. `link` must outlive the communicator.
std::unique_ptr<DeviceCommunicator> make_emulated_communicator(const workload::EmulatedNetwork& network,
                                                               const plan::GroupSpan& span,
                                                               const EmulatedDeviceLink& link);

/// The identifier that all ranks of a communicator share.
using NcclId = std::array<char, 128>;
NcclId new_nccl_id();

/// A function that is called repeatedly while this rank waits for others. It throws to give up.
using Poll = std::function<void()>;

/// How an NCCL communicator is created.
struct NcclOptions {
  schedule::NcclKnobs knobs;
  /// Contains all memory that collectives will read and write. If knobs.buffers is not kPlain, it must come from
  /// allocate_for_nccl and outlive the communicator, and tensors must be at the same place in it on all ranks.
  std::span<std::byte> memory;
};

/// Allocates memory of the current device that NCCL can register. Throws DeviceError, and UserError if this NCCL is too
/// old for `buffers`.
DeviceBytes allocate_for_nccl(std::int64_t bytes, schedule::NcclKnobs::Buffers buffers);

/// Creates an NCCL communicator on the current device. Returns once all `ranks` have called it with the same id, each
/// from a thread or process of its own. `poll` is kept.
std::unique_ptr<DeviceCommunicator> make_nccl_communicator(const NcclId& id, int rank, int ranks,
                                                           const NcclOptions& options, Poll poll);

}  // namespace krigtune::cuda
