#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "diagnose/log_parts.h"

namespace krigtune::diagnose {

/// Reads step times from the states of tqdm's bars, which the Trainer and most scripts show:
///
///   2%|#    | 11/500 [01:17<26:10,  3.20s/it]
///
///   ProgressBars bars;
///   for (const std::string& line : log) bars.take(line);   // each state is a line: they end with \r
///   bars.steps();
class ProgressBars {
 public:
  void take(const std::string& line);
  /// Returns the steps of the bar that took longest, which is the training's; the first state is left out. Their times
  /// are differences of the bar's clock or, since it shows whole seconds, its smoothed rate if a step takes less than
  /// two of them.
  StepTimesOfLog steps() const;

 private:
  struct Bar {
    std::int64_t done = 0;
    double elapsed_s = 0.0;
    std::vector<double> by_clock;
    std::vector<double> by_rate;
  };
  std::map<std::int64_t, Bar> bars_;  ///< by the number of steps to do
};

}  // namespace krigtune::diagnose
