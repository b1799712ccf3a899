#pragma once
#include <optional>
#include <vector>

#include "bound_expression.h"
#include "krigtune/space/space.h"
#include "vocabulary.h"

namespace krigtune {

/// Over which points of the lattice a set of rules speaks.
enum class LatticePoints {
  kAll,             ///< all: knobs are read as the value that stands for them
  kRepresentatives  ///< those that stand for their own meaning: one more rule for each knob and conditional parameter
};

/// A condition over few parameters that every configuration meets; it fails only where it is false (Kleene).
struct Rule {
  int root = 0;
  std::vector<std::size_t> variables;  ///< that it reads, ascending
  Exclusion reason = Exclusion::kNone;
  std::size_t constraint = 0;  ///< its number, with kConstraint
};

/// All that decides whether a point of the lattice is a configuration, as expressions over the positions of its values:
/// divisibility of the ranks, batch identity, constraints, in this order, then (kRepresentatives) what makes it stand
/// for itself. A parameter that does not exist at a point reads as absent, and has its first value there.
struct LatticeRules {
  explicit LatticeRules(std::vector<Domain> domains) : expressions(std::move(domains)) {}

  BoundExpressions expressions;
  std::vector<Rule> rules;
  std::vector<int> exists;                ///< by parameter: a condition, -1 where it exists always
  std::vector<int> no_effect;             ///< by parameter: a condition, -1 where it always has an effect
  std::optional<int> accumulation_steps;  ///< where they are derived
  std::vector<std::size_t> by_need;       ///< parameters: each after those that its existence and effect depend on
};

/// Throws UserError for unknown names, for texts among numbers, and for conditions that go in a circle.
LatticeRules make_rules(const std::vector<Parameter>& parameters, const JobFacts& facts,
                        const std::vector<Expression>& constraints, const Vocabulary& vocabulary, LatticePoints points);

}  // namespace krigtune
