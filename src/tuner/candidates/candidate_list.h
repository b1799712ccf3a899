#pragma once
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/history.h"

// How lists of candidates come about. Private to this layer.
namespace krigtune {

/// Collects configurations that may be asked, each once.
class ListBuilder {
 public:
  /// `candidates` answers for keys, memory and encodings; it must outlive this.
  explicit ListBuilder(const Candidates& candidates) : candidates_(candidates) {}

  /// Leaves out what is there already and what is too large.
  void add(Configuration configuration);
  std::size_t size() const { return list_.size(); }
  void sort();  ///< in lattice order
  CandidateList finish();

 private:
  const Candidates& candidates_;
  CandidateList list_;                ///< its index holds what was left out, too, until finish()
  std::vector<std::size_t*> places_;  ///< where the index has the place of each configuration
};

/// As Space::for_each would visit them; real values ascend.
void sort_in_lattice_order(const Space& space, std::vector<Configuration>& configurations);

/// Keys of what was asked and counts.
std::unordered_set<std::string> asked_keys(const Candidates& candidates, const History& history);

}  // namespace krigtune
