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

/// What the driver's thread computes between two operations of the host's stream, once a step, with a thread for each
/// part but the first. It may call nothing of CUDA, and nothing may leave it.
struct HostWork {
  struct Part {
    engine::BoundOperation bound;
    std::vector<float> scratch;
    std::exception_ptr failure;
  };
  std::vector<Part> parts;
  engine::StepContext context;  ///< with the number of the step that comes next
  std::exception_ptr failure;   ///< of the first part that has failed

  static void run(void* self);
};

/// An operation of a plan with pointers into one device's memory, and the events that order it.
struct DeviceOperation {
  const plan::Operation* operation = nullptr;
  DeviceKernel kernel = nullptr;  ///< null: a collective, or the host's
  std::vector<engine::OperandView> operands;
  std::unique_ptr<HostWork> host;  ///< of the host's stream
  std::vector<cudaEvent_t> waits;  ///< ends of operations of other streams
  Event end;                       ///< null: nobody waits for it
  Event queued;                    ///< when its stream came to it; null: it waits for nobody
  Span span;
  const DeviceOperation* second = nullptr;  ///< the next one of its stream, if one kernel executes both
  PairKernel pair = nullptr;                ///< that kernel
  bool is_done_before = false;              ///< as another one's `second`
  const DeviceOperation* third = nullptr;   ///< behind `second`, if its bias gradient is summed along
  bool is_bias_done = false;                ///< as another one's `third`

  /// Seconds after `begin`. All events must have passed.
  plan::OperationTime time_after(const Event& begin) const;
};

/// The operation's operands in one device's memory, as `rank` of its group. Throws std::logic_error where the host is
/// to compute with device memory.
std::vector<engine::OperandView> operands_of(const plan::StepPlan& plan, const DeviceMemory& memory,
                                             const plan::Operation& operation, std::int64_t rank);

/// By OpId. `context`: of the first step; `host_threads`: that an update on the host may take. Throws what
/// operands_of throws.
std::vector<DeviceOperation> bind_operations(const plan::StepPlan& plan, const DeviceMemory& memory,
                                             const engine::GroupRanks& ranks, const engine::StepContext& context,
                                             int host_threads);

/// The communicator of each group, null where there is none.
using DeviceCommunicators = std::array<DeviceCommunicator*, schedule::kGroupCount>;

struct ExecutionOptions {
  bool graph = false;             ///< replay a step that was captured as a CUDA graph
  bool time_every_step = false;   ///< time the operations of every step; otherwise of the first and of every eighth
  int host_threads = 1;           ///< for updates on the host: cores that are this process's own
  bool hopper_attention = false;  ///< DeviceCall::hopper_attention
};

/// A step that is done.
struct FinishedStep {
  double step_time_s = 0.0;
  double mean_loss = 0.0;
  bool timed = false;  ///< its operations, which makes it longer
};

/// Executes a plan as one rank on the current device. The plan's logical streams are CUDA streams, its waits events;
/// the host only queues, in the plan's order, and reads nothing in between. All is allocated by the constructor, what a
/// captured graph needs excepted, which is had after the first step.
class DeviceExecutor {
 public:
  /// How many steps may be queued and not finished: while one runs, the next one waits behind it.
  static constexpr std::size_t kMostInFlight = 2;

  /// The plan must pass check_structure. It and the rest must outlive this. `context`: of the first step. Tries how
  /// matrices are multiplied fastest: leaves anything in the memory.
  DeviceExecutor(const plan::StepPlan& plan, const DeviceMemory& memory, const engine::StepContext& context,
                 const DeviceCommunicators& communicators, const ExecutionOptions& options = {});
  ~DeviceExecutor();
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;

  /// Whether the next step is to be replayed and no graph was captured.
  bool needs_graph() const { return options_.graph && !graph_ && !is_timed(started_); }
  /// Captures a step as a graph, which changes nothing else. Returns why it could not; then there is no graph.
  std::string capture();
  /// From now on nothing is replayed.
  void do_without_graph();
  /// Queues the next step. Fewer than kMostInFlight may be in flight. Where it needs a graph, one must be captured.
  void start();
  std::size_t in_flight() const { return started_ - finished_; }
  /// Whether the oldest step in flight is done. Throws what went wrong on the device, in a communicator or on the host.
  bool oldest_is_done();
  /// The oldest step, which is done.
  FinishedStep finish();

  /// From now on collectives communicate nothing (or do so again). While nothing is in flight.
  void silence(bool silent);

  /// By OpId, in seconds from the step's begin: of the last finished step whose operations were timed.
  const std::vector<plan::OperationTime>& operation_times() const { return operation_times_; }

 private:
  /// What each step in flight has of its own.
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
  std::array<StreamHandle, schedule::kStreamCount> streams_;  ///< null where the plan has no operations; compute always
  std::array<DeviceBytes, schedule::kStreamCount> scratch_;
  std::unique_ptr<Gemm> gemm_;
  DeviceBytes step_number_;  ///< an std::int64_t: steps done
  std::vector<DeviceOperation> operations_;
  Event begin_ = make_order_event();
  std::array<Event, schedule::kStreamCount> joins_;
  GraphExec graph_;
  const std::byte* losses_on_device_;
  std::array<Slot, kMostInFlight> slots_;
  std::size_t started_ = 0;  ///< steps, likewise the next
  std::size_t finished_ = 0;
  std::vector<plan::OperationTime> operation_times_;
  bool silent_ = false;
};

}  // namespace krigtune::cuda
