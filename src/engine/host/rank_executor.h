#pragma once
#include <array>
#include <atomic>
#include <vector>

#include "host/bound_plan.h"
#include "host/buffer_lifetimes.h"
#include "krigtune/core/clock.h"

namespace krigtune {

/// The communicator of each stream and group, null where there is none.
using StreamCommunicators = std::array<std::array<Communicator*, kGroupCount>, kStreamCount>;

/// Executes a plan as one rank: each stream in order, streams ordered by waits. Everything passed in must outlive it.
class RankExecutor {
 public:
  /// The plan must pass check_structure.
  RankExecutor(const StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks,
               const StreamCommunicators& communicators, const Clock& clock);

  /// The streams that have operations.
  std::vector<Stream> streams() const;

  /// To be called before every step, while no stream runs.
  void begin_step(const StepContext& context);
  /// Executes the operations of one stream; each stream from a thread of its own. Throws what a kernel throws, or
  /// Aborted.
  void run(Stream stream);
  /// Frees the streams that wait for operations of this rank; they throw Aborted. For good.
  void abort();

  /// How long the compute stream was stalled in the last step: by waits for other streams, and by its own collectives.
  double exposed_comm_s() const { return exposed_comm_s_; }
  /// Of the last step.
  CollectiveTimes collective_times() const;

 private:
  void make_ready_for(const BoundOperation& bound, std::vector<float>& scratch) const;
  void wait_for(const Dependency& dependency) const;
  void execute(const BoundOperation& bound);
  Communicator* communicator_of(const Operation& operation) const;
  void communicate(const BoundOperation& bound);
  bool ready(const BoundOperation& bound) const;

  const StepPlan& plan_;
  BoundPlan bound_;
  BufferLifetimes lifetimes_;
  StreamCommunicators communicators_;
  const Clock& clock_;
  StepContext context_;
  std::array<std::vector<float>, kStreamCount> scratch_;        ///< of the kernels, by stream
  std::array<std::atomic<std::int32_t>, kStreamCount> done_{};  ///< operations done in this step, by stream
  double exposed_comm_s_ = 0.0;
  std::array<CollectiveTimes, kStreamCount> collective_times_;  ///< each stream adds to its own
};

}  // namespace krigtune
