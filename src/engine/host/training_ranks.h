#pragma once
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "engine/host/arena.h"
#include "engine/host/bound_plan.h"
#include "engine/host/communicator.h"
#include "engine/host/processes.h"
#include "engine/host/rank_executor.h"
#include "engine/trainer.h"

namespace krigtune::engine {

/// Connects the ranks of a plan. There is one set of groups for each stream with collectives, and in it one group for
/// each data and tensor group, so that streams never wait for one another in a collective.
class Wiring {
 public:
  virtual ~Wiring() = default;
  /// Returns the communicator of a rank of this process, or null if the plan has no such collectives.
  virtual std::unique_ptr<Communicator> connect(schedule::Stream stream, schedule::Group group,
                                                std::int64_t world_rank) = 0;
  /// Called when a rank has failed: makes all other ranks of this process throw Aborted, now and later. Safe from any
  /// thread.
  virtual void abort() = 0;
};

/// All ranks are threads of this process. The communicators must not outlive the wiring.
std::unique_ptr<Wiring> wire_threads(const plan::StepPlan& plan, const Clock& clock);
/// Each rank is a process. All processes connect the same streams and groups in the same order.
std::unique_ptr<Wiring> wire_processes(const plan::StepPlan& plan, Processes& processes, const Clock& clock);

/// Returns the data rank and the tensor rank.
inline GroupRanks group_ranks(const plan::StepPlan& plan, std::int64_t world_rank) {
  return {world_rank / plan.tensor_ranks, world_rank % plan.tensor_ranks};
}
/// Returns the world ranks of a rank's group, in the order of their ranks within it.
std::vector<int> members(const plan::StepPlan& plan, schedule::Group group, std::int64_t world_rank);

/// Some process has too little memory, and all processes know it.
class MemoryMissing : public std::bad_alloc {};

/// The ranks of a job that run in this process, with their arenas, communicators, executors and threads: all ranks if
/// the process is alone, otherwise the one of its own rank. In the second case all processes must make every call.
class TrainingRanks {
 public:
  /// `processes`: null if alone. They and the clock must outlive the object. Throws MemoryMissing in all processes if
  /// one of them has too little memory.
  TrainingRanks(plan::StepPlan plan, const std::optional<workload::EmulatedNetwork>& network, const Clock& clock,
                const TrainingOptions& options, Processes* processes);

  StepResult step();
  /// Returns the times of the last step's operations.
  std::vector<plan::OperationTime> operation_times(std::int64_t world_rank) const;
  void silence(bool silent);
  /// Returns the time of process 0's clock after the last step, or after the construction; the same in all processes.
  double now_s() const { return now_s_; }

  const plan::StepPlan& plan() const { return plan_; }
  /// Returns all parameters of the tensor rank in model order, without padding.
  std::vector<float> parameters(std::int64_t tensor_rank) const;
  std::int64_t arena_peak_bytes(schedule::Place place) const;

 private:
  struct Rank {
    Rank(const plan::StepPlan& plan, std::int64_t world, bool observe) : world_rank(world), memory(plan, observe) {}

    std::int64_t world_rank;
    RankMemory memory;
    EmulatedLink within_node;
    EmulatedLink between_nodes;                                ///< also used for a network without nodes
    std::vector<std::unique_ptr<Communicator>> communicators;  ///< decorators come after what they decorate
    std::unique_ptr<RankExecutor> executor;
  };

  void make_ranks();
  std::unique_ptr<Communicator> emulated(Rank& rank, schedule::Group group, Communicator& base) const;
  StreamCommunicators connect(Rank& rank) const;
  void abort();
  const Rank* find(std::int64_t world_rank) const;
  std::span<const std::byte> fetch(const plan::TensorHome& home, std::int64_t data_rank, std::int64_t tensor_rank,
                                   std::vector<std::byte>& room) const;

  plan::StepPlan plan_;
  std::optional<workload::EmulatedNetwork> network_;
  TrainingOptions options_;
  const Clock& clock_;
  Processes* processes_;
  std::unique_ptr<Wiring> wiring_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<Workers> workers_;  ///< last, because its threads use all of the above
  std::int64_t steps_ = 0;
  double now_s_ = 0.0;
  bool failed_ = false;
};

}  // namespace krigtune::engine
