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

/// One range of a collective.
struct Segment {
  void* whole = nullptr;
  std::int64_t elems = 0;       ///< of `whole`; reduce-scatter and all-gather: a multiple of the number of ranks
  const void* shard = nullptr;  ///< all-gather: this rank's elems / N elements; may be its part of `whole` itself
  schedule::DType type = schedule::DType::kFp32;  ///< sums and maxima need one of floating point
};

/// One collective as one rank issues it. All ranks issue the same ones in the same order.
struct Collective {
  std::span<const Segment> segments;
  std::int64_t wire_bytes = 0;  ///< sent by this rank
};

/// One rank's end of a communicator, in the in-place conventions of NCCL. Sums are formed in fp32 in the order of the
/// ranks and rounded once, so that all-reduce equals reduce-scatter followed by all-gather bit by bit. Each call blocks
/// until this rank's data may be used again, and returns the Clock's seconds at which the data of all ranks were ready.
/// One call at a time. Throws Aborted.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// whole = the sum of all ranks' wholes.
  virtual double all_reduce(const Collective& collective) = 0;
  /// whole = the maximum of all ranks' wholes, element by element; NaN where one has NaN.
  virtual double all_reduce_max(const Collective& collective) = 0;
  /// The r-th 1/N of whole = the sum of all ranks' r-th parts; the other parts are left as they were.
  virtual double reduce_scatter(const Collective& collective) = 0;
  /// The r-th 1/N of every rank's whole = rank r's shard.
  virtual double all_gather(const Collective& collective) = 0;
};

/// Communicates nothing, in no time: what a step would take if communication were free. What ranks compute with means
/// nothing afterwards. `clock` must outlive it.
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

/// Another rank has failed: whoever waits for it gives up.
class Aborted : public std::runtime_error {
 public:
  Aborted() : std::runtime_error("given up because another rank failed") {}
};

/// A barrier for a fixed number of threads, from which everybody can be freed. `clock` must outlive it.
class AbortableBarrier {
 public:
  AbortableBarrier(int threads, const Clock& clock) : threads_(threads), clock_(clock) {}

  /// Returns when all have arrived: the Clock's seconds at the last arrival. Throws Aborted.
  double arrive_and_wait();
  /// Frees all who wait and refuses all who come later.
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

/// One rank's link into a network that is not there: a time line in which collectives reserve their slots. Shared by
/// all communicators of the rank that use it, so that a gather and a reduction that overlap in time share the
/// bandwidth. Thread-safe.
class EmulatedLink {
 public:
  /// Reserves the first free slot of this length from `ready_s` on; returns its end. Nothing costs nothing.
  double reserve_until_s(double ready_s, double length_s);

 private:
  std::mutex mutex_;
  double free_from_s_ = 0.0;
};

/// Moves the data through `base`, then holds the caller until a slot of collective_time_s of the link has passed.
/// Waiting happens after all ranks have exchanged their data and without a lock, so it can delay but never block. All
/// but `span` must outlive it.
std::unique_ptr<Communicator> make_emulated(Communicator& base, EmulatedLink& link,
                                            const workload::EmulatedNetwork& network, const plan::GroupSpan& span,
                                            const Clock& clock);

}  // namespace krigtune::engine
