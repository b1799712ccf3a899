#pragma once
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "engine/cuda/device_communicator.h"
#include "engine/cuda/device_executor.h"
#include "engine/cuda/device_memory.h"
#include "engine/host/processes.h"
#include "engine/trainer.h"

namespace krigtune::cuda {

/// GPUs that can be used. Throws DeviceError (kNoDevice) with the runtime's reason if there are none.
int usable_gpus();

/// Throws DeviceError with kNoDevice where this program's kernels were not compiled for GPU `device`, which would fail
/// at the first of them with CUDA's "no kernel image".
void require_code_for(int device);

/// Where this process's rank is.
struct DeviceWorld {
  int device = 0;  ///< GPU of this machine
  /// This GPU plays rank 0 and there are no others: their part of each collective is made up, its bytes are moved and
  /// the stream is held as long as this network would take.
  std::optional<workload::EmulatedNetwork> network{};
  std::int64_t ranks_per_node = 1;  ///< that share the network's node, and the cores of this machine
  bool hopper_attention = false;    ///< DeviceCall::hopper_attention, which works here (attention_check.h)
};

/// Trains the plan's model on a GPU as one rank; every rank is a process of its own, and every function is called by
/// all of them alike. While a step is waited for the next one is queued already (up to options.steps): what is asked
/// about the model is then the state after that one.
class CudaTrainer {
 public:
  /// Allocates everything and initialises the parameters. `processes`: null when alone. It and the clock must outlive
  /// this. All calls are made from one thread. Throws DeviceError, EnvironmentError for a GPU that is not there, and
  /// UserError for an emulated network that the GPU is too slow for.
  CudaTrainer(plan::StepPlan plan, const Clock& clock, const engine::TrainingOptions& options = {},
              engine::Processes* processes = nullptr, const DeviceWorld& world = {});
  ~CudaTrainer();
  CudaTrainer(const CudaTrainer&) = delete;
  CudaTrainer& operator=(const CudaTrainer&) = delete;

  /// Executes the whole plan once. Throws DeviceError (kHang) if it hangs; after any failure it is not usable.
  engine::StepResult step();

  // As Trainer's.
  double now_s() const { return now_s_; }
  const plan::StepPlan& plan() const { return plan_; }
  std::vector<plan::OperationTime> operation_times(std::int64_t world_rank) const;
  void silence(bool silent);
  /// Empty in an emulated world, where most of them are nowhere; likewise the next.
  std::vector<float> parameters(std::int64_t tensor_rank = 0);
  std::string parameters_fnv1a64();
  std::int64_t arena_peak_bytes(schedule::Place place = schedule::Place::kDevice);
  /// How an emulated network was imitated when training began; empty without one.
  const std::vector<engine::PacedCollective>& pacing() const { return pacing_; }
  /// Once training has begun.
  engine::GpuMemoryUse memory_use() const;
  /// What a person should know, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::int64_t world_rank() const { return processes_ == nullptr ? 0 : processes_->rank(); }
  engine::StepContext first_context() const;
  void check_world() const;
  void connect();
  std::unique_ptr<DeviceCommunicator> make_communicator(schedule::Group group);
  NcclId common_id(schedule::Group group);
  void initialise() const;
  void test_pacing(const DeviceCommunicators& communicators);
  void start_step();
  void capture_step();
  bool runs_ahead() const;
  void wait_for_all();
  FinishedStep wait_for_oldest();
  void share(std::int64_t holder, std::span<std::byte> bytes) const;
  std::vector<float> fetch(const plan::TensorHome& home, std::int64_t data_rank, std::int64_t tensor_rank) const;
  void poll() const;

  plan::StepPlan plan_;
  const Clock& clock_;
  engine::TrainingOptions options_;
  engine::Processes* processes_;
  DeviceWorld world_;
  engine::GroupRanks ranks_;  ///< of this process, by group
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<EmulatedDeviceLink> link_;  ///< of an emulated world
  std::array<std::unique_ptr<DeviceCommunicator>, schedule::kGroupCount> communicators_;
  std::unique_ptr<DeviceExecutor> executor_;
  std::int64_t context_bytes_ = 0;
  std::int64_t communicators_bytes_ = 0;
  std::vector<engine::PacedCollective> pacing_;
  std::vector<std::string> notes_;
  std::deque<FinishedStep> finished_;  ///< and not yet returned
  double deadline_s_ = 0.0;
  double now_s_ = 0.0;
  std::int64_t started_ = 0;  ///< steps
  std::int64_t returned_ = 0;
};

}  // namespace krigtune::cuda
