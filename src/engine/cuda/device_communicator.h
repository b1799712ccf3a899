#pragma once
#include <array>
#include <functional>
#include <memory>
#include <span>

#include "cuda/kernels/queue.h"
#include "host/kernels/kernel.h"

namespace krigtune::cuda {

/// One rank's end of a communicator between devices: collectives are put on a stream, in the same order by all ranks.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;
  /// Operands as documented at OpKind: all-gather (shard, whole)*, the others (whole)*. Sums only, or maxima.
  virtual void start(OpKind kind, std::span<const OperandView> operands, Queue queue) = 0;
  /// Throws DeviceError where a rank or the network has failed meanwhile.
  virtual void check() = 0;
  /// Ends what waits for other ranks; for good. From any thread.
  virtual void abort() noexcept = 0;
};

/// A group of one rank: only an all-gather into another place moves anything.
std::unique_ptr<DeviceCommunicator> make_self_communicator();

/// What the ranks of a communicator have in common.
using NcclId = std::array<char, 128>;
NcclId new_nccl_id();

/// Called again and again while others are waited for; throws to give up.
using Poll = std::function<void()>;

/// NCCL on the current device. Returns once all `ranks` have called it with the same id, each from a thread or process
/// of its own. `poll` is kept.
std::unique_ptr<DeviceCommunicator> make_nccl_communicator(const NcclId& id, int rank, int ranks, Poll poll);

}  // namespace krigtune::cuda
