// Causal attention by matrix products, one head of one sequence at a time, in tiles of rows that leave out the columns
// beyond the diagonal. d = hidden / heads. Heads share keys and values in groups of heads / kv_heads (Ainslie et al.
// 2023, "GQA"). m is the dropout mask divided by 1 - p, or all 1 without dropout:
//
//   S = Q K^T / sqrt(d);  P_ij = exp(S_ij - L_i) for j <= i, else 0;  L_i = logsumexp_{j <= i} S_ij;  O = (P m) V
//   D_i = sum_j dO_ij O_ij;  dP = (dO V^T) m;  dS = P (dP - D) / sqrt(d);  dQ = dS K;  dK = dS^T Q;  dV = (P m)^T dO
//
// Forward keeps only L, and backward computes P and m again (Dao et al. 2022, "FlashAttention", algorithm 4). Eager
// attention keeps P, m and P m instead.
#include <algorithm>
#include <cmath>

#include "engine/host/kernels/dropout_mask.h"
#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

// The forward and the backward pass share this part: heads and tiles as views, and row-wise operations on scores.

constexpr std::int64_t kTileRows = 48;

/// Plans of models without grouped heads may leave kv_heads out.
inline std::int64_t kv_heads(const plan::Shape& s) { return s.kv_heads > 0 ? s.kv_heads : s.heads; }

/// Rows [begin, begin + rows) of the scores of one head of one sequence, with the columns up to the last row's
/// diagonal.
struct Tile {
  std::int64_t sequence, head, begin, rows, cols;

  template <class T>
  MatrixView<T> of(const MatrixView<T>& whole) const {
    return {whole.data + begin * whole.stride, rows, whole.cols, whole.stride};
  }
  /// Offset of its first element in batch x heads x seq x seq.
  std::int64_t element(const plan::Shape& s) const { return ((sequence * s.heads + head) * s.seq + begin) * s.seq; }
};

template <class Do>
void for_each_head(const plan::Shape& s, Do act) {
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t a = 0; a < s.heads; ++a) act(b, a);
  }
}

template <class Do>
void for_each_tile(std::int64_t sequence, std::int64_t head, const plan::Shape& s, Do act) {
  for (std::int64_t begin = 0; begin < s.seq; begin += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, s.seq - begin);
    act(Tile{sequence, head, begin, rows, begin + rows});
  }
}

/// Scratch memory: four tiles, and what a matrix product needs.
template <class T>
struct Scratch {
  T* begin;
  std::int64_t tile_elems;

  explicit Scratch(const KernelCall& call)
      : begin(static_cast<T*>(call.scratch)), tile_elems(kTileRows * call.shape().seq) {}
  T* tile(std::int64_t i) const { return begin + i * tile_elems; }
  void multiply(const Product<T>& product) const { KRIGTUNE_KERNELS::multiply<T>(product, tile(4)); }
};

