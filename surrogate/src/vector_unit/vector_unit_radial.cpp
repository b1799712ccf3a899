// The inner loops of the stationary kernels: terms of the squared distance r^2, and for r >= 0 correlations k(r^2) and
// their slopes k' = dk / d(r^2):
//
//   Matern 5/2            k = (1 + u + u^2 / 3) exp(-u)    k' = -(5/6) (1 + u) exp(-u)    u = sqrt(5) r
//   Matern 3/2            k = (1 + u) exp(-u)              k' = -(3/2) exp(-u)            u = sqrt(3) r
//   squared exponential   k = exp(-r^2 / 2)                k' = -(1/2) exp(-r^2 / 2)
//
// Rasmussen & Williams 2006, eq. 4.9 and 4.17.
#include "vector_unit/vector_unit_functions.h"
#include "vector_unit/vector_unit_lanes.h"

namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT {
namespace {

struct Correlation {
  Lanes value;
  Lanes slope;
};

struct Matern52 {
  static Correlation at(const Lanes& r2) {
    const Lanes u = (5.0 * r2).sqrt();
    const Lanes decay = (-u).exp();
    return {(1.0 + u + (5.0 / 3.0) * r2) * decay, (-5.0 / 6.0) * (1.0 + u) * decay};
  }
};

struct Matern32 {
  static Correlation at(const Lanes& r2) {
    const Lanes u = (3.0 * r2).sqrt();
    const Lanes decay = (-u).exp();
    return {(1.0 + u) * decay, -1.5 * decay};
  }
};

struct SquaredExponential {
  static Correlation at(const Lanes& r2) {
    const Lanes decay = (-0.5 * r2).exp();
    return {decay, -0.5 * decay};
  }
};

template <class Profile>
void correlation(Index n, double* r2) {
  for (Index i = 0; i < n; i += kLanes) store(Profile::at(load(r2 + i, n - i)).value, r2 + i, n - i);
}

template <class Profile>
void with_slope(Index n, double* r2, double* slope) {
  for (Index i = 0; i < n; i += kLanes) {
    const Correlation at = Profile::at(load(r2 + i, n - i));
    store(at.value, r2 + i, n - i);
    store(at.slope, slope + i, n - i);
  }
}

template <class Profile>
constexpr VectorUnit::Profile kProfile{correlation<Profile>, with_slope<Profile>};

/// Returns 1 if x is not y, else 0, for whole numbers. It uses no comparison, because GCC would not vectorise it.
Lanes differs(const Lanes& x, double y) { return (x - y).abs().min(1.0); }

}  // namespace

VectorUnit::Profile matern52() { return kProfile<Matern52>; }
VectorUnit::Profile matern32() { return kProfile<Matern32>; }
VectorUnit::Profile squared_exponential() { return kProfile<SquaredExponential>; }

/// Sums squared differences, because |x|^2 - 2 x.y + |y|^2 cancels for neighbours.
void add_squares(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride, double* r2) {
  for (Index i = 0; i < n; i += kLanes) {
    Lanes sum = load(r2 + i, n - i);
    for (Index p = 0; p < d; ++p) sum += (load(x + i + p * x_stride, n - i) - y[p * y_stride]).square();
    store(sum, r2 + i, n - i);
  }
}

void add_mismatches(Index n, Index c, const double* x, Index x_stride, const double* y, Index y_stride,
                    const double* weights, double* r2) {
  for (Index i = 0; i < n; i += kLanes) {
    Lanes sum = load(r2 + i, n - i);
    for (Index p = 0; p < c; ++p) sum += weights[p] * differs(load(x + i + p * x_stride, n - i), y[p * y_stride]);
    store(sum, r2 + i, n - i);
  }
}

void sum_squares(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride,
                 const double* weights, double* sums) {
  for (Index p = 0; p < d; ++p) {
    Lanes sum = Lanes::Zero();
    for (Index i = 0; i < n; i += kLanes)
      sum += load(weights + i, n - i) * (load(x + i + p * x_stride, n - i) - y[p * y_stride]).square();
    sums[p] += sum.sum();
  }
}

void sum_mismatches(Index n, Index c, const double* x, Index x_stride, const double* y, Index y_stride,
                    const double* weights, double* sums) {
  for (Index p = 0; p < c; ++p) {
    Lanes sum = Lanes::Zero();
    for (Index i = 0; i < n; i += kLanes)
      sum += load(weights + i, n - i) * differs(load(x + i + p * x_stride, n - i), y[p * y_stride]);
    sums[p] += sum.sum();
  }
}

}  // namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT
