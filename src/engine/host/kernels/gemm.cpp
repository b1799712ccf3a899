// Products of row-major matrices. Eigen's blocked kernel packs its operands, so its sums depend on the shapes alone;
// its fallbacks for vectors (GEMV) and for tiny sizes (rows + columns + depth < 20: coefficient by coefficient) do not
// pack and may peel by address. Those sizes take a plain triple loop of our own.
#include "host/kernels/gemm.h"

#include <Eigen/Core>

namespace krigtune {
namespace {

constexpr std::int64_t kEigenCoefficientBased = 20;  // EIGEN_GEMM_TO_COEFFBASED_THRESHOLD

bool packed(std::int64_t rows, std::int64_t cols, std::int64_t depth) {
  return rows > 1 && cols > 1 && depth > 1 && rows + cols + depth >= kEigenCoefficientBased;
}

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
auto map(const MatrixView<const T>& view) {
  return Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>(view.data, view.rows, view.cols,
                                                                Eigen::OuterStride<>(view.stride));
}

template <class T>
auto map(const MatrixView<T>& view) {
  return Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>>(view.data, view.rows, view.cols,
                                                          Eigen::OuterStride<>(view.stride));
}

template <class T, class Left, class Right>
void product(const Left& left, const Right& right, const MatrixView<T>& c, bool adds) {
  auto out = map(c);
  if (adds) {
    out.noalias() += left * right;
  } else {
    out.noalias() = left * right;
  }
}

// term(i, k, j): the k-th product of element (i, j).
template <class T, class Term>
void plain(const MatrixView<T>& c, std::int64_t depth, bool adds, Term term) {
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.cols; ++j) {
      T sum = T(0);
      for (std::int64_t k = 0; k < depth; ++k) sum += term(i, k, j);
      T& out = c.data[i * c.stride + j];
      out = adds ? out + sum : sum;
    }
  }
}

}  // namespace

template <class T>
void multiply(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool adds) {
  if (packed(c.rows, c.cols, a.cols)) return product(map(a), map(b), c, adds);
  plain(c, a.cols, adds, [&](auto i, auto k, auto j) { return a.data[i * a.stride + k] * b.data[k * b.stride + j]; });
}

template <class T>
void multiply_bt(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool adds) {
  if (packed(c.rows, c.cols, a.cols)) return product(map(a), map(b).transpose(), c, adds);
  plain(c, a.cols, adds, [&](auto i, auto k, auto j) { return a.data[i * a.stride + k] * b.data[j * b.stride + k]; });
}

template <class T>
void multiply_at(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool adds) {
  if (packed(c.rows, c.cols, a.rows)) return product(map(a).transpose(), map(b), c, adds);
  plain(c, a.rows, adds, [&](auto i, auto k, auto j) { return a.data[k * a.stride + i] * b.data[k * b.stride + j]; });
}

#define KRIGTUNE_INSTANTIATE(T)                                                                                     \
  template void multiply<T>(const MatrixView<const T>&, const MatrixView<const T>&, const MatrixView<T>&, bool);    \
  template void multiply_bt<T>(const MatrixView<const T>&, const MatrixView<const T>&, const MatrixView<T>&, bool); \
  template void multiply_at<T>(const MatrixView<const T>&, const MatrixView<const T>&, const MatrixView<T>&, bool);
KRIGTUNE_INSTANTIATE(float)
KRIGTUNE_INSTANTIATE(double)
#undef KRIGTUNE_INSTANTIATE

}  // namespace krigtune
