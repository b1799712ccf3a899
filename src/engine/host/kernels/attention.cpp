// Causal attention, one (sequence, head) at a time through GEMM, d = hidden / heads:
//
//   S = Q K^T / sqrt(d);  P_ij = exp(S_ij - L_i) for j <= i, else 0;  L_i = logsumexp_{j <= i} S_ij;  O = P V
//   D_i = sum_j dO_ij O_ij;  dP = dO V^T;  dS = P (dP - D) / sqrt(d);  dQ = dS K;  dK = dS^T Q;  dV = P^T dO
//
// Forward keeps only L; backward computes P again (Dao et al. 2022, "FlashAttention", algorithm 4 without its tiles).
#include <cmath>

#include "host/kernels/elementary.h"
#include "host/kernels/gemm.h"
#include "host/kernels/kernel.h"

namespace krigtune {
namespace {

// The parts of one head within the rows of one sequence.
template <class T>
struct Head {
  MatrixView<T> q, k, v;
  Head(T* qkv, std::int64_t sequence, std::int64_t head, const Shape& s) {
    const std::int64_t d = s.inner / s.heads;
    T* first = qkv + sequence * s.seq * 3 * s.inner + head * d;
    q = {first, s.seq, d, 3 * s.inner};
    k = {first + s.inner, s.seq, d, 3 * s.inner};
    v = {first + 2 * s.inner, s.seq, d, 3 * s.inner};
  }
};

template <class T>
MatrixView<T> head_of_output(T* out, std::int64_t sequence, std::int64_t head, const Shape& s) {
  const std::int64_t d = s.inner / s.heads;
  return {out + sequence * s.seq * s.inner + head * d, s.seq, d, s.inner};
}

template <class T>
T inverse_root_dimension(const Shape& s) {
  const std::int64_t head_dimension = s.inner / s.heads;
  return T(1) / std::sqrt(static_cast<T>(head_dimension));
}

// Scores become probabilities; logsumexp gets L.
template <class T>
void causal_softmax(T* scores, std::int64_t seq, T scale, T* logsumexp) {
  for (std::int64_t i = 0; i < seq; ++i) {
    T* row = scores + i * seq;
    T top = row[0] * scale;
    for (std::int64_t j = 0; j <= i; ++j) {
      row[j] *= scale;
      top = row[j] > top ? row[j] : top;
    }
    for (std::int64_t j = 0; j <= i; ++j) row[j] = exponential(row[j] - top);
    const T sum = ordered_sum<T>(i + 1, [&](std::int64_t j) { return row[j]; });
    const T inverse = T(1) / sum;
    for (std::int64_t j = 0; j <= i; ++j) row[j] *= inverse;
    clear(row + i + 1, seq - i - 1);
    logsumexp[i] = top + std::log(sum);
  }
}

template <class T>
void probabilities_again(T* scores, std::int64_t seq, T scale, const T* logsumexp) {
  for (std::int64_t i = 0; i < seq; ++i) {
    T* row = scores + i * seq;
    const T l = logsumexp[i];
    for (std::int64_t j = 0; j <= i; ++j) row[j] = exponential(row[j] * scale - l);
    clear(row + i + 1, seq - i - 1);
  }
}

// dp becomes dS.
template <class T>
void scores_backward(const T* p, T* dp, T scale, const MatrixView<const T>& out, const MatrixView<const T>& dout) {
  const std::int64_t seq = out.rows;
  for (std::int64_t i = 0; i < seq; ++i) {
    const T* o = out.data + i * out.stride;
    const T* g = dout.data + i * dout.stride;
    const T inner = ordered_sum<T>(out.cols, [&](std::int64_t j) { return o[j] * g[j]; });
    for (std::int64_t j = 0; j <= i; ++j) dp[i * seq + j] = p[i * seq + j] * (dp[i * seq + j] - inner) * scale;
    clear(dp + i * seq + i + 1, seq - i - 1);
  }
}

}  // namespace

template <class T>
void attention_forward(const KernelCall& call) {
  const Shape& s = call.shape();
  T* scratch = static_cast<T*>(call.scratch);
  const MatrixView<const T> p = dense<const T>(scratch, s.seq, s.seq);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t a = 0; a < s.heads; ++a) {
      const Head<const T> in(call.data<const T>(0), b, a, s);
      multiply_bt<T>(in.q, in.k, dense(scratch, s.seq, s.seq), false);
      causal_softmax(scratch, s.seq, inverse_root_dimension<T>(s), call.data<T>(2) + (b * s.heads + a) * s.seq);
      multiply<T>(p, in.v, head_of_output(call.data<T>(1), b, a, s), call.adds(1));
    }
  }
}

template <class T>
void attention_backward(const KernelCall& call) {
  const Shape& s = call.shape();
  const T scale = inverse_root_dimension<T>(s);
  T* p = static_cast<T*>(call.scratch);
  T* ds = p + s.seq * s.seq;
  const MatrixView<const T> p_view = dense<const T>(p, s.seq, s.seq);
  const MatrixView<const T> ds_view = dense<const T>(ds, s.seq, s.seq);
  const bool adds = call.adds(4);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t a = 0; a < s.heads; ++a) {
      const Head<const T> in(call.data<const T>(1), b, a, s);
      const Head<T> gradient(call.data<T>(4), b, a, s);
      const MatrixView<const T> dout = head_of_output(call.data<const T>(0), b, a, s);
      const MatrixView<const T> out = head_of_output(call.data<const T>(2), b, a, s);
      multiply_bt<T>(in.q, in.k, dense(p, s.seq, s.seq), false);
      probabilities_again(p, s.seq, scale, call.data<const T>(3) + (b * s.heads + a) * s.seq);
      multiply_at<T>(p_view, dout, gradient.v, adds);
      multiply_bt<T>(dout, in.v, dense(ds, s.seq, s.seq), false);
      scores_backward(p, ds, scale, out, dout);
      multiply<T>(ds_view, in.k, gradient.q, adds);
      multiply_at<T>(ds_view, in.q, gradient.k, adds);
    }
  }
}

std::int64_t attention_forward_scratch(const Shape& shape) { return shape.seq * shape.seq; }
std::int64_t attention_backward_scratch(const Shape& shape) { return 2 * shape.seq * shape.seq; }

template void attention_forward<float>(const KernelCall&);
template void attention_forward<double>(const KernelCall&);
template void attention_backward<float>(const KernelCall&);
template void attention_backward<double>(const KernelCall&);

}  // namespace krigtune
