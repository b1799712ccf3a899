#pragma once
#include <cstdint>

namespace krigtune::engine {

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

/// c = a b, with a^T and b^T in place of a and b where so said; what c held and `bias` are added where so said. c is
/// never aliased.
template <class T>
struct Product {
  MatrixView<const T> a, b;
  MatrixView<T> c;
  bool a_transposed = false;
  bool b_transposed = false;
  bool adds = false;
  const T* bias = nullptr;  ///< one element a column of c, added to every row; may be null
};

/// Single-threaded. Every element of c is summed in an order that depends on the length of the sum alone. `scratch`:
/// kGemmScratchElems elements.
template <class T>
using Multiply = void (*)(const Product<T>& product, T* scratch);

inline constexpr std::int64_t kGemmDepth = 256;    // of the parts in which sums are cut
inline constexpr std::int64_t kGemmRows = 96;      // of a that are packed at a time
inline constexpr std::int64_t kGemmColumns = 512;  // of b, likewise, at most
inline constexpr std::int64_t kGemmScratchElems = kGemmDepth * (kGemmRows + kGemmColumns) + 64;

}  // namespace krigtune::engine
