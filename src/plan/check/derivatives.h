#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "check/symbols.h"
#include "krigtune/plan/step_plan.h"

namespace krigtune {

/// What an operation computes is named by these and by its inputs.
struct SymbolicCall {
  OpKind kind{};
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
  static bool depend_on_place(OpKind forward);
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

}  // namespace krigtune
