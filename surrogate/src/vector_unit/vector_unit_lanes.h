#pragma once
// Groups of numbers for the elementwise functions of a VectorUnit. The last, incomplete group is padded with zeros, so
// that the result for a number does not depend on its position.
#include <Eigen/Core>
#include <algorithm>

#include "vector_unit/vector_unit_functions.h"

namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT {

constexpr Index kLanes = EIGEN_MAX_STATIC_ALIGN_BYTES / 4;  // two vector registers of doubles

using Lanes = Eigen::Array<double, kLanes, 1>;

inline Lanes load(const double* from, Index count) {
  if (count >= kLanes) return Eigen::Map<const Lanes>(from);
  Lanes lanes = Lanes::Zero();
  std::copy_n(from, count, lanes.data());
  return lanes;
}

inline void store(const Lanes& lanes, double* to, Index count) {
  if (count >= kLanes) {
    Eigen::Map<Lanes>{to} = lanes;
  } else {
    std::copy_n(lanes.data(), count, to);
  }
}

}  // namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT
