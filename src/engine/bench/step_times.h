#pragma once
#include <cstddef>
#include <vector>

namespace krigtune {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

/// A growing sample of step times with its order statistics. No distribution is assumed.
class StepTimes {
 public:
  void add(double step_time_s);

  std::size_t size() const { return sorted_.size(); }
  /// Linear between order statistics (type 7 of Hyndman and Fan 1996). The sample must not be empty.
  double quantile(double probability) const;
  double median() const { return quantile(0.5); }
  /// Of the median: 1.2533 * 1.4826 * MAD / sqrt(n), with the factors that make it the standard error for normal
  /// samples (sqrt(pi / 2), and 1 / Phi^-1(3/4) for the median absolute deviation). 0 for one sample.
  double median_sem() const;
  /// Order statistics that enclose the median with at least 95 % probability (binomial; David and Nagaraja 2003, 7.1).
  /// With fewer than six samples there is none: the whole range.
  Interval median_interval() const;
  bool has_median_interval() const { return size() >= 6; }

 private:
  std::vector<double> sorted_;
};

}  // namespace krigtune
