#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>

#include "core/clock.h"
#include "plan/collective_time.h"
#include "plan/step_plan.h"
#include "workload/workload.h"

namespace krigtune::engine {

/// One range that a collective works on.
struct Segment {
  void* whole = nullptr;
  std::int64_t elems = 0;       ///< of `whole`; for reduce-scatter and all-gather a multiple of the number of ranks
  const void* shard = nullptr;  ///< all-gather: this rank's elems / N elements; may be its part of `whole`
  schedule::DType type = schedule::DType::kFp32;  ///< sums and maxima need a floating-point type
};

/// One collective as one rank issues it. All ranks issue the same collectives in the same order.
struct Collective {
  std::span<const Segment> segments;
  std::int64_t wire_bytes = 0;  ///< sent by this rank
};

/// One rank's end of a communicator, with NCCL's in-place conventions. Sums are formed in fp32 in the order of the
/// ranks and rounded once, so that all-reduce equals reduce-scatter followed by all-gather bit by bit. Each call blocks
/// until this rank's data may be used again, and returns the Clock's seconds at which the data of all ranks were ready.
/// Make one call at a time. Throws Aborted.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// Sets whole to the sum of all ranks' wholes.
  virtual double all_reduce(const Collective& collective) = 0;
  /// Sets whole to the elementwise maximum of all ranks' wholes; NaN where any rank has NaN.
  virtual double all_reduce_max(const Collective& collective) = 0;
  /// Sets the r-th 1/N of rank r's whole to the sum of all ranks' r-th parts. The other parts keep their values.
  virtual double reduce_scatter(const Collective& collective) = 0;
  /// Sets the r-th 1/N of every rank's whole to rank r's shard.
  virtual double all_gather(const Collective& collective) = 0;
};

/// Communicates nothing and takes no time, which shows how long a step would take if communication were free. The
/// numbers that the ranks then compute are meaningless. `clock` must outlive it.
class NullCommunicator final : public Communicator {
 public:
  explicit NullCommunicator(const Clock& clock) : clock_(clock) {}

  double all_reduce(const Collective& /*collective*/) override { return clock_.now_s(); }
  double all_reduce_max(const Collective& /*collective*/) override { return clock_.now_s(); }
  double reduce_scatter(const Collective& /*collective*/) override { return clock_.now_s(); }
  double all_gather(const Collective& /*collective*/) override { return clock_.now_s(); }

 private:
  const Clock& clock_;
};

/// Another rank has failed. Ranks that wait for it stop with this exception.
class Aborted : public std::runtime_error {
 public:
  Aborted() : std::runtime_error("given up because another rank failed") {}
};

/// A barrier for a fixed number of threads that can be aborted. `clock` must outlive it.
class AbortableBarrier {
 public:
  AbortableBarrier(int threads, const Clock& clock) : threads_(threads), clock_(clock) {}

  /// Waits until all have arrived, and returns the Clock's seconds at the last arrival. Throws Aborted.
  double arrive_and_wait();
  /// Releases all waiting threads and refuses later arrivals, with Aborted.
  void abort();

 private:
  int threads_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  long generation_ = 0;
  double completed_at_s_ = 0.0;
  bool aborted_ = false;
};

/// One rank's emulated link to the network: a time line in which collectives reserve slots. All communicators of the
/// rank that use the link share the object, so a gather and a reduction that overlap in time share its bandwidth.
/// Thread-safe.
class EmulatedLink {
 public:
  /// Reserves a slot of this length after all earlier ones, not before `ready_s`, and returns its end. A length of 0
  /// returns `ready_s`.
  double reserve_until_s(double ready_s, double length_s);

 private:
  std::mutex mutex_;
  double free_from_s_ = 0.0;
};

/// Moves the data through `base`, and then delays the caller until a slot of collective_time_s on the link has passed.
/// The delay comes after all ranks have exchanged their data, and without a lock, so it cannot cause a deadlock. All
/// arguments except `span` must outlive the result.
std::unique_ptr<Communicator> make_emulated(Communicator& base, EmulatedLink& link,
                                            const workload::EmulatedNetwork& network, const plan::GroupSpan& span,
                                            const Clock& clock);

}  // namespace krigtune::engine
