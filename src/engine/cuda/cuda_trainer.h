#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device_communicator.h"
#include "host/bound_plan.h"
#include "host/workers.h"
#include "krigtune/core/clock.h"
#include "krigtune/engine/trainer.h"

namespace krigtune::cuda {

/// GPUs that can be used. Throws DeviceError (kNoDevice) with the runtime's reason if there are none.
int usable_gpus();

/// Trains the plan's model on GPUs of this machine: rank r on GPU r, each queued by a thread of its own.
class CudaTrainer {
 public:
  /// Allocates everything and initialises the parameters. `clock` must outlive it. Throws DeviceError, and
  /// EnvironmentError for more ranks than GPUs.
  CudaTrainer(StepPlan plan, const Clock& clock, const TrainingOptions& options = {});
  ~CudaTrainer();
  CudaTrainer(const CudaTrainer&) = delete;
  CudaTrainer& operator=(const CudaTrainer&) = delete;

  /// Executes the whole plan once. Throws DeviceError (kTimeout) if it hangs; after any failure it is not usable.
  StepResult step();

  /// As Trainer's.
  std::vector<float> parameters(std::int64_t tensor_rank = 0) const;
  std::string parameters_fnv1a64() const;
  std::int64_t arena_peak_bytes() const;

 private:
  struct Rank;

  GroupRanks groups_of(std::int64_t index) const;
  void make_ids();
  void run(std::int64_t index);
  void build(std::int64_t index);
  void connect(Rank& rank, std::int64_t index);
  void initialise(const Rank& rank, std::int64_t index) const;
  void take_step(Rank& rank, std::int64_t index);
  void poll() const;
  void abort() noexcept;

  StepPlan plan_;
  const Clock& clock_;
  TrainingOptions options_;
  /// By stream, group and which of its kind; empty where a stream has no collectives in such groups.
  std::array<std::array<std::vector<NcclId>, kGroupCount>, kStreamCount> ids_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<bool> aborted_{false};
  double deadline_s_ = 0.0;
  std::int64_t steps_ = 0;
  std::unique_ptr<Workers> workers_;  ///< last: its threads use all of the above
};

}  // namespace krigtune::cuda
