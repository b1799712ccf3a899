// Matrix products after Goto and van de Geijn 2008 ("Anatomy of high-performance matrix multiplication"). A part of b
// that fits into the second-level cache and a part of a are packed into panels as wide as a tile of c, and the tile is
// summed in registers over the depth of the panels. Panels are padded with zeros, so every element of c is computed in
// the same way: its sum is cut every kGemmDepth products, and within a part it runs from the first product to the last.
#include "engine/host/kernels/gemm.h"

#include <algorithm>

#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {
namespace {

/// A vector register that can be loaded from any address.
template <class T>
struct Register {
  static constexpr std::int64_t kLanes = KRIGTUNE_VECTOR_BYTES / sizeof(T);
  using Type __attribute__((vector_size(KRIGTUNE_VECTOR_BYTES), aligned(alignof(T)), may_alias)) = T;
};

constexpr std::int64_t kProductTileRows = KRIGTUNE_GEMM_TILE_ROWS;
constexpr int kTileVectors = KRIGTUNE_GEMM_TILE_VECTORS;
template <class T>
constexpr std::int64_t kTileColumns = kTileVectors* Register<T>::kLanes;
static_assert(kGemmRows % kProductTileRows == 0);

/// Adds to a tile of c, kProductTileRows x kTileColumns, the product of a panel of a and one of b over `depth`.
template <class T>
void sum_tile(std::int64_t depth, const T* __restrict a, const T* __restrict b, const MatrixView<T>& c, bool adds,
              const T* bias) {
  using Vector = typename Register<T>::Type;
  constexpr std::int64_t kLanes = Register<T>::kLanes;
  Vector sums[kProductTileRows][kTileVectors];
#pragma GCC unroll 16
  for (auto& row : sums) {
#pragma GCC unroll 4
    for (Vector& sum : row) sum = Vector{};
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector right[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      right[v] = *reinterpret_cast<const Vector*>(b + k * kTileColumns<T> + v * kLanes);
    }
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kProductTileRows; ++i) {
      const T left = a[k * kProductTileRows + i];
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) sums[i][v] += left * right[v];
    }
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kProductTileRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      auto* out = reinterpret_cast<Vector*>(c.data + i * c.stride + v * kLanes);
      Vector sum = sums[i][v];
      if (adds) sum = *out + sum;
      if (bias != nullptr) sum += *reinterpret_cast<const Vector*>(bias + v * kLanes);
      *out = sum;
    }
  }
}

/// A tile that reaches beyond the edge of c is summed in separate memory.
template <class T>
void sum_edge(std::int64_t depth, const T* a, const T* b, const MatrixView<T>& c, bool adds, const T* bias) {
  T edge[kProductTileRows * kTileColumns<T>];
  sum_tile<T>(depth, a, b, {edge, kProductTileRows, kTileColumns<T>, kTileColumns<T>}, false, nullptr);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.cols; ++j) {
      T& out = c.data[i * c.stride + j];
      T sum = edge[i * kTileColumns<T> + j];
      if (adds) sum = out + sum;
      out = bias != nullptr ? sum + bias[j] : sum;
    }
  }
}

/// The source of a panel: product k of line i is at data[i * line + k * step].
template <class T>
struct Lines {
  const T* data;
  std::int64_t line, step;

  Lines from(std::int64_t i, std::int64_t k) const { return {data + i * line + k * step, line, step}; }
};

