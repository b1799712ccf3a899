#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plan/step_plan.h"

namespace krigtune::plan {

inline std::uint64_t unsigned_of(std::int64_t x) { return static_cast<std::uint64_t>(x); }

/// Elements [begin, end), of which element e has the value a + e b (mod 2^64).
struct Piece {
  std::int64_t begin = 0, end = 0;
  std::uint64_t a = 0, b = 0;
  bool is_defined = true;
  std::int32_t writer = -1;  ///< operation

  std::int64_t elems() const { return end - begin; }
  bool is_zero() const { return is_defined && a == 0 && b == 0; }
};

/// What a range holds: symbols in place of numbers. Sums are sums, so they do not depend on their order; everything
/// else is a number that its operation and its inputs determine, different for different ones (up to chance, 2^-64).
/// That a value depends on its place by a straight line lets ranges be cut, moved and joined without losing track.
class Symbols {
 public:
  Symbols() = default;
  /// Zeros.
  explicit Symbols(std::int64_t elems);
  /// The symbol of `seed`.
  Symbols(std::int64_t elems, std::uint64_t seed);
  static Symbols undefined(std::int64_t elems);
  /// One element.
  static Symbols number(std::uint64_t value);

  std::int64_t elems() const { return pieces_.empty() ? 0 : pieces_.back().end; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  bool is_defined() const;
  bool is_zero() const;

  Symbols part(std::int64_t begin, std::int64_t elems) const;
  void put(std::int64_t begin, const Symbols& values, std::int32_t writer);
  void append(const Symbols& behind);
  void add(const Symbols& other);
  /// Of the values, whatever pieces they are in.
  std::uint64_t hash() const;

  friend bool operator==(const Symbols& x, const Symbols& y) { return x.elems() == y.elems() && x.hash() == y.hash(); }

 private:
  std::size_t cut(std::int64_t at);

  std::vector<Piece> pieces_;  ///< in order, without gaps
};

/// Mixes two numbers into one (splitmix64's finalizer, Steele et al. 2014).
std::uint64_t mixed(std::uint64_t x, std::uint64_t y);

/// Where in the symbol of `seed` (or of a sum with this a and b) a piece's element `at` is; -1: nowhere.
std::int64_t place_in(const Piece& symbol, const Piece& piece, std::int64_t at);

/// What an operation computes is named by these and by its inputs.
struct SymbolicCall {
  schedule::OpKind kind{};
  Shape shape;
  double scale = 1.0;
  std::uint64_t place = 0;  ///< what else it depends on: the batch, the tokens of this rank

  /// Names the result that goes into operand `operand`.
  std::uint64_t result(const std::vector<std::uint64_t>& inputs, std::size_t operand) const;
};

/// An operation of the forward pass as one rank executed it: what each operand held before and after.
struct Executed {
  std::vector<Symbols> before, after;
  std::uint64_t place = 0;  ///< which tokens it holds, where that matters to the derivative
};

/// Reverse-mode differentiation of the forward pass that a plan has executed, by the backward operations
/// that the table of op_traits.cpp names. Values are
/// found by what they are, wherever they lie: so nothing is learnt from the plan's own backward pass.
///
/// What all tensor-parallel ranks compute alike is one operation and counts once; where their inputs differ, they are
/// parts of one, and the derivatives that they give to what they share are summed.
class Derivatives {
 public:
  static bool records(const Operation& operation);
  /// Whether the derivative of such an operation depends on where it was executed (Executed::place).
  static bool depend_on_place(schedule::OpKind forward);
  /// `ranks`: of one data-parallel rank, by tensor rank.
  void record(const Operation& operation, std::vector<Executed> ranks);
  /// To be called once, when the forward passes of all micro-steps are recorded.
  void differentiate();
  /// The loss's derivative with respect to a value; zeros if it does not depend on it.
  Symbols of(const Symbols& value) const;

 private:
  struct Entry {
    const Operation* operation;
    std::vector<Executed> ranks;
  };

  void add(const Symbols& value, const Symbols& derivative);
  void through(const Entry& entry, const Executed& rank);
  void through_collective(const Entry& entry);

  std::vector<Entry> tape_;
  std::unordered_map<std::uint64_t, Symbols> of_;  ///< by the value's hash
};

}  // namespace krigtune::plan
