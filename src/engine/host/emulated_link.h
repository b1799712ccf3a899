#pragma once
#include <memory>
#include <mutex>

#include "host/communicator.h"
#include "krigtune/core/clock.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// One rank's link into a network that is not there: a time line in which collectives reserve their slots. Shared by
/// all communicators of the rank, so that a gather and a reduction that overlap in time share the bandwidth.
/// Thread-safe.
class EmulatedLink {
 public:
  explicit EmulatedLink(const EmulatedNetwork& network) : network_(network) {}

  /// Reserves the first free slot from `ready_s` on of length latency + bytes / bandwidth; returns its end.
  /// Nothing to send costs nothing.
  double reserve_until_s(double ready_s, std::int64_t bytes);

 private:
  EmulatedNetwork network_;
  std::mutex mutex_;
  double free_from_s_ = 0.0;
};

/// Moves the data through `base`, then holds the caller until the link's slot has passed. Waiting happens after all
/// ranks have exchanged their data and without a lock, so it can delay but never block. All three must outlive it.
std::unique_ptr<Communicator> make_emulated(Communicator& base, EmulatedLink& link, const Clock& clock);

}  // namespace krigtune
