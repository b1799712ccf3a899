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
inline std::int64_t rows_of_outer(S s) { return s.rows * (s.width > 0 ? s.width : s.outer); }
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
// The gain (groups = 2: and the bias) of a norm of queries is as wide as one head of them, or as all.
inline std::int64_t gain_of_keys(S s) {
  const bool of_each_head = s.heads > 0 && s.outer == s.inner / s.heads;
  return s.groups * (of_each_head ? s.outer : of_kv_heads(s, s.inner));
}
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

// Five Newton-Schulz steps X <- a X + (b A + c A^2) X with A = X X^T (Jordan et al. 2024, "Muon"), on the shorter side.
inline double newton_schulz(std::int64_t rows, std::int64_t columns) {
  constexpr double kSteps = 5.0;
  const auto m = static_cast<double>(rows < columns ? rows : columns);
  const auto n = static_cast<double>(rows < columns ? columns : rows);
  return kSteps * (4.0 * m * m * n + 2.0 * m * m * m);
}

inline double of_newton_schulz(const Operation& operation) {
  const Shape& s = operation.shape;
  return static_cast<double>(s.groups) * newton_schulz(s.rows, s.inner) / static_cast<double>(s.outer);
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
