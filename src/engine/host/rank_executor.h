#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "engine/host/arena.h"
#include "engine/host/bound_plan.h"
#include "engine/host/communicator.h"
#include "plan/step_breakdown.h"

namespace krigtune::engine {

/// Threads, one for each job, that run their jobs once in each round.
class Workers {
 public:
  /// `on_failure` is called from the thread of the first job that throws, to release the others.
  Workers(std::vector<std::function<void()>> jobs, std::function<void()> on_failure);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs every job once and returns when all have ended. Throws what the first failing job threw.
  void run_round();

 private:
  void work(const std::function<void()>& job);
  void record_failure();

  std::function<void()> on_failure_;
  std::atomic<std::int32_t> round_{0};
  std::atomic<std::int32_t> busy_{0};
  std::atomic<bool> stopping_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
};

/// The communicator of each stream and group, null if there is none.
using StreamCommunicators = std::array<std::array<Communicator*, schedule::kGroupCount>, schedule::kStreamCount>;

/// Executes a plan as one rank: the operations of a stream in order, the streams synchronised by waits. Everything that
/// is passed in must outlive it.
class RankExecutor {
 public:
  /// The plan must pass check_structure.
  RankExecutor(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks,
               const StreamCommunicators& communicators, const Clock& clock);

  /// Returns the streams that have operations.
  std::vector<schedule::Stream> streams() const;

  /// Call this before every step, while no stream runs.
  void begin_step(const StepContext& context);
  /// Executes the operations of one stream. Call it for each stream from a thread of its own. Throws what a kernel
  /// throws, or Aborted.
  void run(schedule::Stream stream);
  /// Releases the streams that wait for operations of this rank; they throw Aborted, now and later.
  void abort();

  /// Returns the times of the last step's operations, by OpId.
  std::span<const plan::OperationTime> operation_times() const { return times_; }
  /// Switches communication off (NullCommunicator) or on again. Do not call it while a stream runs.
  void silence(bool silent) { silent_ = silent; }

 private:
  void make_ready_for(const BoundOperation& bound, std::vector<float>& scratch) const;
  void wait_for(const Dependency& dependency) const;
  double execute(const BoundOperation& bound, double start_s);
  Communicator* communicator_of(const plan::Operation& operation) const;
  double communicate(const BoundOperation& bound);
  bool ready(const BoundOperation& bound) const;

  const plan::StepPlan& plan_;
  BoundPlan bound_;
  BufferLifetimes lifetimes_;
  StreamCommunicators communicators_;
  const Clock& clock_;
  StepContext context_;
  std::array<std::vector<float>, schedule::kStreamCount> scratch_;        ///< of the kernels, by stream
  std::array<std::atomic<std::int32_t>, schedule::kStreamCount> done_{};  ///< operations done in this step, by stream
  std::vector<plan::OperationTime> times_;  ///< by OpId; each stream writes the times of its own operations
  NullCommunicator null_communicator_;
  bool silent_ = false;
};

}  // namespace krigtune::engine
