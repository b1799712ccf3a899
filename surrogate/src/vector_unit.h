#pragma once
#include <cstddef>
#include <vector>

namespace krigtune {

/// What dominates the cost of a Gaussian process, compiled for one kind of vector unit. Matrices are column-major:
/// entry (i, j) at i + j * stride. The functions hold no state; results of two units differ by rounding.
struct VectorUnit {
  using Index = std::ptrdiff_t;

  const char* name;

  /// A = L L^T in place, n x n, of which only the lower triangle is read; what is above the diagonal afterwards means
  /// nothing. False if A is not positive definite.
  bool (*cholesky)(Index n, double* a, Index a_stride);
  /// B <- B L^-T: B m x n, L n x n lower triangular. The rows of B are right-hand sides of L v = b.
  void (*solve_rows)(Index m, Index n, const double* lower, Index lower_stride, double* b, Index b_stride);
  /// C <- C - A B^T: A m x k, B n x k, C m x n.
  void (*subtract_product)(Index m, Index n, Index k, const double* a, Index a_stride, const double* b, Index b_stride,
                           double* c, Index c_stride);
  /// L <- (L L^T)^-1, whole: L n x n with zeros above the diagonal. About 2/3 n^3 flops.
  void (*invert)(Index n, double* lower, Index lower_stride);
  /// sums <- sums + V weights, squares <- squares + the squared norms of V's rows: V m x n.
  void (*add_moments)(Index m, Index n, const double* v, Index v_stride, const double* weights, double* sums,
                      double* squares);
};

/// The best one that this machine has.
const VectorUnit& vector_unit();
/// All that this machine has, the plain one first.
std::vector<const VectorUnit*> available_vector_units();

}  // namespace krigtune
