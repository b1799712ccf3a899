#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace krigtune {

/// Time as the program sees it. Passed in wherever time is read or waited for, so that tests move it by hand.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic seconds from an arbitrary origin. Safe from any thread.
  virtual double now_s() const = 0;
  /// Microseconds since 1970-01-01 UTC. Safe from any thread.
  virtual std::int64_t unix_us() const = 0;
  /// Returns when now_s() >= deadline_s. Safe from any thread.
  virtual void sleep_until_s(double deadline_s) const = 0;
};

class SystemClock final : public Clock {
 public:
  double now_s() const override;
  std::int64_t unix_us() const override;
  void sleep_until_s(double deadline_s) const override;
};

/// A clock that stands still until moved; sleeping moves it to the deadline. Not for use from several threads.
class ManualClock final : public Clock {
 public:
  double now_s() const override { return now_s_; }
  std::int64_t unix_us() const override;
  void sleep_until_s(double deadline_s) const override;
  void advance_s(double seconds) { now_s_ += seconds; }

 private:
  mutable double now_s_ = 0.0;
};

/// Naive local time "2026-08-23T10:00:00.000000", the form that every Optuna version reads.
std::string local_iso_time(std::int64_t unix_us);
/// What local_iso_time wrote, back in microseconds since 1970 UTC; in the hour that a clock repeats, either one. Empty:
/// it is no such text.
std::optional<std::int64_t> unix_us_of(const std::string& local_iso_time);

}  // namespace krigtune
