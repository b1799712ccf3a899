#include "bench/breakdown_samples.h"

#include "bench/step_times.h"

namespace krigtune {

double BreakdownSamples::median_of(const std::function<double(const StepBreakdown&)>& number) const {
  StepTimes numbers;
  for (const StepBreakdown& sample : samples_) numbers.add(number(sample));
  return numbers.median();
}

StepBreakdown BreakdownSamples::median() const {
  StepBreakdown result;
  if (samples_.empty()) return result;
  result.span_s = median_of([](const StepBreakdown& b) { return b.span_s; });
  result.waiting_s = median_of([](const StepBreakdown& b) { return b.waiting_s; });
  result.idle_s = median_of([](const StepBreakdown& b) { return b.idle_s; });
  for (std::size_t p = 0; p < result.compute_s.size(); ++p) {
    result.compute_s[p] = median_of([p](const StepBreakdown& b) { return b.compute_s[p]; });
  }
  for (std::size_t a = 0; a < result.activities.size(); ++a) {
    result.activities[a].time_s = median_of([a](const StepBreakdown& b) { return b.activities[a].time_s; });
    result.activities[a].exposed_s = median_of([a](const StepBreakdown& b) { return b.activities[a].exposed_s; });
  }
  return result;
}

}  // namespace krigtune
