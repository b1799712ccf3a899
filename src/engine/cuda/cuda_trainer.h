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

/// Returns the number of usable GPUs. Throws DeviceError (kNoDevice) with the runtime's reason if there are none.
int usable_gpus();

/// Throws DeviceError (kNoDevice) if this program's kernels were not compiled for GPU `device`. The first kernel would
/// otherwise fail with CUDA's "no kernel image".
void require_code_for(int device);

/// The place of this process's rank.
struct DeviceWorld {
  int device = 0;  ///< number of the GPU on this machine
  /// If set, this GPU plays rank 0 and there are no other ranks. Their part of each collective is made up: its bytes
  /// are moved, and the stream is held for as long as this network would take.
  std::optional<workload::EmulatedNetwork> network{};
  std::int64_t ranks_per_node = 1;  ///< ranks that share a node of the network, and the cores of this machine
  bool hopper_attention = false;    ///< DeviceCall::hopper_attention; it must work here (attention_check.h)
};

/// Trains the plan's model on a GPU as one rank. Every rank is a process of its own, and all of them must call every
/// function. While the trainer waits for a step, the next one is already queued (up to options.steps), so the functions
/// that describe the model return its state after that next step.
class CudaTrainer {
 public:
  /// Allocates everything and initialises the parameters. `processes` is null if this process is alone. It and the
  /// clock must outlive the trainer. Make all calls from one thread. Throws DeviceError, EnvironmentError if the GPU
  /// does not exist, and UserError if the GPU is too slow for an emulated network.
  CudaTrainer(plan::StepPlan plan, const Clock& clock, const engine::TrainingOptions& options = {},
              engine::Processes* processes = nullptr, const DeviceWorld& world = {});
  ~CudaTrainer();
  CudaTrainer(const CudaTrainer&) = delete;
  CudaTrainer& operator=(const CudaTrainer&) = delete;

  /// Executes the whole plan once. Throws DeviceError (kHang) if it hangs. The trainer is unusable after any failure.
  engine::StepResult step();

  // These functions do the same as those of engine::Trainer.
  double now_s() const { return now_s_; }
  const plan::StepPlan& plan() const { return plan_; }
  std::vector<plan::OperationTime> operation_times(std::int64_t world_rank) const;
  void silence(bool silent);
  /// These two return an empty result with an emulated network, where most parameters do not exist.
  std::vector<float> parameters(std::int64_t tensor_rank = 0);
  std::string parameters_fnv1a64();
  std::int64_t arena_peak_bytes(schedule::Place place = schedule::Place::kDevice);
  /// Returns how an emulated network was imitated when training began; empty without one.
  const std::vector<engine::PacedCollective>& pacing() const { return pacing_; }
  /// Returns what the GPU's memory holds. Call it once training has begun.
  engine::GpuMemoryUse memory_use() const;
  /// Returns notes for the user, one line each.
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
  std::unique_ptr<EmulatedDeviceLink> link_;  ///< null without an emulated network
  std::array<std::unique_ptr<DeviceCommunicator>, schedule::kGroupCount> communicators_;
  std::unique_ptr<DeviceExecutor> executor_;
  std::int64_t context_bytes_ = 0;
  std::int64_t communicators_bytes_ = 0;
  std::vector<engine::PacedCollective> pacing_;
  std::vector<std::string> notes_;
  std::deque<FinishedStep> finished_;  ///< steps that were not returned yet
  double deadline_s_ = 0.0;
  double now_s_ = 0.0;
  std::int64_t started_ = 0;  ///< these two count steps
  std::int64_t returned_ = 0;
};

}  // namespace krigtune::cuda
