#pragma once
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "host/arena.h"
#include "host/emulated_link.h"
#include "host/rank_executor.h"
#include "host/thread_communicator.h"
#include "host/workers.h"
#include "krigtune/engine/trainer.h"

namespace krigtune {

/// All ranks of a job in this process: arenas, communicators (one group for each stream with collectives), executors
/// and their threads.
class TrainingRanks {
 public:
  TrainingRanks(StepPlan plan, const std::optional<EmulatedNetwork>& network, const Clock& clock,
                const TrainingOptions& options);

  StepResult step();
  /// Of the last step.
  std::span<const OperationTime> operation_times(std::int64_t rank) const;
  void silence(bool silent);

  const StepPlan& plan() const { return plan_; }
  /// Values of all parameters of the tensor rank, in model order, without padding.
  std::vector<float> parameters(std::int64_t tensor_rank) const;
  std::int64_t arena_peak_bytes(Place place) const;

 private:
  struct Rank {
    Rank(const StepPlan& plan, bool observe) : memory(plan, observe) {}

    RankMemory memory;
    std::optional<EmulatedLink> link;
    std::vector<std::unique_ptr<Communicator>> communicators;  ///< decorators behind what they decorate
    std::unique_ptr<RankExecutor> executor;
  };

  void make_groups(const Clock& clock);
  GroupRanks groups_of(std::int64_t index) const;
  void make_rank(std::int64_t index, const std::optional<EmulatedNetwork>& network);
  StreamCommunicators connect(Rank& rank, std::int64_t index) const;
  void initialise(const Rank& rank, std::int64_t index) const;
  void abort();
  double mean_loss() const;
  std::byte* begin_of(std::int64_t rank, BufferId buffer) const;

  StepPlan plan_;
  TrainingOptions options_;
  const Clock& clock_;
  /// By stream, group and which of its kind.
  std::array<std::array<std::vector<std::unique_ptr<ThreadGroup>>, kGroupCount>, kStreamCount> groups_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<Workers> workers_;  ///< last: its threads use all of the above
  std::int64_t steps_ = 0;
  bool failed_ = false;
};

}  // namespace krigtune
