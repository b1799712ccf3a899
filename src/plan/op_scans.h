#pragma once
#include <cstdint>

#include "plan/op_operands.h"

// The scans of Mamba-2 and of a gated delta rule, which work on chunks of C tokens. All products of a triangle of a
// chunk's C x C pairs of tokens are counted as such, with its diagonal or (strict) without it.
namespace krigtune::plan::operands {

struct Chunks {
  double full = 0.0, rest = 0.0;    // chunks of C tokens, and 1 if there is a shorter one
  double tokens = 0.0, last = 0.0;  // of a full one and of the shorter one
};
inline Chunks chunks_of(S s) {
  const auto batch = static_cast<double>(s.batch);
  const std::int64_t full = s.seq / s.chunk;
  const std::int64_t last = s.seq % s.chunk;
  return {batch * static_cast<double>(full), last > 0 ? batch : 0.0, static_cast<double>(s.chunk),
          static_cast<double>(last)};
}
template <class OfChunk>
double of_chunks(S s, const OfChunk& flops) {
  const Chunks chunks = chunks_of(s);
  return chunks.full * flops(chunks.tokens) + chunks.rest * flops(chunks.last);
}
// Multiplications and additions of a triangle of pairs for vectors of that width.
inline double triangle(double tokens, double width) { return tokens * (tokens + 1.0) * width; }
inline double strict_triangle(double tokens, double width) { return tokens * (tokens - 1.0) * width; }

// Widths of all heads' values (inner), of B and C of all groups, and the numbers of all states.
struct ScanWidths {
  double values = 0.0, groups = 0.0, states = 0.0;
};
inline ScanWidths mamba_widths(S s) {
  return {static_cast<double>(s.inner), static_cast<double>(s.kv_heads * s.outer),
          static_cast<double>(s.inner * s.outer)};
}

// Dao and Gu 2024 (arXiv:2405.21060), section 6: C B^T and its product with x within a chunk, the chunk's state B^T x,
// the state that passes on, and what C reads of the state before.
inline double of_mamba(const Operation& operation) {
  const ScanWidths w = mamba_widths(operation.shape);
  return of_chunks(operation.shape, [&](double tokens) {
    return triangle(tokens, w.groups + w.values) + 4.0 * tokens * w.states + 2.0 * w.states;
  });
}
// Computes C B^T and the states again. Within a chunk dx, d(C B^T), dB and dC; of the states before a chunk their
// gradient and that of C; of a chunk's own state the gradients of x and B.
inline double of_mamba_backward(const Operation& operation) {
  const ScanWidths w = mamba_widths(operation.shape);
  return of_chunks(operation.shape, [&](double tokens) {
    const double again = triangle(tokens, w.groups) + 2.0 * tokens * w.states + 2.0 * w.states;
    const double within = triangle(tokens, 2.0 * w.values + 2.0 * w.groups);
    return again + within + 8.0 * tokens * w.states + 2.0 * w.states;
  });
}

// Yang et al. 2024 (arXiv:2412.06464), section 3.3, in the order of flash-linear-attention: A = K K^T below the
// diagonal, its inverse with ones on it by substitution, W and U, the new values V' = U - W S, the state S + K^T V',
// and the output Q S + (Q K^T) V'. Every head of values has its own keys and queries.
inline double delta_inverse(double tokens) { return tokens * (tokens - 1.0) * (tokens - 2.0) / 3.0; }
inline double of_delta_states(double tokens, double keys, double values, double states) {
  return triangle(tokens, keys + values) + 4.0 * tokens * states;  // W and U, W S and K^T V'
}
inline ScanWidths delta_widths(S s) {
  return {static_cast<double>(s.inner), static_cast<double>(s.heads * s.outer), static_cast<double>(s.inner * s.outer)};
}
inline double of_delta(const Operation& operation) {
  const ScanWidths w = delta_widths(operation.shape);
  const auto heads = static_cast<double>(operation.shape.heads);
  return of_chunks(operation.shape, [&](double tokens) {
    return strict_triangle(tokens, w.groups) + heads * delta_inverse(tokens) +
           of_delta_states(tokens, w.groups, w.values, w.states) + 2.0 * tokens * w.states +
           triangle(tokens, w.groups + w.values);
  });
}
// Computes W, U, the states, V' and Q K^T again. Then of the output: dQ and dS from dO, d(Q K^T), with it dQ and dK,
// and dV'; of the state: dV' and dK from dS; of V': dW and dS; of W and U: the gradients of the inverse, of V and of K;
// of the inverse two products of triangles, and dK of A.
inline double of_delta_backward(const Operation& operation) {
  const ScanWidths w = delta_widths(operation.shape);
  const auto heads = static_cast<double>(operation.shape.heads);
  return of_chunks(operation.shape, [&](double tokens) {
    const double again = of_delta_states(tokens, w.groups, w.values, w.states) + triangle(tokens, w.groups);
    const double of_output = 4.0 * tokens * w.states + triangle(tokens, 2.0 * w.values + 2.0 * w.groups);
    const double of_state = 8.0 * tokens * w.states;
    const double of_w_and_u = 2.0 * triangle(tokens, w.groups + w.values);
    const double of_inverse =
        2.0 * heads * tokens * (tokens + 1.0) * (tokens + 2.0) / 3.0 + 2.0 * strict_triangle(tokens, w.groups);
    return again + of_output + of_state + of_w_and_u + of_inverse;
  });
}

// --- numbers that the kernels of a mixer read or write beside the operands of its operation, of which each is counted
// once or, as scratch, twice. Counted kernel by kernel: x, its gradient and its chunks' states pass through several.
// Mamba-2: mamba_ssm's ssd_combined.py (chunk_state, state_passing, bmm_chunk with its result in fp32, chunk_scan; in
// backward these again, then dz, dstates, state_passing, dx, dB, dC, dCB, ddA, the products' gradients), and the norm.
// Delta rule: flash-linear-attention's gated_delta_rule/chunk.py (norms of queries and keys, K K^T, its inverse, W and
// U, states, output; in backward W and U and the states again, dV, dstates, dQ and dK, those of W and U, and norms).
struct TokenWidths {
  double values = 0.0, pairs = 0.0, states = 0.0;  // of a token; pairs of a chunk
  double shared = 0.0, keys = 0.0;                 // of groups or heads of keys, and of all heads
};
inline TokenWidths widths_of_token(S s) {
  const auto values = static_cast<double>(s.inner);
  const auto chunk = static_cast<double>(s.chunk);
  const auto state = static_cast<double>(s.outer);
  return {values, chunk, values * state / chunk, static_cast<double>(s.kv_heads) * state,
          static_cast<double>(s.heads) * state};
}
inline double further_elems(const Operation& operation) {
  const TokenWidths w = widths_of_token(operation.shape);
  const double groups = w.pairs * static_cast<double>(operation.shape.kv_heads);
  const double heads = w.pairs * static_cast<double>(operation.shape.heads);
  const auto tokens = static_cast<double>(operation.shape.rows);
  switch (operation.kind) {
    case schedule::OpKind::kMambaForward:
      return tokens * (2.0 * w.values + 2.0 * w.shared + 4.0 * groups);
    case schedule::OpKind::kMambaBackward:
      return tokens * (13.0 * w.values + 9.0 * w.shared + 12.0 * groups + 5.0 * w.states);
    case schedule::OpKind::kDeltaForward:
      return tokens * (9.0 * w.keys + 4.0 * w.shared + 2.0 * w.values + 5.0 * heads);
    case schedule::OpKind::kDeltaBackward:
      return tokens * (23.0 * w.keys + 4.0 * w.shared + 8.0 * w.values + heads);
    default:
      return 0.0;
  }
}

// --- rows of the table: convolution, scan, gate and norm of a mixer. A row of projected has all that a product makes
// of a token. heads: a few numbers for each head. kept: see plan/mixers.h. states, mixed: between kernels.
constexpr OpTraits scan_forward(schedule::OpKind kind, const char* name, double (*flops)(const Operation&)) {
  return {.kind = kind,
          .name = name,
          .family = OpFamily::kScan,
          .operands = {in("projected"), in("gain"), in("heads"), in("conv"), set("y", rows_inner), set("kept"),
                       scratch("states"), scratch("mixed")},
          .flops = flops,
          .predicted_only = true};
}
constexpr OpTraits scan_backward(schedule::OpKind kind, schedule::OpKind forward, const char* name,
                                 double (*flops)(const Operation&)) {
  return {.kind = kind,
          .name = name,
          .family = OpFamily::kScan,
          .operands = {in("dy", rows_inner), in("projected"), in("gain"), in("heads"), in("conv"), in("kept"),
                       set("dprojected"), scratch("dstates"), scratch("dmixed"), maybe(out("dgain")),
                       maybe(out("dheads")), maybe(out("dconv"))},
          .flops = flops,
          .backward_of = forward,
          .predicted_only = true};
}

}  // namespace krigtune::plan::operands
