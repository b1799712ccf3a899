#pragma once
#include <Eigen/Core>
#include <vector>

namespace krigtune::surrogate {

/// A strictly increasing map of outputs to what a Gaussian process models well ("latent" units), undone exactly.
class OutputTransform {
 public:
  enum class Kind {
    kIdentity,
    kLog,         ///< outputs > 0
    kRankRobust,  ///< values on the bad side of the median are pulled in by their rank: for heavy tails there
  };
  /// Learns from values (n >= 1, finite; kLog: > 0, else UserError); larger is better.
  OutputTransform(Kind kind, const Eigen::VectorXd& values);

  /// kLog: UserError unless value > 0.
  double to_latent(double value) const;
  double from_latent(double latent) const;
  Eigen::VectorXd to_latent(const Eigen::VectorXd& values) const;
  /// Variance of noise on a value, first order: (d latent / d value)^2 * variance; for kRankRobust, whose slope jumps,
  /// with the mean slope over one stddev on either side.
  double latent_variance(double value, double variance) const;
  /// Mean of from_latent(z), z ~ Normal(mean, variance): in closed form.
  double output_mean(double mean, double variance) const;
  /// Of from_latent(z); 0 < probability < 1.
  double output_quantile(double mean, double variance, double probability) const;

 private:
  Kind kind_;
  // kRankRobust: increasing, the last is the median. Linear between; beyond the median with slope 1, below the first
  // with the mean slope of that side.
  std::vector<double> value_knots_;
  std::vector<double> latent_knots_;
};

}  // namespace krigtune::surrogate
