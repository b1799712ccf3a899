#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plan/op_traits.h"
#include "plan/step_plan.h"

namespace krigtune::plan {

inline std::uint64_t unsigned_of(std::int64_t x) { return static_cast<std::uint64_t>(x); }

/// Arithmetic modulo a prime: unlike modulo 2^64, long sums of products lose no digits, and every number but 0 has an
/// inverse. All arguments and results are less than `kPrime`, except those of `of`.
namespace modular {

inline constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61U) - 1;

inline std::uint64_t of(std::uint64_t x) {
  const std::uint64_t folded = (x & kPrime) + (x >> 61U);
  return folded >= kPrime ? folded - kPrime : folded;
}
inline std::uint64_t sum(std::uint64_t x, std::uint64_t y) { return of(x + y); }
inline std::uint64_t difference(std::uint64_t x, std::uint64_t y) { return of(x + (kPrime - y)); }
inline std::uint64_t of(std::int64_t x) { return x >= 0 ? of(unsigned_of(x)) : difference(0, of(unsigned_of(-x))); }
std::uint64_t product(std::uint64_t x, std::uint64_t y);
/// Of a number other than 0.
std::uint64_t inverse(std::uint64_t x);

}  // namespace modular

/// Elements [begin, end), in which element e has the value a + e b (modulo the prime).
struct Piece {
  std::int64_t begin = 0, end = 0;
  std::uint64_t a = 0, b = 0;
  bool is_defined = true;
  std::int32_t writer = -1;  ///< index of the operation that wrote it

  std::int64_t elems() const { return end - begin; }
  std::uint64_t at(std::int64_t elem) const { return modular::sum(a, modular::product(modular::of(elem), b)); }
  bool is_zero() const { return is_defined && a == 0 && b == 0; }
};

/// The contents of a range, with symbols instead of numbers. Sums are real sums, so they do not depend on the order of
/// the terms. Every other value is a number that depends on its operation and inputs and differs between different ones
/// (up to a collision probability of 2^-60). Because a value depends linearly on its position, ranges can be cut, moved
/// and joined without losing track of them.
class Symbols {
 public:
  Symbols() = default;
  /// Makes zeros.
  explicit Symbols(std::int64_t elems);
  /// Makes the symbol of `seed`.
  Symbols(std::int64_t elems, std::uint64_t seed);
  explicit Symbols(const Piece& piece) : pieces_{piece} {}
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
  void add(const Symbols& other) { add(0, other); }
  /// Adds to the elements from `begin` on.
  void add(std::int64_t begin, const Symbols& other);
  /// Returns a hash of the values, regardless of how they are divided into pieces.
  std::uint64_t hash() const;
  /// Returns a sum of the values with weights that depend on `seed`: a number that is linear in the values, and
  /// otherwise as good as a hash.
  std::uint64_t weighed(std::uint64_t seed) const;

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

/// What an operation reads.
struct SymbolicInput {
  Symbols value;
  bool is_derivative = false;
};

/// The data that, together with its inputs, determine the result of an operation.
struct SymbolicCall {
  schedule::OpKind kind{};
  Shape shape;
  double scale = 1.0;
  std::uint64_t place = 0;  ///< further dependencies: the batch, the tokens of this rank

  /// Returns what operand `operand`, of that many elements, becomes. A backward operation is linear in the derivatives
  /// that it reads, whatever it computes, so that it makes no difference whether they are added up before it or after.
  Symbols result(const std::vector<SymbolicInput>& inputs, std::size_t operand, std::int64_t elems) const;
};

/// Returns whether operand `operand` of a backward operation is a derivative; false for all other operations.
bool reads_derivative(const OpTraits& traits, std::size_t operand, std::size_t count);

/// An operation of the forward pass as one rank executed it: the contents of each operand before and after.
struct Executed {
  std::vector<Symbols> before, after;
  std::uint64_t place = 0;  ///< which tokens it holds, if the derivative depends on that
};

/// Reverse-mode differentiation of the forward pass that a plan has executed, by the backward operations that the table
/// of op_table.cpp names. Values are identified by their contents and not by their location, element by element, so the
/// result does not depend on the plan's own backward pass, and values that are copied, cut or joined stay the same.
///
/// An operation that is executed several times on the same inputs, by tensor-parallel ranks or one after the other,
/// counts once. If the inputs of tensor-parallel ranks differ, they compute parts of one operation, and their
/// derivatives with respect to shared values are summed.
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
  /// The derivative with respect to a symbol, of which the elements [begin, + elems) have been read so far.
  struct OfSymbol {
    std::uint64_t a = 0;
    std::int64_t begin = 0;
    Symbols derivative;
  };

  void keep_first_executions();
  void add(const Symbols& value, const Symbols& derivative);
  void add(const Piece& piece, const Symbols& derivative);
  void differentiate_rank(const Entry& entry, const Executed& rank);
  void differentiate_sum(const Entry& entry);

  std::vector<Entry> tape_;
  std::unordered_map<std::uint64_t, std::vector<OfSymbol>> of_;  ///< by the `b` of the symbol
};

}  // namespace krigtune::plan
