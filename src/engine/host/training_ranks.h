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

/// Between whom the ranks of a plan communicate: one group for each stream with collectives, and within it one for each
/// data and tensor group, so that streams never wait for one another in it.
class Wiring {
 public:
  virtual ~Wiring() = default;
  /// The communicator of a rank of this process; null where the plan has no such collectives.
  virtual std::unique_ptr<Communicator> connect(schedule::Stream stream, schedule::Group group,
                                                std::int64_t world_rank) = 0;
  /// A rank has failed: frees all others of this process, now and later (they throw Aborted). From any thread.
  virtual void abort() = 0;
};

/// All ranks are threads of this process. The communicators must not outlive it.
std::unique_ptr<Wiring> wire_threads(const plan::StepPlan& plan, const Clock& clock);
/// Each rank is a process. All processes connect the same streams and groups in the same order.
std::unique_ptr<Wiring> wire_processes(const plan::StepPlan& plan, Processes& processes, const Clock& clock);

/// The data rank and the tensor rank.
inline GroupRanks group_ranks(const plan::StepPlan& plan, std::int64_t world_rank) {
  return {world_rank / plan.tensor_ranks, world_rank % plan.tensor_ranks};
}
/// The world ranks of a rank's group, in the order of their ranks within it.
std::vector<int> members(const plan::StepPlan& plan, schedule::Group group, std::int64_t world_rank);

/// Some process has not enough memory, and all know.
class MemoryMissing : public std::bad_alloc {};

/// The ranks of a job that live in this process: arenas, communicators, executors and their threads. All of them when
/// the process is alone, else the one of its own rank; then every call is made by all processes.
class TrainingRanks {
 public:
  /// `processes`: null when alone. It and the clock must outlive this. Throws MemoryMissing in all processes if one of
  /// them has not enough memory.
  TrainingRanks(plan::StepPlan plan, const std::optional<workload::EmulatedNetwork>& network, const Clock& clock,
                const TrainingOptions& options, Processes* processes);

  StepResult step();
  /// Of the last step.
  std::vector<plan::OperationTime> operation_times(std::int64_t world_rank) const;
  void silence(bool silent);
  /// The clock of process 0 when the last step had ended, or the construction; the same in all processes.
  double now_s() const { return now_s_; }

  const plan::StepPlan& plan() const { return plan_; }
  /// Values of all parameters of the tensor rank, in model order, without padding.
  std::vector<float> parameters(std::int64_t tensor_rank) const;
  std::int64_t arena_peak_bytes(schedule::Place place) const;

 private:
  struct Rank {
    Rank(const plan::StepPlan& plan, std::int64_t world, bool observe) : world_rank(world), memory(plan, observe) {}

    std::int64_t world_rank;
    RankMemory memory;
    EmulatedLink within_node;
    EmulatedLink between_nodes;                                ///< also that of a network without nodes
    std::vector<std::unique_ptr<Communicator>> communicators;  ///< decorators behind what they decorate
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
  std::unique_ptr<Workers> workers_;  ///< last: its threads use all of the above
  std::int64_t steps_ = 0;
  double now_s_ = 0.0;
  bool failed_ = false;
};

}  // namespace krigtune::engine
