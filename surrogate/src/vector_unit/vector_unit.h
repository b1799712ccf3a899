#pragma once
#include <cstddef>
#include <vector>

namespace krigtune::surrogate {

/// The operations that dominate the cost of a Gaussian process, compiled for one kind of vector unit. Matrices are
/// column-major: entry (i, j) is at i + j * stride. The functions hold no state; results of different units differ by
/// rounding.
struct VectorUnit {
  using Index = std::ptrdiff_t;

  /// A correlation as a function of r^2, for whole arrays.
  struct Profile {
    /// Replaces each r2 by the correlation.
    void (*correlation)(Index n, double* r2);
    /// Does the same and sets slope to d correlation / d r^2, which has no 0/0 at r = 0.
    void (*with_slope)(Index n, double* r2, double* slope);
  };

  const char* name;

  /// Replaces the lower triangle of A, n x n, by L with A = L L^T; neither reads nor changes what is above it. Returns
  /// false if A is not positive definite; its contents are then undefined.
  bool (*cholesky)(Index n, double* a, Index a_stride);
  /// B <- B L^-T: B m x n, L n x n lower triangular. The rows of B are right-hand sides of L v = b.
  void (*solve_rows)(Index m, Index n, const double* lower, Index lower_stride, double* b, Index b_stride);
  /// C <- C - A B^T: A m x k, B n x k, C m x n.
  void (*subtract_product)(Index m, Index n, Index k, const double* a, Index a_stride, const double* b, Index b_stride,
                           double* c, Index c_stride);
  /// L <- (L L^T)^-1, the whole matrix: L n x n with zeros above the diagonal. About 2/3 n^3 flops.
  void (*invert)(Index n, double* lower, Index lower_stride);
  /// sums <- sums + V weights, squares <- squares + the squared norms of V's rows: V m x n.
  void (*add_moments)(Index m, Index n, const double* v, Index v_stride, const double* weights, double* sums,
                      double* squares);

  // For stationary kernels: x is n x d, and y holds the d entries of one point, y_stride apart.
  Profile (*matern52)();
  Profile (*matern32)();
  Profile (*squared_exponential)();
  /// r2_i <- r2_i + sum_p (x_ip - y_p)^2.
  void (*add_squares)(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride, double* r2);
  /// r2_i <- r2_i + sum_p weights_p [x_ip != y_p], x and y whole numbers.
  void (*add_mismatches)(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride,
                         const double* weights, double* r2);
  /// sums_p <- sums_p + sum_i weights_i (x_ip - y_p)^2.
  void (*sum_squares)(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride,
                      const double* weights, double* sums);
  /// sums_p <- sums_p + sum_i weights_i [x_ip != y_p], x and y whole numbers.
  void (*sum_mismatches)(Index n, Index d, const double* x, Index x_stride, const double* y, Index y_stride,
                         const double* weights, double* sums);

  /// For acquisition functions, at each of n arguments: log(phi(u) + u Phi(u)) and log Phi(z).
  void (*log_h)(Index n, const double* u, double* result);
  void (*log_normal_cdf)(Index n, const double* z, double* result);
};

/// Returns the unit that this process computes with (core/processor.h, chosen_vector_unit).
const VectorUnit& vector_unit();
/// Returns all units that this processor supports, the plain one first, regardless of which one is chosen.
std::vector<const VectorUnit*> available_vector_units();

}  // namespace krigtune::surrogate
