#pragma once
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "core/clock.h"

namespace krigtune::bench {

/// A sign of life: the phase, and the number of optimizer steps so far.
struct Beat {
  std::string phase;
  std::int64_t step = 0;
  double at_s = 0.0;  ///< time of the clock
};

/// Signs of life for the process that supervises the run: a JSON line {"phase", "step", "t_s"} for each, where t_s
/// counts from the first one. Thread-safe.
class Heartbeat {
 public:
  /// `file`: lines are appended to it; empty: nothing is written. Throws EnvironmentError. `clock` must outlive the
  /// object.
  Heartbeat(const std::filesystem::path& file, const Clock& clock);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void beat(const std::string& phase, std::int64_t step) { beat(phase, step, {}); }
  /// `numbers`: provisional results, by their names in the report.
  void beat(const std::string& phase, std::int64_t step, const std::map<std::string, double>& numbers);
  Beat last() const;
  /// Returns why the first missing line could not be written. Empty if all were written, or if the reader has gone.
  std::string lost() const;

 private:
  const Clock& clock_;
  int file_ = -1;
  double begin_s_;
  mutable std::mutex mutex_;
  Beat last_;
  std::string lost_;
};

/// Calls `on_hang` once, from a thread of its own, if no beat comes for `limit_s`. Its arguments must outlive it.
class Watchdog {
 public:
  Watchdog(const Heartbeat& heartbeat, double limit_s, const Clock& clock, std::function<void(const Beat&)> on_hang);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  const Heartbeat& heartbeat_;
  double limit_s_;
  const Clock& clock_;
  std::function<void(const Beat&)> on_hang_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace krigtune::bench
