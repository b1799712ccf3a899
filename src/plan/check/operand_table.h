#pragma once
#include <cstdint>
#include <vector>

#include "krigtune/plan/operation.h"

namespace krigtune {

/// What an operation does with an operand.
enum class Role : std::uint8_t {
  kInput,    ///< reads it
  kHeld,     ///< needs it to be there, does not look at it
  kOutput,   ///< writes it (kWrite) or adds to it (kReadWrite)
  kSet,      ///< writes it
  kAddedTo,  ///< adds to it
  kInPlace,  ///< replaces it by a function of it
};

struct OperandRule {
  Role role{};
  std::int64_t (*elems)(const Shape&) = nullptr;  ///< null: any number
};

/// The operands of a kind in order: `first` and then any number of `repeated`, or the first `least` of `first` and
/// more, and where `control` at last a control operand.
struct OperandRules {
  std::vector<OperandRule> first;
  std::size_t least = 0;
  std::vector<OperandRule> repeated{};
  bool control = false;

  /// Whether so many operands are possible.
  bool takes(std::size_t count) const;
  const OperandRule& rule(std::size_t operand, std::size_t count) const;
};
const OperandRules& operand_rules(OpKind kind);
bool allows(Role role, Access access);

}  // namespace krigtune
