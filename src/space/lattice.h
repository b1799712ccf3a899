#pragma once
#include <mutex>
#include <optional>
#include <vector>

#include "space/lattice_count.h"
#include "space/vocabulary.h"

namespace krigtune::space {

/// The lattice of a space, with everything that is computed once from its parameters, facts and constraints.
class Lattice {
 public:
  /// Throws UserError under the same conditions as make_rules.
  Lattice(const std::vector<Parameter>& parameters, const JobFacts& facts, const std::vector<Expression>& constraints);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const LatticeRules& representatives() const { return representatives_; }
  const LatticeRules& all() const { return all_; }
  /// Returns the count of the representatives, computed on the first call. Safe from any thread.
  const LatticeCount& count() const;

  /// Returns the configuration of a complete assignment that meets the rules.
  Configuration configuration_of(const Assignment& assignment) const;
  /// Returns the assignment of a configuration; nothing if it has values outside the lists.
  std::optional<Assignment> assignment_of(const Configuration& configuration) const;
  bool meets_rules(const Assignment& assignment) const;
  bool exists(std::size_t parameter, const Assignment& assignment) const;
  std::optional<std::int64_t> accumulation_steps(const Assignment& assignment) const;
  /// Returns how many points of the lattice are equivalent to this representative.
  LatticeCount::Count multiplicity(const Assignment& assignment) const;
  /// Binds the continuous parameters to random values, uniform on each one's scale.
  void draw_reals(Rng& rng, Assignment& assignment) const;

 private:
  bool has_no_effect(std::size_t parameter, const Assignment& assignment) const;

  std::vector<Parameter> parameters_;
  JobFacts facts_;
  Vocabulary vocabulary_;
  LatticeRules representatives_;
  LatticeRules all_;
  mutable std::once_flag counted_;
  mutable std::optional<LatticeCount> count_;
};

/// Calls `visit` for every representative that meets the rules, in lattice order (the last parameter changes fastest),
/// until it returns false. A branch ends as soon as a rule can no longer be true. No parameter may be continuous.
void walk(const Lattice& lattice, const std::function<bool(const Assignment&)>& visit);

}  // namespace krigtune::space
