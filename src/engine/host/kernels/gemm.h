#pragma once
#include <cstdint>

namespace krigtune::engine {

/// A row-major matrix in memory that somebody else owns.
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

/// c = a b, with the transposes of a and b if so set. If `adds`, the former values of c are added, and so is `bias` if
/// it is not null. c must not overlap a or b.
template <class T>
struct Product {
  MatrixView<const T> a, b;
  MatrixView<T> c;
  bool a_transposed = false;
  bool b_transposed = false;
  bool adds = false;
  const T* bias = nullptr;  ///< one element for each column of c, added to every row; may be null
};

/// Single-threaded. The order in which an element of c is summed depends only on the length of the sum. `scratch` has
/// kGemmScratchElems elements.
template <class T>
using Multiply = void (*)(const Product<T>& product, T* scratch);

inline constexpr std::int64_t kGemmDepth = 256;    // length of the parts into which sums are cut
inline constexpr std::int64_t kGemmRows = 96;      // rows of a that are packed at a time, at most
inline constexpr std::int64_t kGemmColumns = 512;  // columns of b that are packed at a time, at most
inline constexpr std::int64_t kGemmScratchElems = kGemmDepth * (kGemmRows + kGemmColumns) + 64;

}  // namespace krigtune::engine