/// Views of one head within the rows of one sequence.
template <class T>
struct Head {
  MatrixView<T> q, k, v;
  Head(T* qkv, std::int64_t sequence, std::int64_t head, const plan::Shape& s) {
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
MatrixView<T> head_of_output(T* out, std::int64_t sequence, std::int64_t head, const plan::Shape& s) {
  const std::int64_t d = s.inner / s.heads;
  return {out + sequence * s.seq * s.inner + head * d, s.seq, d, s.inner};
}

template <class T>
struct HeadOutput {
  MatrixView<const T> out, dout;
};

template <class T>
T inverse_root_dimension(const plan::Shape& s) {
  const std::int64_t head_dimension = s.inner / s.heads;
  return T(1) / std::sqrt(static_cast<T>(head_dimension));
}

/// Turns scores into probabilities, 0 up to the end of the row, and writes L into `logsumexp`.
template <class T>
void causal_softmax(const MatrixView<T>& scores, const Tile& at, const plan::Shape& s, T* logsumexp) {
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
void probabilities_again(const MatrixView<T>& scores, const Tile& at, const plan::Shape& s, const T* logsumexp) {
  const T scale = inverse_root_dimension<T>(s);
  for (std::int64_t i = 0; i < at.rows; ++i) {
    T* row = scores.data + i * scores.stride;
    const std::int64_t count = at.begin + i + 1;
    const T l = logsumexp[i];
    for (std::int64_t j = 0; j < count; ++j) row[j] = exponential(row[j] * scale - l);
    clear(row + count, at.cols - count);
  }
}

/// Turns dP into dS, in `dp`.
template <class T>
void scores_backward(const MatrixView<const T>& p, const MatrixView<T>& dp, const Tile& at, const plan::Shape& s,
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

namespace {

/// The additional operands of eager attention, from operand `first` on. Operands that are absent lie in scratch.
template <class T>
struct Kept {
  const KernelCall& call;
  std::size_t first;

  bool probabilities() const { return call.has(first); }
  bool masks() const { return call.has(first + 1); }

  MatrixView<T> tile(std::size_t operand, const Tile& at, T* scratch) const {
    const plan::Shape& s = call.shape();
    if (!call.has(operand)) return {scratch, at.rows, at.cols, s.seq};
    return {call.data<T>(operand) + at.element(s), at.rows, at.cols, s.seq};
  }
  MatrixView<T> probabilities(const Tile& at, T* scratch) const { return tile(first, at, scratch); }
  MatrixView<T> dropped(const Tile& at, T* scratch) const { return tile(first + 2, at, scratch); }
  std::uint8_t* mask(const Tile& at) const { return call.data<std::uint8_t>(first + 1) + at.element(call.shape()); }
};

/// Draws the rows of m for one tile, and keeps them if the operation has an operand for them.
template <class T>
void draw_factors(const Kept<T>& kept, const Tile& at, const MatrixView<T>& factors) {
  const KernelCall& call = kept.call;
  const std::int64_t seq = call.shape().seq;
  const std::int64_t head = call.context.tensor_rank * call.shape().heads + at.head;  // counted in the whole model
  DropoutMask draws(call, DropoutMask::Of::kProbabilities, at.sequence);
  const T scale = static_cast<T>(1.0 / (1.0 - call.shape().dropout));
  for (std::int64_t i = 0; i < at.rows; ++i) {
    T* row = factors.data + i * factors.stride;
    draws.fill((head * seq + at.begin + i) * seq, at.cols, row);
    if (kept.masks()) keep_mask(row, at.cols, seq, kept.mask(at) + i * seq);
    for (std::int64_t j = 0; j < at.cols; ++j) row[j] *= scale;
  }
}

template <class T>
void read_factors(const Kept<T>& kept, const Tile& at, const MatrixView<T>& factors) {
  if (!kept.masks()) return draw_factors(kept, at, factors);
  const T scale = static_cast<T>(1.0 / (1.0 - kept.call.shape().dropout));
  for (std::int64_t i = 0; i < at.rows; ++i) {
    const std::uint8_t* mask = kept.mask(at) + i * kept.call.shape().seq;
    put(factors.data + i * factors.stride, at.cols, false, [&](std::int64_t j) { return mask[j] != 0 ? scale : T(0); });
  }
}

// Computes P m, which may overwrite P.
template <class T>
MatrixView<const T> drop(const MatrixView<T>& p, const MatrixView<T>& factors, const MatrixView<T>& dropped,
                         std::int64_t seq) {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const T* row = p.data + i * p.stride;
    const T* m = factors.data + i * factors.stride;
    T* out = dropped.data + i * dropped.stride;
    for (std::int64_t j = 0; j < p.cols; ++j) out[j] = row[j] * m[j];
    clear(out + p.cols, seq - p.cols);
  }
  return constant(dropped);
}

template <class T>
void tile_forward(const KernelCall& call, const Tile& at, const Head<const T>& in, const MatrixView<T>& out) {
  const plan::Shape& s = call.shape();
  const Kept<T> kept{call, 3};
  const Scratch<T> scratch(call);
  const MatrixView<T> p = kept.probabilities(at, scratch.tile(0));
  scratch.multiply({.a = at.of(in.q), .b = in.k.first(at.cols), .c = p, .b_transposed = true});
  causal_softmax(p, at, s, call.data<T>(2) + (at.sequence * s.heads + at.head) * s.seq + at.begin);
  MatrixView<const T> weights = constant(p);
  if (s.dropout > 0.0) {
    const MatrixView<T> factors{scratch.tile(1), at.rows, at.cols, s.seq};
    draw_factors(kept, at, factors);
    weights = drop(p, factors, kept.dropped(at, scratch.tile(2)), s.seq);
  }
  scratch.multiply({.a = weights, .b = in.v.first(at.cols), .c = at.of(out), .adds = call.adds(1)});
}

template <class T>
void tile_backward(const KernelCall& call, const Tile& at, const Head<const T>& in, const Head<T>& gradient,
                   const HeadOutput<T>& output) {
  const plan::Shape& s = call.shape();
  const Kept<T> kept{call, 5};
  const Scratch<T> scratch(call);
  const MatrixView<T> p = kept.probabilities(at, scratch.tile(0));
  if (!kept.probabilities()) {
    scratch.multiply({.a = at.of(in.q), .b = in.k.first(at.cols), .c = p, .b_transposed = true});
    probabilities_again(p, at, s, call.data<const T>(3) + (at.sequence * s.heads + at.head) * s.seq + at.begin);
  }
  const MatrixView<T> ds{scratch.tile(3), at.rows, at.cols, s.seq};
  const MatrixView<const T> dout = at.of(output.dout);
  scratch.multiply({.a = dout, .b = in.v.first(at.cols), .c = ds, .b_transposed = true});
  MatrixView<const T> weights = constant(p);
  if (s.dropout > 0.0) {
    const MatrixView<T> factors{scratch.tile(1), at.rows, at.cols, s.seq};
    read_factors(kept, at, factors);
    weights = kept.masks() ? constant(kept.dropped(at, nullptr))
                           : drop(p, factors, MatrixView<T>{scratch.tile(2), at.rows, at.cols, s.seq}, at.cols);
    multiply_elements(ds, factors);
  }
  scratch.multiply({.a = weights, .b = dout, .c = gradient.v.first(at.cols), .a_transposed = true, .adds = true});
  scores_backward(constant(p), ds, at, s, at.of(output.out), dout);
  scratch.multiply({.a = constant(ds), .b = in.k.first(at.cols), .c = at.of(gradient.q), .adds = call.adds(4)});
  scratch.multiply(
      {.a = constant(ds), .b = at.of(in.q), .c = gradient.k.first(at.cols), .a_transposed = true, .adds = true});
}

}  // namespace

template <class T>
void attention_forward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  for_each_head(s, [&](std::int64_t b, std::int64_t a) {
    const Head<const T> in(call.data<const T>(0), b, a, s);
    const MatrixView<T> out = head_of_output(call.data<T>(1), b, a, s);
    for_each_tile(b, a, s, [&](const Tile& at) { tile_forward(call, at, in, out); });
  });
}

template <class T>
void attention_backward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  for_each_head(s, [&](std::int64_t b, std::int64_t a) {
    const Head<const T> in(call.data<const T>(1), b, a, s);
    const Head<T> gradient(call.data<T>(4), b, a, s);
    const HeadOutput<T> output{head_of_output(call.data<const T>(2), b, a, s),
                               head_of_output(call.data<const T>(0), b, a, s)};
    const bool first_of_group = a % (s.heads / kv_heads(s)) == 0;
    if (first_of_group && !call.adds(4)) {
      clear_rows(gradient.k);
      clear_rows(gradient.v);
    }
    for_each_tile(b, a, s, [&](const Tile& at) { tile_backward(call, at, in, gradient, output); });
  });
}

std::int64_t attention_scratch(const plan::Shape& shape) { return 4 * kTileRows * shape.seq + kGemmScratchElems; }

template void attention_forward<float>(const KernelCall&);
template void attention_forward<double>(const KernelCall&);
template void attention_backward<float>(const KernelCall&);
template void attention_backward<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
