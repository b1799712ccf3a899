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
  std::optional<std::int64_t> steps{};  ///< the last step that will be requested; none is queued beyond it
  bool time_every_step = false;         ///< operation_times will be requested after every step
  bool graph = false;                   ///< replay steps that were captured as a CUDA graph
};

/// A collective of an emulated network as a GPU has imitated it, alone.
struct PacedCollective {
  schedule::OpKind kind{};
  std::int64_t wire_bytes = 0;  ///< sent by a rank
  double stated_s = 0.0;        ///< what the network needs
  double copies_s = 0.0;        ///< the copies in its place take where they are not held
  double held_s = 0.0;          ///< it took
};

/// What a GPU's memory holds beside the plan's arena.
struct GpuMemoryUse {
  std::int64_t total_bytes = 0;
  std::int64_t context_bytes = 0;        ///< at first: CUDA's context, and what other programs have
  std::int64_t communicators_bytes = 0;  ///< what opening NCCL's communicators has added
  std::int64_t rest_bytes = 0;           ///< what else was added: kernels, cuBLASLt, scratch memory, a captured graph

  std::int64_t beside_arena_bytes() const { return context_bytes + communicators_bytes + rest_bytes; }
};

/// One optimizer step as it was executed.
struct StepResult {
  double step_time_s = 0.0;         ///< from the start of all ranks to the end of all ranks
  double exposed_comm_s = 0.0;      ///< StepBreakdown::exposed_comm_s, the largest over ranks
  double loss = 0.0;                ///< mean over ranks and micro-steps, before the update
  plan::StepBreakdown breakdown{};  ///< of rank 0
  // Time of the compute stream's kernels on the median rank and on the slowest one. If they are far apart, one rank is
  // slow and the others wait for it.
  double median_rank_kernels_s = 0.0;
  double slowest_rank_kernels_s = 0.0;
  bool disturbed = false;  ///< it took longer because its operations were timed: no sample of step times
};

/// Trains the plan's model on CPU ranks, each with an arena of the planned size and one FIFO worker per logical stream.
/// Either all ranks are threads of this process, or each is a process; then all processes must call every function. The
/// results are deterministic: sums over ranks run in rank order, and threads and processes give the same bits.
class Trainer {
 public:
  /// Allocates one arena for each rank and initialises the parameters. Throws std::bad_alloc. `processes` has one
  /// process for each rank of the plan; if null, this process runs all ranks. It and the clock must outlive the
  /// trainer.
  Trainer(plan::StepPlan plan, const std::optional<workload::EmulatedNetwork>& network, const Clock& clock,
          TrainingOptions options = {}, Processes* processes = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Executes the whole plan once on all ranks. Throws std::runtime_error if a rank fails; the trainer is then
  /// unusable.
  StepResult step();
  /// Returns the time of process 0's clock after the last step, or after the construction. It is the same in all
  /// processes, so that they take the same decisions.
  double now_s() const;
  /// Returns when each operation of the last step was executed on that rank, by OpId.
  std::vector<plan::OperationTime> operation_times(std::int64_t world_rank) const;
  const plan::StepPlan& plan() const;

  /// Switches communication off or on again. Without it, collectives take no time, which shows the cost of the other
  /// operations; the numbers that are computed then are meaningless.
  void silence(bool silent);

  /// Returns all parameters of a tensor-parallel rank after the last step, in model order, without padding.
  std::vector<float> parameters(std::int64_t tensor_rank = 0) const;
  std::string parameters_fnv1a64() const;

  /// Returns the largest number of bytes over all ranks that were changed since construction: one more than the offset
  /// of the highest byte that differs from the fill pattern. Independent of the plan's own numbers, because the scan
  /// continues beyond the planned end. Needs observe_arena.
  std::int64_t arena_peak_bytes(schedule::Place place = schedule::Place::kDevice) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::engine
