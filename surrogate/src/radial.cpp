// The inner loops of the stationary kernels. Joint distance of ordered columns and categories:
//
//   r^2 = sum_i ((x_i - y_i) / l_i)^2 + sum_j [c_j(x) != c_j(y)] / l_j^2
//
// A category's term is the squared distance of scaled one-hot vectors, so r is Euclidean, and a correlation that is
// positive definite in every dimension stays so. Correlations k(r^2) and slopes k' = dk / d(r^2), r >= 0:
//
//   Matern 5/2            k = (1 + u + u^2 / 3) exp(-u)    k' = -(5/6) (1 + u) exp(-u)    u = sqrt(5) r
//   Matern 3/2            k = (1 + u) exp(-u)              k' = -(3/2) exp(-u)            u = sqrt(3) r
//   squared exponential   k = exp(-r^2 / 2)                k' = -(1/2) exp(-r^2 / 2)
//
// Rasmussen & Williams 2006, eq. 4.9, 4.17 and section 5.1.
#include "radial.h"

#include <cassert>

namespace krigtune {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

struct Matern52 {
  static void correlation(ArrayOut r2) {
    r2 = (5.0 * r2).sqrt();
    r2 = (1.0 + r2 + r2.square() / 3.0) * (-r2).exp();
  }
  static void with_slope(ArrayOut r2, ArrayOut correlation, ArrayOut slope) {
    r2 = (5.0 * r2).sqrt();
    slope = (-r2).exp();
    correlation = (1.0 + r2 + r2.square() / 3.0) * slope;
    slope *= (-5.0 / 6.0) * (1.0 + r2);
  }
};

struct Matern32 {
  static void correlation(ArrayOut r2) {
    r2 = (3.0 * r2).sqrt();
    r2 = (1.0 + r2) * (-r2).exp();
  }
  static void with_slope(ArrayOut r2, ArrayOut correlation, ArrayOut slope) {
    r2 = (3.0 * r2).sqrt();
    slope = (-r2).exp();
    correlation = (1.0 + r2) * slope;
    slope *= -1.5;
  }
};

struct SquaredExponential {
  static void correlation(ArrayOut r2) { r2 = (-0.5 * r2).exp(); }
  static void with_slope(ArrayOut r2, ArrayOut correlation, ArrayOut slope) {
    correlation = (-0.5 * r2).exp();
    slope = -0.5 * correlation;
  }
};

template <class Profile>
RadialProfile table() {
  return {Profile::correlation, Profile::with_slope};
}

}  // namespace

/// Differences, not |x|^2 - 2 x.y + |y|^2: that cancels for neighbours.
void squared_distances(const ScaledPoints& x, const ScaledPoints& y, Index j, ArrayOut r2) {
  const Index count = r2.size();
  assert(count <= x.size());
  r2.setZero();
  for (Index i = 0; i < x.ordered.cols(); ++i) r2 += (x.ordered.col(i).tail(count).array() - y.ordered(j, i)).square();
  for (Index i = 0; i < x.categories.cols(); ++i) {
    const double* const index = x.categories.col(i).tail(count).data();
    const double here = y.categories(j, i);
    const double weight = x.category_weight[i];
    for (Index k = 0; k < count; ++k) r2[k] += index[k] != here ? weight : 0.0;
  }
}

void add_weighted_terms(const ScaledPoints& x, const ScaledPoints& y, Index j, const ArrayIn& weights,
                        Eigen::Ref<VectorXd> sums) {
  const Index d = x.ordered.cols();
  const Index count = weights.size();
  assert(count <= x.size() && sums.size() == d + x.categories.cols());
  for (Index i = 0; i < d; ++i)
    sums[i] += (weights * (x.ordered.col(i).tail(count).array() - y.ordered(j, i)).square()).sum();
  for (Index i = 0; i < x.categories.cols(); ++i)
    sums[d + i] += x.category_weight[i] *
                   (x.categories.col(i).tail(count).array() != y.categories(j, i)).select(weights, 0.0).sum();
}

RadialProfile radial_profile(KernelKind kind) {
  switch (kind) {
    case KernelKind::kMatern32:
      return table<Matern32>();
    case KernelKind::kSquaredExponential:
      return table<SquaredExponential>();
    default:
      assert(kind == KernelKind::kMatern52);
      return table<Matern52>();
  }
}

}  // namespace krigtune
