#pragma once
#include <mutex>
#include <optional>
#include <vector>

#include "space/lattice_count.h"
#include "space/vocabulary.h"

namespace krigtune::space {

/// The lattice of a space with all that is computed from its parameters, facts and constraints once.
class Lattice {
 public:
  /// Throws UserError as make_rules does.
  Lattice(const std::vector<Parameter>& parameters, const JobFacts& facts, const std::vector<Expression>& constraints);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const LatticeRules& representatives() const { return representatives_; }
  const LatticeRules& all() const { return all_; }
  /// Of the representatives; made when it is asked for first. Safe from any thread.
  const LatticeCount& count() const;

  /// The configuration of an assignment of all parameters (that meets the rules).
  Configuration configuration_of(const Assignment& assignment) const;
  /// The assignment that a configuration means; nothing where it has values outside of the lists.
  std::optional<Assignment> assignment_of(const Configuration& configuration) const;
  bool meets_rules(const Assignment& assignment) const;
  bool exists(std::size_t parameter, const Assignment& assignment) const;
  std::optional<std::int64_t> accumulation_steps(const Assignment& assignment) const;
  /// How many points of the lattice mean the same as this representative.
  LatticeCount::Count multiplicity(const Assignment& assignment) const;
  /// Binds the continuous parameters, each uniform on its scale.
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

/// Calls `visit` for every representative that meets the rules, in lattice order (the last parameter fastest), until it
/// returns false. Branches are left as soon as a rule cannot hold any more. All parameters are listed ones.
void walk(const Lattice& lattice, const std::function<bool(const Assignment&)>& visit);

}  // namespace krigtune::space
