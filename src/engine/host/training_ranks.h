#pragma once
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "host/arena.h"
#include "host/emulated_link.h"
#include "host/processes.h"
#include "host/rank_executor.h"
#include "host/wiring.h"
#include "host/workers.h"
#include "krigtune/engine/trainer.h"

namespace krigtune {

/// Some process has not enough memory, and all know.
class MemoryMissing : public std::bad_alloc {};

/// The ranks of a job that live in this process: arenas, communicators, executors and their threads. All of them when
/// the process is alone, else the one of its own rank; then every call is made by all processes.
class TrainingRanks {
 public:
  /// `processes`: null when alone. It and the clock must outlive this. Throws MemoryMissing in all processes if one of
  /// them has not enough memory.
  TrainingRanks(StepPlan plan, const std::optional<EmulatedNetwork>& network, const Clock& clock,
                const TrainingOptions& options, Processes* processes);

  StepResult step();
  /// Of the last step.
  std::vector<OperationTime> operation_times(std::int64_t world_rank) const;
  void silence(bool silent);
  /// The clock of process 0 when the last step had ended, or the construction; the same in all processes.
  double now_s() const { return now_s_; }

  const StepPlan& plan() const { return plan_; }
  /// Values of all parameters of the tensor rank, in model order, without padding.
  std::vector<float> parameters(std::int64_t tensor_rank) const;
  std::int64_t arena_peak_bytes(Place place) const;

 private:
  struct Rank {
    Rank(const StepPlan& plan, std::int64_t world, bool observe) : world_rank(world), memory(plan, observe) {}

    std::int64_t world_rank;
    RankMemory memory;
    EmulatedLink within_node;
    EmulatedLink between_nodes;                                ///< also that of a network without nodes
    std::vector<std::unique_ptr<Communicator>> communicators;  ///< decorators behind what they decorate
    std::unique_ptr<RankExecutor> executor;
  };

  void make_ranks();
  std::unique_ptr<Communicator> emulated(Rank& rank, Group group, Communicator& base) const;
  StreamCommunicators connect(Rank& rank) const;
  void run(const Rank& rank, Stream stream) const;
  void abort();
  const Rank* find(std::int64_t world_rank) const;
  std::span<const std::byte> fetch(const TensorHome& home, std::int64_t data_rank, std::int64_t tensor_rank,
                                   std::vector<std::byte>& room) const;

  StepPlan plan_;
  std::optional<EmulatedNetwork> network_;
  TrainingOptions options_;
  const Clock& clock_;
  Processes* processes_;
  std::unique_ptr<Wiring> wiring_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<Workers> workers_;  ///< last: its threads use all of the above
  std::int64_t steps_ = 0;
  double now_s_ = 0.0;
  bool failed_ = false;
};

}  // namespace krigtune
