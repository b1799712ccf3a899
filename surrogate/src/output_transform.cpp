// Maps from outputs y to latent z in which a Gaussian process is a fair model.
//
//   log:          z = log y
//   rank-robust:  z = y at and above the median M; below, a value of mid-rank r among n becomes
//                 z = M + s Phi^-1((r - 1/2) / n),   s^2 = mean of (y - M)^2 over the values y >= M
//                 (the normal scores of the lower half of a Gaussian whose upper half is as wide as the data's: the
//                 half-rank warping of Vizier, Song et al. 2022, "Open Source Vizier"), linear between these knots
#include "krigtune/surrogate/output_transform.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "core/error.h"
#include "krigtune/surrogate/success_model.h"

namespace krigtune::surrogate {
namespace {

using Eigen::VectorXd;
using Knots = std::vector<double>;

/// An increasing piecewise linear map through (from, to). It is the identity above the last knot. Below the first one
/// it has the mean slope between first and last, because the slope of the end piece would depend only on the gap
/// between the two worst values.
class Broken {
 public:
  Broken(const Knots& from, const Knots& to) : from_(from), to_(to) {}

  /// Returns the slope of the piece that ends at knot i.
  double slope(std::size_t i) const {
    if (from_.size() == 1) return 1.0;
    if (i == 0) return (to_.back() - to_.front()) / (from_.back() - from_.front());
    return (to_[i] - to_[i - 1]) / (from_[i] - from_[i - 1]);
  }

  double operator()(double x) const {
    const auto i = static_cast<std::size_t>(std::distance(from_.begin(), std::ranges::lower_bound(from_, x)));
    if (i == from_.size()) return x;  // both end at the median
    // Measured from the knot above, and no further than the one below: rounding must not break the order.
    const double y = to_[i] - (from_[i] - x) * slope(i);
    return i == 0 ? y : std::max(y, to_[i - 1]);
  }

 private:
  const Knots& from_;
  const Knots& to_;
};

double median_of_sorted(const Knots& sorted) {
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : sorted[n / 2 - 1] + 0.5 * (sorted[n / 2] - sorted[n / 2 - 1]);
}

/// Returns the stddev of a Gaussian whose upper half is formed by the values from the median on; if these are (nearly)
/// all equal, uses the distances below the median.
double spread(const Knots& sorted, double median) {
  const auto from = std::ranges::lower_bound(sorted, median);
  const Knots below(sorted.begin(), from);
  const Eigen::Map<const VectorXd> above(&*from, std::distance(from, sorted.end()));
  const double upper = (above.array() - median).matrix().stableNorm() / std::sqrt(static_cast<double>(above.size()));
  // Knots may be a thousandth of this apart and must remain distinct next to the median.
  constexpr double kResolved = 1e-9;
  if (upper > kResolved * std::max(std::abs(median), std::abs(sorted.back())) || below.empty()) return upper;
  constexpr double kMedianOfHalfNormal = 0.67448975019608171;
  return (median - median_of_sorted(below)) / kMedianOfHalfNormal;
}

}  // namespace

OutputTransform::OutputTransform(Kind kind, const VectorXd& values) : kind_(kind) {
  if (values.size() < 1 || !values.allFinite())
    throw UserError("output transform: it needs one value at least, and all must be finite");
  if (kind == Kind::kLog && !(values.minCoeff() > 0.0))
    throw UserError("output transform: the logarithm needs values above zero");
  if (kind != Kind::kRankRobust) return;
  Knots sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double median = median_of_sorted(sorted);
  const double stddev = spread(sorted, median);
  const auto count = static_cast<double>(sorted.size());
  for (auto first = sorted.begin(); *first < median;) {
    const auto last = std::upper_bound(first, sorted.end(), *first);
    // Ties share the mean of their ranks: i + 1, ..., j less 1/2 have the mean (i + j) / 2.
    const auto ranks = static_cast<double>((first - sorted.begin()) + (last - sorted.begin()));
    const double latent = median + stddev * probit(0.5 * ranks / count);
    if (latent < median && (latent_knots_.empty() || latent > latent_knots_.back())) {
      value_knots_.push_back(*first);
      latent_knots_.push_back(latent);
    }
    first = last;
  }
  value_knots_.push_back(median);
  latent_knots_.push_back(median);
}

double OutputTransform::to_latent(double value) const {
  if (kind_ == Kind::kRankRobust) return Broken(value_knots_, latent_knots_)(value);
  if (kind_ == Kind::kIdentity) return value;
  if (!(value > 0.0)) throw UserError("output transform: the logarithm needs values above zero");
  return std::log(value);
}

double OutputTransform::from_latent(double latent) const {
  if (kind_ == Kind::kRankRobust) return Broken(latent_knots_, value_knots_)(latent);
  return kind_ == Kind::kLog ? std::exp(latent) : latent;
}

VectorXd OutputTransform::to_latent(const VectorXd& values) const {
  return values.unaryExpr([this](double value) { return to_latent(value); });
}

double OutputTransform::latent_variance(double value, double variance) const {
  if (kind_ == Kind::kIdentity || variance == 0.0) return variance;
  if (kind_ == Kind::kLog) return variance / (value * value);
  const double stddev = std::sqrt(variance);
  const double half = 0.5 * (to_latent(value + stddev) - to_latent(value - stddev));
  return half * half;
}

double OutputTransform::output_quantile(double mean, double variance, double probability) const {
  assert(variance >= 0.0);
  if (!(probability > 0.0 && probability < 1.0)) throw UserError("a quantile's probability must lie between 0 and 1");
  return from_latent(mean + std::sqrt(variance) * probit(probability));
}

}  // namespace krigtune::surrogate
