// Causal attention through GEMM, one head of one sequence at a time, in tiles of rows that leave out what lies behind
// the diagonal. d = hidden / heads; heads share keys and values in groups of heads / kv_heads (Ainslie et al. 2023,
// "GQA"). m: dropout's mask divided by 1 - p, all 1 without it:
//
//   S = Q K^T / sqrt(d);  P_ij = exp(S_ij - L_i) for j <= i, else 0;  L_i = logsumexp_{j <= i} S_ij;  O = (P m) V
//   D_i = sum_j dO_ij O_ij;  dP = (dO V^T) m;  dS = P (dP - D) / sqrt(d);  dQ = dS K;  dK = dS^T Q;  dV = (P m)^T dO
//
// Forward keeps only L; backward computes P and m again (Dao et al. 2022, "FlashAttention", algorithm 4). Eager
// attention keeps P, m and P m instead.
#include "host/kernels/attention_parts.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
namespace {

/// The operands that eager attention adds, from operand `first` on; what is not there lies in scratch.
template <class T>
struct Kept {
  const KernelCall& call;
  std::size_t first;

  bool probabilities() const { return call.has(first); }
  bool masks() const { return call.has(first + 1); }

  MatrixView<T> tile(std::size_t operand, const Tile& at, T* scratch) const {
    const Shape& s = call.shape();
    if (!call.has(operand)) return {scratch, at.rows, at.cols, s.seq};
    return {call.data<T>(operand) + at.element(s), at.rows, at.cols, s.seq};
  }
  MatrixView<T> probabilities(const Tile& at, T* scratch) const { return tile(first, at, scratch); }
  MatrixView<T> dropped(const Tile& at, T* scratch) const { return tile(first + 2, at, scratch); }
  std::uint8_t* mask(const Tile& at) const { return call.data<std::uint8_t>(first + 1) + at.element(call.shape()); }
};

/// Rows of m for one tile: drawn (and kept where they are kept), or read.
template <class T>
void draw_factors(const Kept<T>& kept, const Tile& at, const MatrixView<T>& factors) {
  const KernelCall& call = kept.call;
  const std::int64_t seq = call.shape().seq;
  const std::int64_t head = call.context.tensor_rank * call.shape().heads + at.head;  // of the whole model
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

// P m where m is not all 1; it may lie where P lies.
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
  const Shape& s = call.shape();
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
  const Shape& s = call.shape();
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
  const Shape& s = call.shape();
  for_each_head(s, [&](std::int64_t b, std::int64_t a) {
    const Head<const T> in(call.data<const T>(0), b, a, s);
    const MatrixView<T> out = head_of_output(call.data<T>(1), b, a, s);
    for_each_tile(b, a, s, [&](const Tile& at) { tile_forward(call, at, in, out); });
  });
}

template <class T>
void attention_backward(const KernelCall& call) {
  const Shape& s = call.shape();
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

std::int64_t attention_scratch(const Shape& shape) { return 4 * kTileRows * shape.seq + kGemmScratchElems; }

template void attention_forward<float>(const KernelCall&);
template void attention_forward<double>(const KernelCall&);
template void attention_backward<float>(const KernelCall&);
template void attention_backward<double>(const KernelCall&);

}  // namespace krigtune::KRIGTUNE_KERNELS
