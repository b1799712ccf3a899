#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "trial/process.h"

namespace krigtune::trial {

/// Detects whether a program makes progress: its files grow, or its signs of life change (ProcessSpec::no_progress_s).
class Watchdog {
 public:
  /// `begin_s`: start time of the program, by the same clock as the argument of expired().
  Watchdog(const ProcessSpec& spec, double begin_s) : limit_s_(spec.no_progress_s), last_change_s_(begin_s) {
    files_ = spec.progress_files;
    files_.push_back(spec.stdout_file);
    files_.push_back(spec.stderr_file);
    signs_of_life_ = spec.signs_of_life;
  }

  /// Returns true if nothing has changed for no_progress_s. Looks at most once a second, because a shared file system
  /// may be slow.
  bool expired(double now_s);

 private:
  using State = std::array<std::int64_t, 3>;  // size, seconds, nanoseconds

  std::vector<State> look() const;

  std::optional<double> limit_s_;
  double last_change_s_;
  double next_look_s_ = 0.0;
  std::vector<std::filesystem::path> files_;
  std::function<std::int64_t()> signs_of_life_;
  std::vector<State> states_;
};

}  // namespace krigtune::trial
