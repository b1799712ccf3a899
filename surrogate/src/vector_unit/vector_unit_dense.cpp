// Triangular algorithms. They halve their matrix until a block fits into the first-level cache, and leave the remaining
// work to matrix products:
//
//   L = [ L1 0 ; L21 L2 ],   A = [ A1 . ; A21 A2 ]
//   A = L L^T        : L1 of A1;  L21 = A21 L1^-T;  L2 of A2 - L21 L21^T
//   X L^T = B        : X1 L1^T = B1;  X2 L2^T = B2 - X1 L21^T
//   M = L^-1         : M1, M2;  M21 = -M2 L21 M1
//   M^T M            : lower blocks M1^T M1 + M21^T M21, M2^T M21, M2^T M2
//
// (Gustavson 1997, "Recursion leads to automatic variable blocking for dense linear-algebra algorithms".)
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "vector_unit/vector_unit_functions.h"

namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT {
namespace {

constexpr Index kBlock = 32;                           // 32 x 32 doubles are 8 KB, a quarter of a small first cache
constexpr Index kRows = EIGEN_MAX_STATIC_ALIGN_BYTES;  // eight vector registers of doubles

using Map = Eigen::Map<Eigen::MatrixXd, 0, Eigen::OuterStride<>>;

/// Part of a matrix.
struct View {
  double* data;
  Index rows;
  Index cols;
  Index stride;

  double* column(Index j) const { return data + j * stride; }
  double& at(Index i, Index j) const { return data[i + j * stride]; }
  View block(Index i, Index j, Index r, Index c) const { return {data + i + j * stride, r, c, stride}; }
  Map map() const { return {data, rows, cols, Eigen::OuterStride<>(stride)}; }
};

View view_of(const double* data, Index rows, Index cols, Index stride) {
  return {const_cast<double*>(data), rows, cols, stride};  // the view is only read
}

/// A square matrix in four parts. The size of the first one is a multiple of kBlock.
struct Quarters {
  View first;
  View below;
  View second;
  explicit Quarters(const View& whole) {
    const Index n = whole.rows;
    const Index half = (n + kBlock - 1) / kBlock / 2 * kBlock;
    first = whole.block(0, 0, half, half);
    below = whole.block(half, 0, n - half, half);
    second = whole.block(half, half, n - half, n - half);
  }
};

View left(const View& b, Index cols) { return b.block(0, 0, b.rows, cols); }
View right(const View& b, Index from) { return b.block(0, from, b.rows, b.cols - from); }
View top(const View& b, Index rows) { return b.block(0, 0, rows, b.cols); }
View bottom(const View& b, Index from) { return b.block(from, 0, b.rows - from, b.cols); }

/// x <- (x - X l) * scale for one column x that follows the columns X. It has `count` rows, a constant if possible.
template <class Count>
void solve_column(double* x, const double* before, Index stride, Index columns, const double* l, Index l_stride,
                  double scale, Count count) {
  constexpr int kSize = Count::kSize;
  Eigen::Map<Eigen::Array<double, kSize, 1>> target(x, count.size);
  Eigen::Array<double, kSize, 1, 0, kRows, 1> sum = target;
  for (Index k = 0; k < columns; ++k)
    sum -= l[k * l_stride] * Eigen::Map<const Eigen::Array<double, kSize, 1>>(before + k * stride, count.size);
  target = scale * sum;
}

struct Whole {
  static constexpr int kSize = kRows;
  Index size = kRows;
};
struct Rest {
  static constexpr int kSize = Eigen::Dynamic;
  Index size;
};

template <class Count>
void solve_small_rows(const View& b, const View& lower, const double* inverse_diagonal, Count count) {
  for (Index j = 0; j < lower.cols; ++j)
    solve_column(b.column(j), b.data, b.stride, j, &lower.at(j, 0), lower.stride, inverse_diagonal[j], count);
}

void solve_small(const View& b, const View& lower) {
  double inverse_diagonal[kBlock];
  for (Index j = 0; j < lower.cols; ++j) inverse_diagonal[j] = 1.0 / lower.at(j, j);
  Index row = 0;
  for (; row + kRows <= b.rows; row += kRows) solve_small_rows(bottom(b, row), lower, inverse_diagonal, Whole{});
  if (row < b.rows) solve_small_rows(bottom(b, row), lower, inverse_diagonal, Rest{b.rows - row});
}

/// B <- B L^-T.
void solve(const View& b, const View& lower) {
  if (lower.rows <= kBlock) return solve_small(b, lower);
  const Quarters l(lower);
  const View b1 = left(b, l.first.cols);
  const View b2 = right(b, l.first.cols);
  solve(b1, l.first);
  b2.map().noalias() -= b1.map() * l.below.map().transpose();
  solve(b2, l.second);
}

bool factor_small(const View& a) {
  for (Index j = 0; j < a.cols; ++j) {
    const double pivot = a.at(j, j);
    if (!(pivot > 0.0 && pivot <= std::numeric_limits<double>::max())) return false;  // NaN ends here too
    const double diagonal = std::sqrt(pivot);
    double* column = a.column(j);
    column[j] = diagonal;
    for (Index i = j + 1; i < a.rows; ++i) column[i] /= diagonal;
    for (Index k = j + 1; k < a.cols; ++k) {
      const double factor = column[k];
      double* other = a.column(k);
      for (Index i = k; i < a.rows; ++i) other[i] -= factor * column[i];
    }
  }
  return true;
}

/// A <- A - B B^T, only the lower triangle.
void subtract_square(const View& a, const View& b) {
  if (a.rows <= 2 * kBlock) {
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, 2 * kBlock, 2 * kBlock> product(a.rows, a.rows);
    product.noalias() = b.map() * b.map().transpose();
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = j; i < a.rows; ++i) a.at(i, j) -= product(i, j);
    return;
  }
  const Quarters q(a);
  subtract_square(q.first, top(b, q.first.rows));
  q.below.map().noalias() -= bottom(b, q.first.rows).map() * top(b, q.first.rows).map().transpose();
  subtract_square(q.second, bottom(b, q.first.rows));
}

bool factor(const View& a) {
  if (a.rows <= kBlock) return factor_small(a);
  const Quarters q(a);
  if (!factor(q.first)) return false;
  solve(q.below, q.first);
  subtract_square(q.second, q.below);
  return factor(q.second);
}

/// B <- B M, M lower triangular with zeros above.
void multiply_right(const View& b, const View& m) {
  if (m.rows <= kBlock) {
    b.map() = b.map() * m.map();
    return;
  }
  const Quarters q(m);
  const View b1 = left(b, q.first.cols);
  const View b2 = right(b, q.first.cols);
  multiply_right(b1, q.first);
  b1.map().noalias() += b2.map() * q.below.map();
  multiply_right(b2, q.second);
}

/// B <- -M B, M lower triangular with zeros above.
void multiply_left_negated(const View& m, const View& b) {
  if (m.rows <= kBlock) {
    b.map() = -m.map() * b.map();
    return;
  }
  const Quarters q(m);
  const View b1 = top(b, q.first.rows);
  const View b2 = bottom(b, q.first.rows);
  multiply_left_negated(q.second, b2);
  b2.map().noalias() -= q.below.map() * b1.map();
  multiply_left_negated(q.first, b1);
}

/// B <- M^T B, M lower triangular with zeros above.
void multiply_left_transposed(const View& m, const View& b) {
  if (m.rows <= kBlock) {
    b.map() = m.map().transpose() * b.map();
    return;
  }
  const Quarters q(m);
  const View b1 = top(b, q.first.rows);
  const View b2 = bottom(b, q.first.rows);
  multiply_left_transposed(q.first, b1);
  b1.map().noalias() += q.below.map().transpose() * b2.map();
  multiply_left_transposed(q.second, b2);
}

/// Works backwards from the last column: M's column j is 1 / l_jj with -M22 l_j / l_jj below it.
void invert_lower_small(const View& l) {
  double sum[kBlock];
  for (Index j = l.cols - 1; j >= 0; --j) {
    double* column = l.column(j);
    column[j] = 1.0 / column[j];
    for (Index i = j + 1; i < l.rows; ++i) sum[i] = 0.0;
    for (Index k = j + 1; k < l.rows; ++k)
      for (Index i = k; i < l.rows; ++i) sum[i] += column[k] * l.at(i, k);
    for (Index i = j + 1; i < l.rows; ++i) column[i] = -column[j] * sum[i];
  }
}

/// L <- L^-1.
void invert_lower(const View& l) {
  if (l.rows <= kBlock) return invert_lower_small(l);
  const Quarters q(l);
  invert_lower(q.first);
  invert_lower(q.second);
  multiply_right(q.below, q.first);
  multiply_left_negated(q.second, q.below);
}

/// A <- A + B^T B, the lower triangle and a part of the upper one.
void add_square(const View& a, const View& b) {
  if (a.rows <= 2 * kBlock) {
    a.map().noalias() += b.map().transpose() * b.map();
    return;
  }
  const Quarters q(a);
  add_square(q.first, left(b, q.first.cols));
  q.below.map().noalias() += right(b, q.first.cols).map().transpose() * left(b, q.first.cols).map();
  add_square(q.second, right(b, q.first.cols));
}

/// M <- M^T M, the lower triangle.
void square(const View& m) {
  if (m.rows <= kBlock) {
    m.map() = m.map().transpose() * m.map();
    return;
  }
  const Quarters q(m);
  square(q.first);
  add_square(q.first, q.below);
  multiply_left_transposed(q.second, q.below);
  square(q.second);
}

void mirror_lower(const View& a) {
  if (a.rows <= kBlock) {
    for (Index j = 0; j < a.cols; ++j)
      for (Index i = 0; i < j; ++i) a.at(i, j) = a.at(j, i);
    return;
  }
  const Quarters q(a);
  mirror_lower(q.first);
  mirror_lower(q.second);
  a.block(0, q.first.cols, q.first.rows, q.second.cols).map() = q.below.map().transpose();
}

}  // namespace

