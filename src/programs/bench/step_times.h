#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace krigtune::bench {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

/// A growing sample of step times, in the order in which they were taken, with its order statistics. No distribution is
/// assumed, and no independence: neighbours may resemble each other. The sample must not be empty where it is asked.
class StepTimes {
 public:
  void add(double step_time_s);

  std::size_t size() const { return sorted_.size(); }
  /// Linear between order statistics (type 7 of Hyndman and Fan 1996).
  double quantile(double probability) const;
  double median() const { return quantile(0.5); }
  double mean() const;
  /// Median absolute deviation from the median, without a factor.
  double mad() const;
  /// `count` samples from the `begin`-th on; they must be there.
  StepTimes part(std::size_t begin, std::size_t count) const;

  /// By how much resemblance of neighbours shrinks the sample: size() / autocorrelation_time() independent samples
  /// would tell the median as well. At least 1.
  double autocorrelation_time() const;
  /// Standard error of the median if the samples were independent: 1.2533 * 1.4826 * MAD / sqrt(n). 0 for one sample.
  double independent_sem() const;
  /// As they are: sqrt(autocorrelation_time) times that.
  double median_sem() const;
  /// Order statistics that enclose the median with 95 % probability. With fewer than six independent samples there is
  /// none: the whole range.
  Interval median_interval() const;

  /// Samples with |x - median| / MAD > 14.826, ten standard deviations of a normal sample (the rule of hyperfine). They
  /// are counted, and part of every statistic all the same.
  std::int64_t outliers() const;
  /// Theil and Sen's slope: the median of the slopes between all pairs; seconds per step.
  double drift_per_step_s() const;

 private:
  std::vector<double> in_order_;
  std::vector<double> sorted_;
};

}  // namespace krigtune::bench
