#pragma once
#include <memory>
#include <mutex>

#include "host/communicator.h"
#include "krigtune/core/clock.h"
#include "krigtune/plan/collective_time.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

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
std::unique_ptr<Communicator> make_emulated(Communicator& base, EmulatedLink& link, const EmulatedNetwork& network,
                                            const GroupSpan& span, const Clock& clock);

}  // namespace krigtune
