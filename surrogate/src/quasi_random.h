#pragma once
#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "krigtune/rng.h"

namespace krigtune::surrogate {

/// Scrambled points that fill (0, 1)^dims more evenly than independent ones; each single point is uniformly
/// distributed.
class HaltonSequence {
 public:
  HaltonSequence(Eigen::Index dims, Rng& rng);
  /// Returns the next `count` points, count x dims.
  Eigen::MatrixXd next(Eigen::Index count);

 private:
  /// One coordinate. If digit k of the index is c, it adds digits[k][c] = permutation_k(c) / base^(k + 1).
  struct Axis {
    std::uint64_t base;
    std::vector<std::vector<double>> digits;
    std::vector<double> rest;  ///< sum of the contributions of all digits from k on if they are 0
  };
  static Axis make_axis(std::uint64_t base, Rng& rng);

  std::vector<Axis> axes_;
  std::uint64_t index_ = 0;
};

}  // namespace krigtune::surrogate
