#pragma once
#include <functional>
#include <vector>

#include "krigtune/plan/step_breakdown.h"

namespace krigtune {

/// The breakdowns of many steps.
class BreakdownSamples {
 public:
  void add(const StepBreakdown& breakdown) { samples_.push_back(breakdown); }
  /// Every number of it is the median of that number over the steps: they need not add up to the last digit. Zeros
  /// without samples.
  StepBreakdown median() const;

 private:
  double median_of(const std::function<double(const StepBreakdown&)>& number) const;

  std::vector<StepBreakdown> samples_;
};

}  // namespace krigtune
