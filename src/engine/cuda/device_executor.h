#pragma once
#include <array>
#include <exception>
#include <memory>
#include <vector>

#include "cuda/device_communicator.h"
#include "cuda/device_memory.h"
#include "cuda/handles.h"
#include "cuda/kernels/device_kernel.h"
#include "host/bound_plan.h"

namespace krigtune::cuda {

/// The communicator of each stream and group, null where there is none.
using DeviceCommunicators = std::array<std::array<DeviceCommunicator*, kGroupCount>, kStreamCount>;

/// Executes a plan as one rank on the current device. The plan's logical streams are CUDA streams, its waits events;
/// the host only queues, in the plan's order, and reads nothing in between. All is allocated by the constructor.
class DeviceExecutor {
 public:
  /// The plan must pass check_plan. It and the rest must outlive this.
  DeviceExecutor(const StepPlan& plan, const DeviceMemory& memory, const GroupRanks& ranks,
                 const DeviceCommunicators& communicators);
  ~DeviceExecutor();
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  /// Queues one step.
  void start(const StepContext& context);
  /// Whether what was queued is done. Throws what went wrong on the device, in a communicator or in a host kernel.
  bool done();

  /// From now on collectives communicate nothing (or do so again).
  void silence(bool silent) { silent_ = silent; }

  // Of the last step, once it is done.
  double step_time_s() const { return step_.elapsed_s(); }
  double mean_loss() const;
  /// By OpId, in seconds from the step's begin.
  std::vector<OperationTime> operation_times() const;

 private:
  struct Bound;
  struct HostWork;

  void bind(const StepPlan& plan, const DeviceMemory& memory, const GroupRanks& ranks);
  void bind_order(const StepPlan& plan);
  void prepare_products();
  DeviceCall call_of(const Bound& bound) const;
  Queue queue_of(Stream stream) const { return streams_[index_of(stream)].get(); }
  std::int64_t* step_number() const { return reinterpret_cast<std::int64_t*>(steps_done_.get()); }
  void begin_step();
  void end_step();
  void enqueue(Bound& bound);
  void execute(Bound& bound);

  const StepPlan& plan_;
  DeviceCommunicators communicators_;
  std::array<StreamHandle, kStreamCount> streams_;  ///< null where the plan has no operations; compute always
  std::array<DeviceBytes, kStreamCount> scratch_;
  std::unique_ptr<Gemm> gemm_;
  DeviceBytes steps_done_;  ///< an std::int64_t
  std::vector<Bound> operations_;
  StepContext context_;
  bool silent_ = false;
  Span step_;
  std::array<Event, kStreamCount> joins_;
  Event finished_ = make_order_event();
  const std::byte* losses_on_device_;
  PinnedBytes losses_;
};

}  // namespace krigtune::cuda
