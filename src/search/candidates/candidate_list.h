#pragma once
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/trials/history.h"

namespace krigtune::search {

// How lists of candidates come about.

/// Collects configurations that may be asked, each once.
class ListBuilder {
 public:
  /// `candidates` answers for keys, memory and encodings; it must outlive this.
  explicit ListBuilder(const Candidates& candidates) : candidates_(candidates) {}

  /// Leaves out what is there already and what is too large.
  void add(space::Configuration configuration);
  std::size_t size() const { return list_.size(); }
  void sort();  ///< in lattice order
  CandidateList finish();

 private:
  const Candidates& candidates_;
  CandidateList list_;                ///< its index holds what was left out, too, until finish()
  std::vector<std::size_t*> places_;  ///< where the index has the place of each configuration
};

/// As Space::for_each would visit them; real values ascend.
void sort_in_lattice_order(const space::Space& space, std::vector<space::Configuration>& configurations);

/// Keys of what was asked and counts.
std::unordered_set<std::string> asked_keys(const Candidates& candidates, const History& history);

// Candidates of a space that cannot be listed.

/// Samples of the whole space, and what lies near the best trials of the history; in lattice order.
CandidateList make_pool(const Candidates& candidates, const session::Objective& objective, const History& history,
                        std::uint64_t seed);

/// The number that lies a fraction of the way between two numbers of a real range, on its scale.
double between(const space::Parameter& parameter, double from, double to, double fraction);

}  // namespace krigtune::search
