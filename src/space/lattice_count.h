#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "krigtune/rng.h"
#include "space/bound_expression.h"
#include "space/space.h"
#include "space/vocabulary.h"

namespace krigtune::space {

/// The points of the lattice to which a set of rules applies.
enum class LatticePoints {
  kAll,             ///< all points: knobs are read as their canonical value
  kRepresentatives  ///< only canonical points, through one more rule for each knob and conditional parameter
};

/// A condition over few parameters that every configuration meets. It is violated only if it is false, not if unknown
/// (Kleene).
struct Rule {
  int root = 0;
  std::vector<std::size_t> variables;  ///< the variables that it reads, ascending
  Exclusion reason = Exclusion::kNone;
  std::size_t constraint = 0;  ///< index of the constraint, for kConstraint
};

/// Everything that decides whether a point of the lattice is a configuration, as expressions over the positions of its
/// values. The rules are, in this order: divisibility of the ranks, batch identity, constraints, and for
/// kRepresentatives what makes the point canonical. A parameter that does not exist at a point reads as absent, and its
/// value there is its first.
struct LatticeRules {
  explicit LatticeRules(std::vector<Domain> domains) : expressions(std::move(domains)) {}

  BoundExpressions expressions;
  std::vector<Rule> rules;
  std::vector<int> exists;                ///< for each parameter: a condition, or -1 if it always exists
  std::vector<int> no_effect;             ///< for each parameter: a condition, or -1 if it always has an effect
  std::optional<int> accumulation_steps;  ///< set if they are derived
  std::vector<std::size_t> by_need;       ///< parameters, each after those that its existence and effect depend on
};

/// Throws UserError for unknown names, for texts among numbers, and for circular conditions.
LatticeRules make_rules(const std::vector<Parameter>& parameters, const JobFacts& facts,
                        const std::vector<Expression>& constraints, const Vocabulary& vocabulary, LatticePoints points);

/// Counts the points of a lattice that meet its rules and draws points uniformly from them, without walking the
/// lattice. Continuous parameters stay unbound: a rule that depends on them counts as met if it can be.
class LatticeCount {
 public:
  /// Exact up to 2^63 at least, beyond that to the precision of the type.
  using Count = long double;

  /// Counts the points that meet the first `rule_count` rules. `rules` must outlive it. Throws UserError if the rules
  /// connect so many values that counting would take minutes.
  LatticeCount(const LatticeRules& rules, std::size_t rule_count);

  Count total() const { return total_; }
  /// Draws a point, each with the same probability; requires total() > 0. Continuous parameters stay unbound. Safe from
  /// any thread.
  Assignment draw(Rng& rng) const;

 private:
  struct Hash {
    std::size_t operator()(const Residue& residue) const;
  };
  using Memo = std::unordered_map<Residue, Count, Hash>;

  struct Memory {
    std::vector<Memo> by_depth;
    std::size_t size = 0;
    std::size_t visits = 0;
  };

  /// A parameter to bind, and the rules that can be checked then.
  struct Step {
    std::size_t variable = 0;
    bool free = false;                   ///< no rule reads it
    std::vector<std::size_t> decided{};  ///< rules that read it and no parameter bound later
    std::vector<std::size_t> open{};     ///< rules that read it or an earlier parameter, and a later one
  };

  void make_steps(std::size_t rule_count);
  bool is_rejection_cheaper() const;
  Assignment draw_by_rejection(Rng& rng) const;
  Assignment draw_by_descent(Rng& rng) const;
  std::size_t next_variable(const std::vector<std::vector<std::size_t>>& read, const std::vector<bool>& bound) const;
  double frontier(const std::vector<std::vector<std::size_t>>& read, const std::vector<bool>& bound) const;
  bool may_hold(std::size_t rule, const Assignment& assignment, Residue& residue, bool is_open) const;
  Count below(std::size_t depth, Assignment& assignment, Memory* grow) const;
  Count sum_below(std::size_t depth, Assignment& assignment, Memory* grow) const;
  void bind(std::size_t variable, std::size_t digit, Assignment& assignment) const;

  const LatticeRules& rules_;
  std::size_t rule_count_;
  std::vector<std::size_t> standing_;  ///< rules that read no listed parameter
  std::vector<Step> steps_;
  Memory memory_;
  Count total_ = 0;
  bool by_rejection_ = false;
};

}  // namespace krigtune::space
