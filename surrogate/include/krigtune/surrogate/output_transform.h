#pragma once
#include <Eigen/Core>
#include <vector>

namespace krigtune::surrogate {

/// A strictly increasing map from outputs to "latent" units, which a Gaussian process models well. The map is undone
/// exactly.
class OutputTransform {
 public:
  enum class Kind {
    kIdentity,
    kLog,         ///< for outputs > 0
    kRankRobust,  ///< pulls values on the bad side of the median in by their rank: for heavy tails on that side
  };
  /// Learns the map from n >= 1 finite values; larger is better. Throws UserError if kind is kLog and a value is not >
  /// 0.
  OutputTransform(Kind kind, const Eigen::VectorXd& values);

  /// Throws UserError if kind is kLog and value is not > 0.
  double to_latent(double value) const;
  double from_latent(double latent) const;
  Eigen::VectorXd to_latent(const Eigen::VectorXd& values) const;
  /// Returns the latent variance of noise on a value, to first order: (d latent / d value)^2 * variance. For
  /// kRankRobust, whose slope jumps, it uses the mean slope over one stddev on either side.
  double latent_variance(double value, double variance) const;
  /// Returns a quantile of from_latent(z) for z ~ Normal(mean, variance); 0 < probability < 1.
  double output_quantile(double mean, double variance, double probability) const;

 private:
  Kind kind_;
  // kRankRobust: increasing knots, of which the last is the median. The map is linear between knots, has slope 1 above
  // the median, and below the first knot the mean slope of the bad side.
  std::vector<double> value_knots_;
  std::vector<double> latent_knots_;
};

}  // namespace krigtune::surrogate
