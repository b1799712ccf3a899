#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/op_traits.h"

/// The words in which op_table.cpp describes operations: how many elements an operand has, and what is done with it.
namespace krigtune::plan::op_words {

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
inline std::int64_t outer_inner(S s) { return s.outer * s.inner; }
inline std::int64_t groups_outer(S s) { return s.groups * s.outer; }
inline std::int64_t groups_outer_inner(S s) { return s.groups * s.outer * s.inner; }
inline std::int64_t rows_outer_inner(S s) { return s.rows * s.outer * s.inner; }
inline std::int64_t seq_inner(S s) { return s.seq * s.inner; }
// A row of qkv: q (inner = heads d) | k (kv_heads d) | v.
inline std::int64_t qkv(S s) {
  return s.batch * s.seq * (s.inner + 2 * s.kv_heads * (s.heads > 0 ? s.inner / s.heads : 0));
}
inline std::int64_t queries_and_keys(S s) {
  return s.batch * s.seq * (s.inner + s.kv_heads * (s.heads > 0 ? s.inner / s.heads : 0));
}
inline std::int64_t head_stats(S s) { return s.batch * s.seq * (s.heads + s.kv_heads); }
inline std::int64_t head_outputs(S s) { return s.batch * s.seq * s.inner; }
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

// FLOPs of one causal attention product: row i attends to i + 1 keys.
inline double attention_product(const Shape& shape) {
  const auto seq = static_cast<double>(shape.seq);
  return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.inner) * seq * (seq + 1.0) / 2.0;
}

inline double of_attention(const Operation& operation) { return 2.0 * attention_product(operation.shape); }

// Eager attention has kept its probabilities, which saves one of the five products.
inline double of_attention_backward(const Operation& operation) {
  constexpr std::size_t kWithoutProbabilities = 5;
  return (operation.operands.size() > kWithoutProbabilities ? 4.0 : 5.0) * attention_product(operation.shape);
}

}  // namespace krigtune::plan::op_words
