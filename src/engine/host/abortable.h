#pragma once
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "krigtune/core/clock.h"

namespace krigtune {

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

}  // namespace krigtune
