#pragma once
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "krigtune/tuner/strategy.h"

// How lists of candidates come about. Private to this layer.
namespace krigtune {

/// Collects configurations that may be asked, each once.
class ListBuilder {
 public:
  /// `candidates` answers for keys, memory and encodings; it must outlive this.
  explicit ListBuilder(const Candidates& candidates) : candidates_(candidates) {}

  /// Leaves out what is there already and what is too large.
  void add(const Configuration& configuration);
  std::size_t size() const { return list_.size(); }
  void sort();  ///< in lattice order
  CandidateList finish();

 private:
  const Candidates& candidates_;
  std::unordered_set<std::string> seen_;
  CandidateList list_;
};

/// As Space::for_each would visit them; real values ascend.
void sort_in_lattice_order(const Space& space, std::vector<Configuration>& configurations);

/// For spaces without a list: samples of the whole, and what lies near the best trials of the history.
CandidateList make_pool(const Candidates& candidates, const Objective& objective, const History& history,
                        std::uint64_t seed);

/// The number that lies a fraction of the way between two numbers of a real range, on its scale.
double between(const Parameter& parameter, double from, double to, double fraction);

/// Keys of what was asked and counts.
std::unordered_set<std::string> asked_keys(const Candidates& candidates, const History& history);

}  // namespace krigtune
