#pragma once
// What attention's forward and backward share: heads and tiles as views, and what happens to scores row by row.
#include <algorithm>
#include <cmath>

#include "host/kernels/dropout_mask.h"
#include "host/kernels/elementary.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {

constexpr std::int64_t kTileRows = 48;

/// Plans of models without groups may leave kv_heads out.
inline std::int64_t kv_heads(const Shape& s) { return s.kv_heads > 0 ? s.kv_heads : s.heads; }

/// Rows [begin, begin + rows) of the scores of one head of one sequence, and the columns up to the last one's diagonal.
struct Tile {
  std::int64_t sequence, head, begin, rows, cols;

  template <class T>
  MatrixView<T> of(const MatrixView<T>& whole) const {
    return {whole.data + begin * whole.stride, rows, whole.cols, whole.stride};
  }
  /// Where it begins in batch x heads x seq x seq.
  std::int64_t element(const Shape& s) const { return ((sequence * s.heads + head) * s.seq + begin) * s.seq; }
};

template <class Do>
void for_each_head(const Shape& s, Do act) {
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t a = 0; a < s.heads; ++a) act(b, a);
  }
}

template <class Do>
void for_each_tile(std::int64_t sequence, std::int64_t head, const Shape& s, Do act) {
  for (std::int64_t begin = 0; begin < s.seq; begin += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, s.seq - begin);
    act(Tile{sequence, head, begin, rows, begin + rows});
  }
}

/// Four tiles, and what a product needs.
template <class T>
struct Scratch {
  T* begin;
  std::int64_t tile_elems;

  explicit Scratch(const KernelCall& call)
      : begin(static_cast<T*>(call.scratch)), tile_elems(kTileRows * call.shape().seq) {}
  T* tile(std::int64_t i) const { return begin + i * tile_elems; }
  void multiply(const Product<T>& product) const { KRIGTUNE_KERNELS::multiply<T>(product, tile(4)); }
};

/// The parts of one head within the rows of one sequence.
template <class T>
struct Head {
  MatrixView<T> q, k, v;
  Head(T* qkv, std::int64_t sequence, std::int64_t head, const Shape& s) {
    const std::int64_t d = s.inner / s.heads;
    const std::int64_t width = s.inner + 2 * kv_heads(s) * d;
    T* first = qkv + sequence * s.seq * width;
    T* keys = first + s.inner + head / (s.heads / kv_heads(s)) * d;
    q = {first + head * d, s.seq, d, width};
    k = {keys, s.seq, d, width};
    v = {keys + kv_heads(s) * d, s.seq, d, width};
  }
};

template <class T>
MatrixView<T> head_of_output(T* out, std::int64_t sequence, std::int64_t head, const Shape& s) {
  const std::int64_t d = s.inner / s.heads;
  return {out + sequence * s.seq * s.inner + head * d, s.seq, d, s.inner};
}

template <class T>
struct HeadOutput {
  MatrixView<const T> out, dout;
};

template <class T>
T inverse_root_dimension(const Shape& s) {
  const std::int64_t head_dimension = s.inner / s.heads;
  return T(1) / std::sqrt(static_cast<T>(head_dimension));
}

/// Scores become probabilities, 0 up to the end of the row; logsumexp gets L.
template <class T>
void causal_softmax(const MatrixView<T>& scores, const Tile& at, const Shape& s, T* logsumexp) {
  const T scale = inverse_root_dimension<T>(s);
  for (std::int64_t i = 0; i < at.rows; ++i) {
    T* row = scores.data + i * scores.stride;
    const std::int64_t count = at.begin + i + 1;
    const T top = largest(row, count, row[0]) * scale;
    for (std::int64_t j = 0; j < count; ++j) row[j] = exponential(row[j] * scale - top);
    const T sum = ordered_sum<T>(count, [&](std::int64_t j) { return row[j]; });
    const T inverse = T(1) / sum;
    for (std::int64_t j = 0; j < count; ++j) row[j] *= inverse;
    clear(row + count, s.seq - count);
    logsumexp[i] = top + std::log(sum);
  }
}

template <class T>
void probabilities_again(const MatrixView<T>& scores, const Tile& at, const Shape& s, const T* logsumexp) {
  const T scale = inverse_root_dimension<T>(s);
  for (std::int64_t i = 0; i < at.rows; ++i) {
    T* row = scores.data + i * scores.stride;
    const std::int64_t count = at.begin + i + 1;
    const T l = logsumexp[i];
    for (std::int64_t j = 0; j < count; ++j) row[j] = exponential(row[j] * scale - l);
    clear(row + count, at.cols - count);
  }
}

/// dp becomes dS.
template <class T>
void scores_backward(const MatrixView<const T>& p, const MatrixView<T>& dp, const Tile& at, const Shape& s,
                     const MatrixView<const T>& out, const MatrixView<const T>& dout) {
  const T scale = inverse_root_dimension<T>(s);
  for (std::int64_t i = 0; i < at.rows; ++i) {
    const T* o = out.data + i * out.stride;
    const T* g = dout.data + i * dout.stride;
    const T inner = ordered_sum<T>(out.cols, [&](std::int64_t j) { return o[j] * g[j]; });
    const T* weights = p.data + i * p.stride;
    T* row = dp.data + i * dp.stride;
    const std::int64_t count = at.begin + i + 1;
    for (std::int64_t j = 0; j < count; ++j) row[j] = weights[j] * (row[j] - inner) * scale;
    clear(row + count, at.cols - count);
  }
}

template <class T>
void multiply_elements(const MatrixView<T>& a, const MatrixView<T>& b) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    T* row = a.data + i * a.stride;
    const T* other = b.data + i * b.stride;
    for (std::int64_t j = 0; j < a.cols; ++j) row[j] *= other[j];
  }
}

template <class T>
void clear_rows(const MatrixView<T>& a) {
  for (std::int64_t i = 0; i < a.rows; ++i) clear(a.data + i * a.stride, a.cols);
}

template <class T>
void keep_mask(const T* keeps, std::int64_t count, std::int64_t seq, std::uint8_t* mask) {
  for (std::int64_t j = 0; j < count; ++j) mask[j] = keeps[j] != T(0) ? 1 : 0;
  for (std::int64_t j = count; j < seq; ++j) mask[j] = 0;
}

}  // namespace krigtune::KRIGTUNE_KERNELS