bool cholesky(Index n, double* a, Index a_stride) { return factor({a, n, n, a_stride}); }

void solve_rows(Index m, Index n, const double* lower, Index lower_stride, double* b, Index b_stride) {
  solve({b, m, n, b_stride}, view_of(lower, n, n, lower_stride));
}

void subtract_product(Index m, Index n, Index k, const double* a, Index a_stride, const double* b, Index b_stride,
                      double* c, Index c_stride) {
  const Map product = view_of(a, m, k, a_stride).map();
  if (n > 1) {
    View{c, m, n, c_stride}.map().noalias() -= product * view_of(b, n, k, b_stride).map().transpose();
    return;
  }
  // A matrix times a vector. Eigen recognises this only by the type.
  using Row = Eigen::Map<const Eigen::VectorXd, 0, Eigen::InnerStride<>>;
  Eigen::Map<Eigen::VectorXd>(c, m).noalias() -= product * Row(b, k, Eigen::InnerStride<>(b_stride));
}

void invert(Index n, double* lower, Index lower_stride) {
  const View l{lower, n, n, lower_stride};
  invert_lower(l);
  square(l);
  mirror_lower(l);
}

void add_moments(Index m, Index n, const double* v, Index v_stride, const double* weights, double* sums,
                 double* squares) {
  constexpr Index kChunk = 512;  // rows whose two sums fit into the first-level cache
  for (Index row = 0; row < m; row += kChunk) {
    const Index end = std::min(m, row + kChunk);
    for (Index j = 0; j < n; ++j) {
      const double* column = v + j * v_stride;
      const double weight = weights[j];
      for (Index i = row; i < end; ++i) {
        sums[i] += column[i] * weight;
        squares[i] += column[i] * column[i];
      }
    }
  }
}

}  // namespace krigtune::surrogate::KRIGTUNE_VECTOR_UNIT
