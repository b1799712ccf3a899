#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/device_communicator.h"
#include "host/bound_plan.h"
#include "host/processes.h"
#include "host/workers.h"
#include "krigtune/core/clock.h"
#include "krigtune/engine/trainer.h"

namespace krigtune::cuda {

/// GPUs that can be used. Throws DeviceError (kNoDevice) with the runtime's reason if there are none.
int usable_gpus();

/// Trains the plan's model on GPUs: as one process, rank r on GPU r of this machine, each queued by a thread of its
/// own; as one process a rank, each on the GPU of its local rank. Then every function is called by all processes alike.
class CudaTrainer {
 public:
  /// Allocates everything and initialises the parameters. `processes`: null when alone. It and the clock must outlive
  /// this. `local_rank`: of this process. Throws DeviceError, and EnvironmentError for more ranks than GPUs.
  CudaTrainer(StepPlan plan, const Clock& clock, const TrainingOptions& options = {}, Processes* processes = nullptr,
              int local_rank = 0);
  ~CudaTrainer();
  CudaTrainer(const CudaTrainer&) = delete;
  CudaTrainer& operator=(const CudaTrainer&) = delete;

  /// Executes the whole plan once. Throws DeviceError (kHang) if it hangs; after any failure it is not usable.
  StepResult step();

  // As Trainer's.
  double now_s() const { return now_s_; }
  const StepPlan& plan() const { return plan_; }
  std::vector<OperationTime> operation_times(std::int64_t world_rank) const;
  void silence(bool silent);
  std::vector<float> parameters(std::int64_t tensor_rank = 0) const;
  std::string parameters_fnv1a64() const;
  std::int64_t arena_peak_bytes(Place place = Place::kDevice) const;

 private:
  struct Rank;

  GroupRanks groups_of(std::int64_t world_rank) const;
  void check_gpus(int local_rank) const;
  void make_ids();
  void run(std::size_t local, int device);
  void build(std::size_t local);
  void connect(Rank& rank);
  void initialise(const Rank& rank) const;
  void take_step(Rank& rank);
  const Rank* find(std::int64_t world_rank) const;
  void share(std::int64_t holder, std::span<std::byte> bytes) const;
  std::vector<float> fetch(const TensorHome& home, std::int64_t data_rank, std::int64_t tensor_rank) const;
  void poll() const;
  void abort() noexcept;

  StepPlan plan_;
  const Clock& clock_;
  TrainingOptions options_;
  Processes* processes_;
  /// By stream, group and which of its kind; empty where a stream has no collectives in such groups.
  std::array<std::array<std::vector<NcclId>, kGroupCount>, kStreamCount> ids_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> built_{false};
  double deadline_s_ = 0.0;
  double now_s_ = 0.0;
  std::int64_t steps_ = 0;
  std::unique_ptr<Workers> workers_;  ///< last: its threads use all of the above
};

}  // namespace krigtune::cuda
