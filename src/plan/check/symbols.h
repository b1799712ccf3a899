#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plan/step_plan.h"

namespace krigtune::plan {

inline std::uint64_t unsigned_of(std::int64_t x) { return static_cast<std::uint64_t>(x); }

/// Elements [begin, end), in which element e has the value a + e b (mod 2^64).
struct Piece {
  std::int64_t begin = 0, end = 0;
  std::uint64_t a = 0, b = 0;
  bool is_defined = true;
  std::int32_t writer = -1;  ///< index of the operation that wrote it

  std::int64_t elems() const { return end - begin; }
  bool is_zero() const { return is_defined && a == 0 && b == 0; }
};

/// The contents of a range, with symbols instead of numbers. Sums are real sums, so they do not depend on the order of
/// the terms. Every other value is a number that depends on its operation and inputs and differs between different ones
/// (up to a collision probability of 2^-64). Because a value depends linearly on its position, ranges can be cut, moved
/// and joined without losing track of them.
class Symbols {
 public:
  Symbols() = default;
  /// Makes zeros.
  explicit Symbols(std::int64_t elems);
  /// Makes the symbol of `seed`.
  Symbols(std::int64_t elems, std::uint64_t seed);
  static Symbols undefined(std::int64_t elems);
  /// Makes a single element.
  static Symbols number(std::uint64_t value);

  std::int64_t elems() const { return pieces_.empty() ? 0 : pieces_.back().end; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  bool is_defined() const;
  bool is_zero() const;

  Symbols part(std::int64_t begin, std::int64_t elems) const;
  void put(std::int64_t begin, const Symbols& values, std::int32_t writer);
  void append(const Symbols& behind);
  void add(const Symbols& other);
  /// Returns a hash of the values, regardless of how they are divided into pieces.
  std::uint64_t hash() const;

  friend bool operator==(const Symbols& x, const Symbols& y) { return x.elems() == y.elems() && x.hash() == y.hash(); }

 private:
  std::size_t cut(std::int64_t at);

  std::vector<Piece> pieces_;  ///< in order, without gaps
};

/// Mixes two numbers into one (splitmix64's finalizer, Steele et al. 2014).
std::uint64_t mixed(std::uint64_t x, std::uint64_t y);

/// Returns where element `at` of a piece lies in the symbol of `seed` (or in a sum with this a and b); -1 if it is not
/// part of it.
std::int64_t place_in(const Piece& symbol, const Piece& piece, std::int64_t at);

/// The data that, together with its inputs, determine the result of an operation.
struct SymbolicCall {
  schedule::OpKind kind{};
  Shape shape;
  double scale = 1.0;
  std::uint64_t place = 0;  ///< further dependencies: the batch, the tokens of this rank

  /// Returns the name of the result in operand `operand`.
  std::uint64_t result(const std::vector<std::uint64_t>& inputs, std::size_t operand) const;
};

/// An operation of the forward pass as one rank executed it: the contents of each operand before and after.
struct Executed {
  std::vector<Symbols> before, after;
  std::uint64_t place = 0;  ///< which tokens it holds, if the derivative depends on that
};

/// Reverse-mode differentiation of the forward pass that a plan has executed, by the backward operations that the table
/// of op_table.cpp names. Values are identified by their contents and not by their location, so the result does not
/// depend on the plan's own backward pass.
///
/// An operation that all tensor-parallel ranks compute identically counts once. If their inputs differ, the ranks
/// compute parts of one operation, and their derivatives with respect to shared values are summed.
class Derivatives {
 public:
  static bool records(const Operation& operation);
  /// Returns whether the derivative of such an operation depends on where it was executed (Executed::place).
  static bool depend_on_place(schedule::OpKind forward);
  /// `ranks`: the executions on one data-parallel rank, by tensor rank.
  void record(const Operation& operation, std::vector<Executed> ranks);
  /// Call once, when the forward passes of all micro-steps are recorded.
  void differentiate();
  /// Returns the loss's derivative with respect to a value; zeros if the loss does not depend on it.
  Symbols of(const Symbols& value) const;

 private:
  struct Entry {
    const Operation* operation;
    std::vector<Executed> ranks;
  };

  void add(const Symbols& value, const Symbols& derivative);
  void differentiate_rank(const Entry& entry, const Executed& rank);
  void differentiate_collective(const Entry& entry);

  std::vector<Entry> tape_;
  std::unordered_map<std::uint64_t, Symbols> of_;  ///< by the hash of the value
};

}  // namespace krigtune::plan
