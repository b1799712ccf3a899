#pragma once
#include <array>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/device_communicator.h"
#include "engine/cuda/device_memory.h"
#include "engine/cuda/kernels/device_kernel.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/host/bound_plan.h"

namespace krigtune::cuda {

/// The work of one operation on the host's stream. A thread of the driver runs it once per step, with one more thread
/// for each part but the first. It must not call CUDA, and no exception may leave it.
struct HostWork {
  struct Part {
    engine::BoundOperation bound;
    std::vector<float> scratch;
    std::exception_ptr failure;
  };
  std::vector<Part> parts;
  engine::StepContext context;  ///< with the number of the next step
  std::exception_ptr failure;   ///< of the first part that failed

  static void run(void* self);
};

/// An operation of a plan with pointers into one device's memory, and the events that order it.
struct DeviceOperation {
  const plan::Operation* operation = nullptr;
  DeviceKernel kernel = nullptr;  ///< null: a collective, or computed by the host
  std::vector<engine::OperandView> operands;
  std::unique_ptr<HostWork> host;  ///< set if the host computes the operation
  std::vector<cudaEvent_t> waits;  ///< ends of the operations of other streams for which it waits
  Event end;                       ///< null: no other stream waits for it
  Event queued;                    ///< when its stream reached it; null: it waits for no other stream
  Span span;
  const DeviceOperation* second = nullptr;  ///< next operation of its stream, if one kernel executes both
  PairKernel pair = nullptr;                ///< that kernel
  bool is_done_before = false;              ///< it is executed as the `second` of another operation
  const DeviceOperation* third = nullptr;   ///< follows `second`, if the same product sums its bias gradient
  bool is_bias_done = false;                ///< it is executed as the `third` of another operation

  /// Returns the times in seconds after `begin`. All events must have passed.
  plan::OperationTime time_after(const Event& begin) const;
};

/// Returns the operation's operands in one device's memory, as `rank` of its group. Throws std::logic_error if the host
/// would have to compute with device memory.
std::vector<engine::OperandView> operands_of(const plan::StepPlan& plan, const DeviceMemory& memory,
                                             const plan::Operation& operation, std::int64_t rank);

/// Returns the bound operations by OpId. `context` is that of the first step. `host_threads` is the number of threads
/// that an update on the host may use. Throws what operands_of throws.
std::vector<DeviceOperation> bind_operations(const plan::StepPlan& plan, const DeviceMemory& memory,
                                             const engine::GroupRanks& ranks, const engine::StepContext& context,
                                             int host_threads);

/// The communicator of each group; null if there is none.
using DeviceCommunicators = std::array<DeviceCommunicator*, schedule::kGroupCount>;

struct ExecutionOptions {
  bool graph = false;             ///< replay a step that was captured as a CUDA graph
  bool time_every_step = false;   ///< time the operations of every step; otherwise of the first and every eighth
  int host_threads = 1;           ///< for updates on the host: cores that only this process uses
  bool hopper_attention = false;  ///< DeviceCall::hopper_attention
};

/// The result of a finished step.
struct FinishedStep {
  double step_time_s = 0.0;
  double mean_loss = 0.0;
  bool timed = false;  ///< its operations were timed, which makes it longer
};

/// Executes a plan as one rank on the current device. The plan's logical streams are CUDA streams, and its waits are
/// events. The host only queues operations, in the plan's order, and reads nothing in between. The constructor
/// allocates everything, except what a captured graph needs, which is allocated after the first step.
class DeviceExecutor {
 public:
  /// The largest number of steps that are queued and not finished: while one runs, the next one waits behind it.
  static constexpr std::size_t kMostInFlight = 2;

  /// The plan must pass check_structure. The plan, the memory and the communicators must outlive the executor.
  /// `context` is that of the first step. Measures which way of multiplying matrices is fastest, so the contents of the
  /// memory are undefined afterwards.
  DeviceExecutor(const plan::StepPlan& plan, const DeviceMemory& memory, const engine::StepContext& context,
                 const DeviceCommunicators& communicators, const ExecutionOptions& options = {});
  ~DeviceExecutor();
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  /// Returns whether the next step must be replayed but no graph has been captured yet.
  bool needs_graph() const { return options_.graph && !graph_ && !is_timed(started_); }
  /// Captures a step as a graph, which changes nothing else. If it fails, there is no graph, and the reason is
  /// returned; otherwise the result is empty.
  std::string capture();
  /// Ends the use of graphs: no later step is replayed.
  void do_without_graph();
  /// Queues the next step. Fewer than kMostInFlight steps may be in flight. If the step needs a graph, it must have
  /// been captured.
  void start();
  std::size_t in_flight() const { return started_ - finished_; }
  /// Returns whether the oldest step in flight is done. Throws the error that occurred on the device, in a communicator
  /// or on the host.
  bool oldest_is_done();
  /// Returns the result of the oldest step in flight, which must be done.
  FinishedStep finish();

  /// Switches communication off or on again. No step may be in flight.
  void silence(bool silent);

  /// Returns the times of the operations by OpId, in seconds from the step's begin. They are those of the last finished
  /// step whose operations were timed.
  const std::vector<plan::OperationTime>& operation_times() const { return operation_times_; }

 private:
  /// The data of one step in flight.
  struct Slot {
    Span span;
    Event finished = make_order_event();
    PinnedBytes losses;
    bool timed = false;
  };

  void make_streams();
  void join_pairs();
  void join_bias_gradients();
  void prepare_products();
  DeviceCall call_of(const DeviceOperation& bound) const;
  Queue queue_of(schedule::Stream stream) const { return streams_[schedule::index_of(stream)].get(); }
  std::int64_t* step_number() const { return reinterpret_cast<std::int64_t*>(step_number_.get()); }
  Slot& slot_of(std::size_t step) { return slots_[step % kMostInFlight]; }
  std::size_t loss_bytes() const;
  bool is_timed(std::size_t step) const;
  void queue_operations(bool timed);
  void enqueue(DeviceOperation& bound, bool timed);
  void execute(DeviceOperation& bound);

  const plan::StepPlan& plan_;
  engine::StepContext context_;
  DeviceCommunicators communicators_;
  ExecutionOptions options_;
  std::array<StreamHandle, schedule::kStreamCount> streams_;  ///< null if unused; the compute stream always exists
  std::array<DeviceBytes, schedule::kStreamCount> scratch_;
  std::unique_ptr<Gemm> gemm_;
  DeviceBytes step_number_;  ///< one std::int64_t: number of steps done
  std::vector<DeviceOperation> operations_;
  Event begin_ = make_order_event();
  std::array<Event, schedule::kStreamCount> joins_;
  GraphExec graph_;
  const std::byte* losses_on_device_;
  std::array<Slot, kMostInFlight> slots_;
  std::size_t started_ = 0;  ///< these two count steps
  std::size_t finished_ = 0;
  std::vector<plan::OperationTime> operation_times_;
  bool silent_ = false;
};

}  // namespace krigtune::cuda
