#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/kernel.h"
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {

/// Rows are taken in groups of so many, the most that a vector unit takes at once: an incomplete one costs it several.
constexpr Eigen::Index kRowGroup = 16;

/// Points in units of a stationary kernel's lengthscales, filled up with zeros to whole groups of rows.
struct ScaledPoints {
  Eigen::MatrixXd ordered;          ///< rows x d, x_i / l_i
  Eigen::MatrixXd categories;       ///< rows x c, the indices; as doubles they are compared several at a time
  Eigen::VectorXd category_weight;  ///< c, 1 / l_j^2

  /// theta as in stationary.cpp.
  ScaledPoints(const Points& points, const Eigen::VectorXd& theta);
  Eigen::Index rows() const { return ordered.rows(); }
};

using ArrayIn = Eigen::Ref<const Eigen::ArrayXd>;
using ArrayOut = Eigen::Ref<Eigen::ArrayXd>;

/// The joint squared distance of row j of y from each of the last r2.size() rows of x.
void squared_distances(const ScaledPoints& x, const ScaledPoints& y, Eigen::Index j, ArrayOut r2);

/// For each column p of [ordered, categories]: sums[p] += sum_k weights[k] * (the term of r2[k] that belongs to p), r2
/// as above and of the size of weights.
void add_weighted_terms(const ScaledPoints& x, const ScaledPoints& y, Eigen::Index j, const ArrayIn& weights,
                        Eigen::Ref<Eigen::VectorXd> sums);

/// The correlation of a stationary kind, by the vector unit of this machine.
VectorUnit::Profile radial_profile(KernelKind kind);

}  // namespace krigtune::surrogate
