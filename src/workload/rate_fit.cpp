// Pattern search (Hooke and Jeeves 1961) in the logarithms of launch time and rates: each is multiplied and divided by
// a step that shrinks, as long as the objective improves. There are few numbers, the objective is cheap, and it has no
// derivatives, because the mean of absolute errors has kinks. The search starts with the shortest sample as launch time
// and the median of the samples' rates.
#include "workload/rate_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/statistics.h"

namespace krigtune::workload {
namespace {

double mean_log_error(std::span<const RateSample> samples, const ClassRate& rate) {
  double sum = 0.0;
  for (const RateSample& sample : samples) {
    sum += std::abs(std::log(sample.seconds / rate.seconds(sample.flops, sample.bytes)));
  }
  return sum / static_cast<double>(samples.size());
}

ClassRate beginning(const std::vector<RateSample>& samples, BoundBy bound) {
  ClassRate rate;
  std::vector<double> flops_per_s;
  std::vector<double> bytes_per_s;
  rate.launch_s = samples.front().seconds;
  for (const RateSample& sample : samples) {
    rate.launch_s = std::min(rate.launch_s, sample.seconds);
    if (sample.flops > 0.0) flops_per_s.push_back(sample.flops / sample.seconds);
    if (sample.bytes > 0.0) bytes_per_s.push_back(sample.bytes / sample.seconds);
  }
  rate.launch_s /= 2.0;
  if (bound != BoundBy::kBytes && !flops_per_s.empty()) rate.flops_per_s = median(flops_per_s);
  if (bound != BoundBy::kFlops && !bytes_per_s.empty()) rate.bytes_per_s = median(bytes_per_s);
  return rate;
}

class PatternSearch {
 public:
  PatternSearch(std::span<const RateSample> samples, const ClassRate& start)
      : samples_(samples), best_(start), error_(mean_log_error(samples, start)) {}

  ClassRate run() {
    constexpr double kFirstStep = 4.0;
    constexpr double kLastStep = 1.002;
    for (double step = kFirstStep; step > kLastStep;) {
      bool better = false;
      for (double ClassRate::*of : {&ClassRate::launch_s, &ClassRate::flops_per_s, &ClassRate::bytes_per_s}) {
        better = attempt(of, step) || attempt(of, 1.0 / step) || better;
      }
      if (!better) step = std::sqrt(step);
    }
    return best_;
  }

 private:
  bool attempt(double ClassRate::*of, double factor) {
    if (!std::isfinite(best_.*of)) return false;
    ClassRate changed = best_;
    changed.*of *= factor;
    const double error = mean_log_error(samples_, changed);
    if (!(error < error_)) return false;
    best_ = changed;
    error_ = error;
    return true;
  }

  std::span<const RateSample> samples_;
  ClassRate best_;
  double error_;
};

}  // namespace

ClassRate fit_rate(std::span<const RateSample> samples, BoundBy bound) {
  std::vector<RateSample> usable;
  for (const RateSample& sample : samples) {
    if (sample.seconds > 0.0 && sample.flops + sample.bytes > 0.0) usable.push_back(sample);
  }
  if (usable.empty()) return {};
  return PatternSearch(usable, beginning(usable, bound)).run();
}

void split_launch(ClassRate& rate, double launch_s) {
  if (!(rate.launch_s > launch_s)) return;
  rate.half_flops = (rate.launch_s - launch_s) * rate.flops_per_s;
  rate.launch_s = launch_s;
}

}  // namespace krigtune::workload
