#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/kernel.h"

namespace krigtune {

/// Points in units of a stationary kernel's lengthscales.
struct ScaledPoints {
  Eigen::MatrixXd ordered;          ///< n x d, x_i / l_i
  Eigen::MatrixXd categories;       ///< n x c, the indices; as doubles they are compared several at a time
  Eigen::VectorXd category_weight;  ///< c, 1 / l_j^2

  Eigen::Index size() const { return ordered.rows(); }
};

using ArrayIn = Eigen::Ref<const Eigen::ArrayXd>;
using ArrayOut = Eigen::Ref<Eigen::ArrayXd>;

/// The joint squared distance of row j of y from each of the last r2.size() rows of x.
void squared_distances(const ScaledPoints& x, const ScaledPoints& y, Eigen::Index j, ArrayOut r2);

/// For each column p of [ordered, categories]: sums[p] += sum_k weights[k] * (the term of r2[k] that belongs to p), r2
/// as above and of the size of weights.
void add_weighted_terms(const ScaledPoints& x, const ScaledPoints& y, Eigen::Index j, const ArrayIn& weights,
                        Eigen::Ref<Eigen::VectorXd> sums);

/// A correlation as a function of r^2, for whole arrays.
struct RadialProfile {
  /// r^2 becomes the correlation.
  void (*correlation)(ArrayOut r2);
  /// The same apart, with slope = d correlation / d r^2, which has no 0/0 at r = 0. Uses r2 up.
  void (*with_slope)(ArrayOut r2, ArrayOut correlation, ArrayOut slope);
};

/// Of a stationary kind.
RadialProfile radial_profile(KernelKind kind);

}  // namespace krigtune
