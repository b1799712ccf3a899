#pragma once
#include <algorithm>
#include <mutex>

#include "core/clock.h"

namespace krigtune {

/// Sleeping moves the clock to the deadline. Safe to use from several threads.
class SharedClock final : public Clock {
 public:
  double now_s() const override {
    const std::lock_guard lock(mutex_);
    return now_s_;
  }
  std::int64_t unix_us() const override { return 0; }
  void sleep_until_s(double deadline_s) const override {
    const std::lock_guard lock(mutex_);
    now_s_ = std::max(now_s_, deadline_s);
  }

 private:
  mutable std::mutex mutex_;
  mutable double now_s_ = 0.0;
};

}  // namespace krigtune
