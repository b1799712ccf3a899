// Halton's sequence (1960): coordinate j of point i is i written in the base of the j-th prime, mirrored at the point.
//
//   i = sum_k c_k b^k   ->   u = sum_k pi_k(c_k) / b^(k + 1)
//
// Every digit, also those beyond i's first one, has a random permutation pi_k of its own (Owen 2017, "A randomized
// Halton algorithm in R"). Without permutations, the coordinates of larger primes would rise together.
#include "quasi_random.h"

#include <numeric>

namespace krigtune::surrogate {
namespace {

bool is_prime(std::uint64_t number) {
  for (std::uint64_t factor = 2; factor * factor <= number; ++factor)
    if (number % factor == 0) return false;
  return true;
}

// Use digits until a double has no room for more: 2^52.
constexpr double kFinest = 0x1p-52;

}  // namespace

HaltonSequence::Axis HaltonSequence::make_axis(std::uint64_t base, Rng& rng) {
  Axis axis{base, {}, {}};
  double unit = 1.0 / static_cast<double>(base);
  for (; unit >= kFinest; unit /= static_cast<double>(base)) {
    std::vector<double> permuted(base);
    std::iota(permuted.begin(), permuted.end(), 0.0);
    rng.shuffle(permuted);
    for (double& digit : permuted) digit *= unit;
    axis.digits.push_back(std::move(permuted));
  }
  // Adds half of a unit of the last digit, so that a coordinate is never 0 and never 1.
  axis.rest.assign(axis.digits.size() + 1, 0.5 * unit * static_cast<double>(base));
  for (std::size_t k = axis.digits.size(); k-- > 0;) axis.rest[k] = axis.rest[k + 1] + axis.digits[k][0];
  return axis;
}

HaltonSequence::HaltonSequence(Eigen::Index dims, Rng& rng) {
  for (std::uint64_t base = 2; static_cast<Eigen::Index>(axes_.size()) < dims; ++base)
    if (is_prime(base)) axes_.push_back(make_axis(base, rng));
}

Eigen::MatrixXd HaltonSequence::next(Eigen::Index count) {
  Eigen::MatrixXd points(count, static_cast<Eigen::Index>(axes_.size()));
  for (Eigen::Index i = 0; i < count; ++i, ++index_) {
    for (std::size_t j = 0; j < axes_.size(); ++j) {
      const Axis& axis = axes_[j];
      double sum = 0.0;
      std::size_t k = 0;
      for (std::uint64_t left = index_; left > 0; left /= axis.base) sum += axis.digits[k++][left % axis.base];
      points(i, static_cast<Eigen::Index>(j)) = sum + axis.rest[k];
    }
  }
  return points;
}

}  // namespace krigtune::surrogate