/// Packs four products of four lines whose products are contiguous in memory.
template <class T, std::int64_t kWidth>
void pack_four(const Lines<T>& lines, T* to) {
  using Four __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias)) = T;
  const Four line0 = *reinterpret_cast<const Four*>(lines.data);
  const Four line1 = *reinterpret_cast<const Four*>(lines.data + lines.line);
  const Four line2 = *reinterpret_cast<const Four*>(lines.data + 2 * lines.line);
  const Four line3 = *reinterpret_cast<const Four*>(lines.data + 3 * lines.line);
  const Four low01 = __builtin_shufflevector(line0, line1, 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(line0, line1, 2, 6, 3, 7);
  const Four low23 = __builtin_shufflevector(line2, line3, 0, 4, 1, 5);
  const Four high23 = __builtin_shufflevector(line2, line3, 2, 6, 3, 7);
  *reinterpret_cast<Four*>(to) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(to + kWidth) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  *reinterpret_cast<Four*>(to + 2 * kWidth) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(to + 3 * kWidth) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

/// Packs one panel of kWidth lines, of which `count` exist, product by product.
template <class T, std::int64_t kWidth>
void pack(const Lines<T>& lines, std::int64_t count, std::int64_t depth, T* __restrict to) {
  static_assert(kWidth % 4 == 0);
  std::int64_t k = 0;
  if (count == kWidth && lines.line == 1) {
    for (; k < depth; ++k) {
      for (std::int64_t i = 0; i < kWidth; ++i) to[k * kWidth + i] = lines.data[k * lines.step + i];
    }
  } else if (count == kWidth && lines.step == 1) {
    for (; k + 4 <= depth; k += 4) {
      for (std::int64_t i = 0; i < kWidth; i += 4) pack_four<T, kWidth>(lines.from(i, k), to + k * kWidth + i);
    }
  }
  for (; k < depth; ++k) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      to[k * kWidth + i] = i < count ? lines.data[i * lines.line + k * lines.step] : T(0);
    }
  }
}

template <class T, std::int64_t kWidth>
void pack_all(const Lines<T>& lines, std::int64_t count, std::int64_t depth, T* to) {
  for (std::int64_t i = 0; i < count; i += kWidth) {
    pack<T, kWidth>(lines.from(i, 0), std::min(kWidth, count - i), depth, to + i * depth);
  }
}

/// Multiplies panels of a (c.rows) by panels of b (c.cols).
template <class T>
void multiply_panels(std::int64_t depth, const T* a, const T* b, const MatrixView<T>& c, bool adds, const T* bias) {
  constexpr std::int64_t kColumns = kTileColumns<T>;
  for (std::int64_t j = 0; j < c.cols; j += kColumns) {
    for (std::int64_t i = 0; i < c.rows; i += kProductTileRows) {
      const MatrixView<T> tile{c.data + i * c.stride + j, std::min(kProductTileRows, c.rows - i),
                               std::min(kColumns, c.cols - j), c.stride};
      const bool whole = tile.rows == kProductTileRows && tile.cols == kColumns;
      const T* add = bias == nullptr ? nullptr : bias + j;
      (whole ? sum_tile<T> : sum_edge<T>)(depth, a + i * depth, b + j * depth, tile, adds, add);
    }
  }
}

}  // namespace

template <class T>
void multiply(const Product<T>& product, T* scratch) {
  const auto& [a, b, c, a_transposed, b_transposed, adds, bias] = product;
  const std::int64_t depth = a_transposed ? a.rows : a.cols;
  const Lines<T> rows = {a.data, a_transposed ? 1 : a.stride, a_transposed ? a.stride : 1};
  const Lines<T> columns = {b.data, b_transposed ? b.stride : 1, b_transposed ? 1 : b.stride};
  constexpr std::int64_t kColumns = kGemmColumns / kTileColumns<T> * kTileColumns<T>;
  T* packed_rows = scratch;
  T* packed_columns = scratch + kGemmRows * kGemmDepth;
  for (std::int64_t j = 0; j < c.cols; j += kColumns) {
    const std::int64_t width = std::min(kColumns, c.cols - j);
    for (std::int64_t k = 0; k < depth; k += kGemmDepth) {
      const std::int64_t part = std::min(kGemmDepth, depth - k);
      const T* last_bias = bias != nullptr && k + part == depth ? bias + j : nullptr;
      pack_all<T, kTileColumns<T>>(columns.from(j, k), width, part, packed_columns);
      for (std::int64_t i = 0; i < c.rows; i += kGemmRows) {
        const std::int64_t height = std::min(kGemmRows, c.rows - i);
        pack_all<T, kProductTileRows>(rows.from(i, k), height, part, packed_rows);
        multiply_panels<T>(part, packed_rows, packed_columns, {c.data + i * c.stride + j, height, width, c.stride},
                           adds || k > 0, last_bias);
      }
    }
  }
}

template void multiply<float>(const Product<float>&, float*);
template void multiply<double>(const Product<double>&, double*);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
