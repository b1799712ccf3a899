// One point observed m times is equivalent to one observation. With w_i = 1 / (variance_i + s), w = sum w_i,
// ybar = sum w_i y_i / w:
//
//   prod_i Normal(y_i; f, 1 / w_i) = Normal(ybar; f, 1 / w) * exp(log_spread)      for every f
//   log_spread        = 1/2 (sum log w_i - log w - (m - 1) log 2 pi - sum w_i (y_i - ybar)^2)
//   d ybar / ds       = -sum w_i^2 (y_i - ybar) / w
//   d (1 / w) / ds    = sum w_i^2 / w^2
//   d log_spread / ds = 1/2 (sum w_i^2 / w - w + sum w_i^2 (y_i - ybar)^2)
#include "merged_observations.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vector_unit/normal_tails.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

/// Returns everything that distinguishes two points.
std::vector<double> key_of(const Points& points, Index row) {
  std::vector<double> key;
  for (Index i = 0; i < points.ordered.cols(); ++i) key.push_back(points.ordered(row, i));
  for (Index i = 0; i < points.categories.cols(); ++i) key.push_back(points.categories(row, i));
  for (Index i = 0; i < points.features.cols(); ++i) key.push_back(points.features(row, i));
  return key;
}

}  // namespace

MergedObservations::MergedObservations(const Observations& observations)
    : values_(observations.values), variance_(observations.variance) {
  if (variance_.size() == 0) variance_ = VectorXd::Zero(values_.size());
  std::map<std::vector<double>, std::size_t> seen;
  std::vector<Index> firsts;
  for (Index row = 0; row < observations.size(); ++row) {
    const auto [place, is_new] = seen.try_emplace(key_of(observations.points, row), groups_.size());
    if (is_new) {
      groups_.emplace_back();
      firsts.push_back(row);
    }
    groups_[place->second].push_back(row);
  }
  points_ = observations.points.rows(firsts);
}

MergedObservations::Values MergedObservations::at(double noise_variance) const {
  const auto count = static_cast<Index>(groups_.size());
  Values result{VectorXd(count), VectorXd(count), 0.0, VectorXd(count), VectorXd(count), 0.0};
  for (Index g = 0; g < count; ++g) {
    const std::vector<Index>& rows = groups_[static_cast<std::size_t>(g)];
    const Eigen::ArrayXd y = values_(rows).array();
    const Eigen::ArrayXd weights = (variance_(rows).array() + noise_variance).inverse();
    const double weight = weights.sum();
    const double mean = rows.size() == 1 ? y[0] : (weights * y).sum() / weight;
    const Eigen::ArrayXd spread = y - mean;
    result.mean[g] = mean;
    result.variance[g] = 1.0 / weight;
    result.mean_slope[g] = -(weights.square() * spread).sum() / weight;
    result.variance_slope[g] = weights.square().sum() / (weight * weight);
    if (rows.size() == 1) continue;
    result.log_spread += 0.5 * (weights.log().sum() - std::log(weight) - (weights * spread.square()).sum() -
                                static_cast<double>(rows.size() - 1) * kLogTwoPi);
    result.log_spread_slope +=
        0.5 * (weights.square().sum() / weight - weight + (weights.square() * spread.square()).sum());
  }
  return result;
}

}  // namespace krigtune::surrogate
