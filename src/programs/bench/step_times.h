#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace krigtune::bench {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

/// A growing sample of step times in their order, with order statistics. No distribution and no independence is
/// assumed: neighbours may be correlated. The sample must not be empty when a statistic is requested.
class StepTimes {
 public:
  void add(double step_time_s);

  std::size_t size() const { return sorted_.size(); }
  /// Interpolates linearly between order statistics (type 7 of Hyndman and Fan 1996).
  double quantile(double probability) const;
  double median() const { return quantile(0.5); }
  double mean() const;
  /// Returns the median absolute deviation from the median, without a factor.
  double mad() const;
  /// Returns `count` samples from index `begin` on, which must exist.
  StepTimes part(std::size_t begin, std::size_t count) const;

  /// Returns by what factor the correlation of neighbours reduces the information of the sample: size() /
  /// autocorrelation_time() independent samples would give an equally precise median. At least 1.
  double autocorrelation_time() const;
  /// Returns the standard error of the median for independent samples: 1.2533 * 1.4826 * MAD / sqrt(n); 0 for one
  /// sample.
  double independent_sem() const;
  /// Returns the standard error of the median for correlated samples: sqrt(autocorrelation_time) times that.
  double median_sem() const;
  /// Returns order statistics that enclose the median with a probability of 95 %. With fewer than six independent
  /// samples there are none, and the result is the whole range.
  Interval median_interval() const;

  /// Returns how many samples have |x - median| / MAD > 14.826, ten standard deviations of a normal sample (hyperfine's
  /// rule). They remain part of every statistic.
  std::int64_t outliers() const;
  /// Returns the slope of Theil and Sen: the median of the slopes between all pairs, in seconds per step.
  double drift_per_step_s() const;

 private:
  std::vector<double> in_order_;
  std::vector<double> sorted_;
};

}  // namespace krigtune::bench
