#pragma once
#include <functional>
#include <utility>

#include "core/clock.h"

namespace krigtune {

/// A clock whose time is the result of a function of the test: hours pass when something has happened.
class EventClock final : public Clock {
 public:
  explicit EventClock(std::function<double()> now_s) : now_s_(std::move(now_s)) {}
  double now_s() const override { return now_s_(); }
  std::int64_t unix_us() const override { return static_cast<std::int64_t>(now_s_() * 1e6); }
  void sleep_until_s(double /*deadline_s*/) const override {}

 private:
  std::function<double()> now_s_;
};

}  // namespace krigtune
