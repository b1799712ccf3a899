#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "plan/step_breakdown.h"
#include "plan/step_plan.h"
#include "workload/workload.h"

namespace krigtune::engine {

class Processes;

struct TrainingOptions {
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  bool observe_arena = true;  ///< fill the arenas with a pattern first, so that arena_peak_bytes can scan for changes
  // On GPUs only:
  std::optional<std::int64_t> steps{};  ///< the last one that will be asked for: no further one is queued ahead
  bool time_every_step = false;         ///< operation_times will be asked for after every step
  bool graph = false;                   ///< replay steps that were captured as a CUDA graph
};

/// One optimizer step as it was executed.
struct StepResult {
  double step_time_s = 0.0;         ///< from all ranks started to all ranks done
  double exposed_comm_s = 0.0;      ///< StepBreakdown::exposed_comm_s, largest over ranks
  double loss = 0.0;                ///< mean over ranks and micro-steps, before the update
  plan::StepBreakdown breakdown{};  ///< of rank 0
  // Kernels of the compute stream, of the rank in the middle and of the one that takes longest: far apart, one rank is
  // slow and the others wait for it.
  double median_rank_kernels_s = 0.0;
  double slowest_rank_kernels_s = 0.0;
};

/// Trains the plan's model on CPU ranks, each with an arena of the planned size and one FIFO worker per logical stream.
/// All ranks are threads of this process, or each is a process; then every function is called by all of them alike.
/// Deterministic: sums over ranks go in rank order, and threads and processes give the same bits.
class Trainer {
 public:
  /// Allocates one arena a rank and initialises the parameters. Throws std::bad_alloc. `processes`: one for each rank
  /// of the plan; null: this one has all. The clock and they must outlive it.
  Trainer(plan::StepPlan plan, const std::optional<workload::EmulatedNetwork>& network, const Clock& clock,
          TrainingOptions options = {}, Processes* processes = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Executes the whole plan once on all ranks. Throws std::runtime_error if a rank fails; it is then not usable.
  StepResult step();
  /// The clock of process 0 when the last step had ended, or the construction: the same in all processes, so that they
  /// decide alike.
  double now_s() const;
  /// When each operation of the last step was executed, by OpId, on that rank.
  std::vector<plan::OperationTime> operation_times(std::int64_t world_rank) const;
  const plan::StepPlan& plan() const;

  /// From now on collectives communicate nothing, in no time (or do so again): what a step takes without them. What is
  /// computed then means nothing.
  void silence(bool silent);

  /// All parameters of a tensor-parallel rank after the last step, in model order, without padding.
  std::vector<float> parameters(std::int64_t tensor_rank = 0) const;
  std::string parameters_fnv1a64() const;

  /// The highest byte changed since construction, found by scanning for the fill pattern; largest over ranks.
  /// Independent of the plan's own numbers: the scan goes on behind the planned end. Needs observe_arena.
  std::int64_t arena_peak_bytes(schedule::Place place = schedule::Place::kDevice) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::engine
