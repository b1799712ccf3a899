#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace krigtune {

/// Time as the program sees it. Every function that reads the time or waits takes a Clock, so that tests can move it by
/// hand.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns monotonic seconds from an arbitrary origin. Safe from any thread.
  virtual double now_s() const = 0;
  /// Returns microseconds since 1970-01-01 UTC. Safe from any thread.
  virtual std::int64_t unix_us() const = 0;
  /// Waits until now_s() >= deadline_s. Safe from any thread.
  virtual void sleep_until_s(double deadline_s) const = 0;
};

/// Returns the processor time that this thread has used, in seconds.
double thread_processor_time_s();

class SystemClock final : public Clock {
 public:
  double now_s() const override;
  std::int64_t unix_us() const override;
  void sleep_until_s(double deadline_s) const override;
};

/// A clock that stops until a test moves it. Sleeping moves it to the deadline. Use it from one thread only.
class ManualClock final : public Clock {
 public:
  double now_s() const override { return now_s_; }
  std::int64_t unix_us() const override;
  void sleep_until_s(double deadline_s) const override;
  void advance_s(double seconds) { now_s_ += seconds; }

 private:
  mutable double now_s_ = 0.0;
};

/// Returns naive local time, "2026-08-23T10:00:00.000000", the form that every Optuna version reads.
std::string local_iso_time(std::int64_t unix_us);
/// Reads what local_iso_time wrote and returns microseconds since 1970 UTC. In the hour that is repeated when a clock
/// is set back, either time may be returned. Empty if the text is not such a time.
std::optional<std::int64_t> unix_us_of(const std::string& local_iso_time);

}  // namespace krigtune
