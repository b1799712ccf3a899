#pragma once
#include <cstdint>
#include <string_view>

#include "plan/op_traits.h"

// The words in which the table of op_table.cpp describes operands: how many elements they have, how they are used, and
// how the work is counted.
namespace krigtune::plan::operands {

// --- the number of elements of an operand
using S = const Shape&;
inline std::int64_t one(S) { return 1; }
inline std::int64_t control_elems(S) { return schedule::kControlElementCount; }
inline std::int64_t rows(S s) { return s.rows; }
inline std::int64_t two_rows(S s) { return 2 * s.rows; }
inline std::int64_t inner(S s) { return s.inner; }
inline std::int64_t outer(S s) { return s.outer; }
inline std::int64_t tokens(S s) { return s.batch * s.seq; }
inline std::int64_t rows_inner(S s) { return s.rows * s.inner; }
inline std::int64_t two_rows_inner(S s) { return 2 * s.rows * s.inner; }
inline std::int64_t rows_outer(S s) { return s.rows * s.outer; }
inline std::int64_t rows_inner_and_outer(S s) { return s.rows * (s.inner + s.outer); }
inline std::int64_t outer_inner(S s) { return s.outer * s.inner; }
inline std::int64_t groups_outer(S s) { return s.groups * s.outer; }
inline std::int64_t groups_outer_inner(S s) { return s.groups * s.outer * s.inner; }
inline std::int64_t rows_outer_inner(S s) { return s.rows * s.outer * s.inner; }
inline std::int64_t seq_inner(S s) { return s.seq * s.inner; }
// A row of qkv: q (inner = heads d) | k (kv_heads d) | v, whose heads have another width d_v if values = heads d_v is
// given.
inline std::int64_t width_of_outputs(S s) { return s.values > 0 ? s.values : s.inner; }
inline std::int64_t of_kv_heads(S s, std::int64_t width_of_all) {
  return s.heads > 0 ? s.kv_heads * (width_of_all / s.heads) : 0;
}
inline std::int64_t queries_and_keys(S s) { return s.batch * s.seq * (s.inner + of_kv_heads(s, s.inner)); }
inline std::int64_t qkv(S s) { return queries_and_keys(s) + s.batch * s.seq * of_kv_heads(s, width_of_outputs(s)); }
inline std::int64_t head_queries(S s) { return s.batch * s.seq * s.inner; }
inline std::int64_t head_stats(S s) { return s.batch * s.seq * (s.heads + s.kv_heads); }
inline std::int64_t head_outputs(S s) { return s.batch * s.seq * width_of_outputs(s); }
inline std::int64_t logsumexp(S s) { return s.batch * s.heads * s.seq; }
inline std::int64_t probabilities(S s) { return s.batch * s.heads * s.seq * s.seq; }

// --- the use of an operand
using Elems = std::int64_t (*)(S);
constexpr OperandTraits in(std::string_view name, Elems elems = nullptr) { return {name, Role::kInput, elems}; }
constexpr OperandTraits held(std::string_view name, Elems elems) { return {name, Role::kHeld, elems}; }
constexpr OperandTraits out(std::string_view name, Elems elems = nullptr) { return {name, Role::kOutput, elems}; }
constexpr OperandTraits set(std::string_view name, Elems elems = nullptr) { return {name, Role::kSet, elems}; }
constexpr OperandTraits sum(std::string_view name, Elems elems = nullptr) { return {name, Role::kAddedTo, elems}; }
constexpr OperandTraits in_place(std::string_view name, Elems elems = nullptr) { return {name, Role::kInPlace, elems}; }
constexpr OperandTraits becomes(std::string_view after, std::string_view name, Elems elems) {
  OperandTraits operand = in_place(name, elems);
  operand.becomes = after;
  return operand;
}
constexpr OperandTraits maybe(OperandTraits operand) {
  operand.optional = true;
  return operand;
}
constexpr OperandTraits only_predicted(OperandTraits operand) {
  operand.optional = operand.predicted_only = true;
  return operand;
}
constexpr OperandTraits scratch(std::string_view name) {
  OperandTraits operand = set(name);
  operand.scratch = true;
  return operand;
}
constexpr OperandTraits look_up(OperandTraits operand) {
  operand.looked_up = true;
  return operand;
}

// --- FLOPs that are not proportional to the first operand's elements
inline double of_rows_inner(const Operation& operation) {
  return static_cast<double>(operation.shape.rows) * static_cast<double>(operation.shape.inner);
}

inline double of_product(const Operation& operation) {
  const Shape& s = operation.shape;
  return 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.inner) * static_cast<double>(s.outer);
}

// --- FLOPs of the scans of Mamba-2 and of a gated delta rule, which work on chunks of C tokens; all products of a
// triangle of a chunk's C x C pairs of tokens are counted as such, with its diagonal or (strict) without it.
struct Chunks {
  double full = 0.0, rest = 0.0;    // chunks of C tokens, and 1 if there is a shorter one
  double tokens = 0.0, last = 0.0;  // of a full one and of the shorter one
};
inline Chunks chunks_of(S s) {
  const auto batch = static_cast<double>(s.batch);
  const std::int64_t last = s.seq % s.chunk;
  return {batch * static_cast<double>(s.seq / s.chunk), last > 0 ? batch : 0.0, static_cast<double>(s.chunk),
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

// FLOPs of one causal attention product over all heads together `width` wide: row i attends to i + 1 keys.
inline double attention_product(const Shape& shape, std::int64_t width) {
  const auto seq = static_cast<double>(shape.seq);
  return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(width) * seq * (seq + 1.0) / 2.0;
}

inline double of_attention(const Operation& operation) {
  const Shape& s = operation.shape;
  return attention_product(s, s.inner) + attention_product(s, width_of_outputs(s));
}

// Two products have the width of the values, and those of scores, queries and keys that of the queries. Eager attention
// has kept its probabilities, which saves the scores.
inline double of_attention_backward(const Operation& operation) {
  constexpr std::size_t kWithoutProbabilities = 5;
  const Shape& s = operation.shape;
  const double of_queries = operation.operands.size() > kWithoutProbabilities ? 2.0 : 3.0;
  return of_queries * attention_product(s, s.inner) + 2.0 * attention_product(s, width_of_outputs(s));
}

}  // namespace krigtune::plan::operands
