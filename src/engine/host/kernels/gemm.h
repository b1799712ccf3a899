#pragma once
#include <cstdint>

namespace krigtune {

/// A row-major matrix in memory of somebody else.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< elements from row to row, >= cols

  MatrixView first(std::int64_t count) const { return {data, count, cols, stride}; }
};

template <class T>
MatrixView<const T> constant(const MatrixView<T>& view) {
  return {view.data, view.rows, view.cols, view.stride};
}

template <class T>
MatrixView<T> dense(T* data, std::int64_t rows, std::int64_t cols) {
  return {data, rows, cols, cols};
}

/// c = a b (or c += a b). Never aliased. Single-threaded; the same bits for the same shapes and data.
template <class T>
void multiply(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool adds);
/// c = a b^T.
template <class T>
void multiply_bt(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool adds);
/// c = a^T b.
template <class T>
void multiply_at(const MatrixView<const T>& a, const MatrixView<const T>& b, const MatrixView<T>& c, bool adds);

}  // namespace krigtune
