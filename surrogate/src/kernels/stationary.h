#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/kernel.h"
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {

/// Rows are processed in groups of this size, the largest that a vector unit handles at once, because an incomplete
/// group costs several steps.
constexpr Eigen::Index kRowGroup = 16;

/// Points in units of a stationary kernel's lengthscales, padded with zeros to whole groups of rows.
struct ScaledPoints {
  Eigen::MatrixXd ordered;          ///< rows x d, x_i / l_i
  Eigen::MatrixXd categories;       ///< rows x c, the indices; doubles can be compared several at a time
  Eigen::VectorXd category_weight;  ///< c, 1 / l_j^2

  /// theta is as in stationary.cpp.
  ScaledPoints(const Points& points, const Eigen::VectorXd& theta);
  Eigen::Index rows() const { return ordered.rows(); }
};

using ArrayIn = Eigen::Ref<const Eigen::ArrayXd>;
using ArrayOut = Eigen::Ref<Eigen::ArrayXd>;

/// Writes the joint squared distance between row j of y and each of the last r2.size() rows of x.
void squared_distances(const ScaledPoints& x, const ScaledPoints& y, Eigen::Index j, ArrayOut r2);

/// For each column p of [ordered, categories]: sums[p] += sum_k weights[k] * (the part of r2[k] that column p
/// contributes), with r2 as above and as many entries as weights.
void add_weighted_terms(const ScaledPoints& x, const ScaledPoints& y, Eigen::Index j, const ArrayIn& weights,
                        Eigen::Ref<Eigen::VectorXd> sums);

/// Returns the correlation function of a stationary kind, for this machine's vector unit.
VectorUnit::Profile radial_profile(KernelKind kind);

}  // namespace krigtune::surrogate
