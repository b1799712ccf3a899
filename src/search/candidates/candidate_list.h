#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/trials/history.h"

namespace krigtune::search {

// How lists of candidates are built.

/// Collects configurations that may be tried, each once.
class ListBuilder {
 public:
  using Predicate = std::function<bool(const space::Configuration&)>;

  /// `candidates` provides keys, memory and encodings; it must outlive this object. `may_fit` decides what is too
  /// large; empty: the session's plan does.
  explicit ListBuilder(const Candidates& candidates, Predicate may_fit = {})
      : candidates_(candidates), may_fit_(std::move(may_fit)) {}

  /// Adds a configuration unless it is already present or too large.
  void add(space::Configuration configuration);
  std::size_t size() const { return list_.size(); }
  void sort();  ///< in lattice order
  CandidateList finish();

 private:
  const Candidates& candidates_;
  Predicate may_fit_;
  CandidateList list_;                ///< until finish(), its index also contains the configurations that were left out
  std::vector<std::size_t*> places_;  ///< for each configuration, where the index stores its position
};

/// Sorts in the order of Space::for_each, with ascending continuous values.
void sort_in_lattice_order(const space::Space& space, std::vector<space::Configuration>& configurations);

/// Returns the keys of the configurations that were asked in trials that count.
std::unordered_set<std::string> asked_keys(const Candidates& candidates, const History& history);

// Candidates of a space that cannot be listed:

/// Returns samples of the whole space and configurations near the best trials of the history, in lattice order. With
/// several `objectives`, the best are members of the front, some of them if there are many.
CandidateList make_pool(const Candidates& candidates, const std::vector<session::Objective>& objectives,
                        const History& history, std::uint64_t seed);

/// Returns the number at a fraction of the way between two numbers of a continuous parameter, on its scale.
double between(const space::Parameter& parameter, double from, double to, double fraction);

/// Returns where a value of a continuous parameter lies on its axis, from 0 to 1.
double axis_position(const space::Parameter& parameter, double value);

/// Returns the configuration with another value of a continuous parameter, at a position from 0 to 1 on its axis. Empty
/// if that is no configuration of the space.
std::optional<space::Configuration> moved_along(const space::Space& space, space::Configuration point,
                                                const space::Parameter& parameter, double position);

/// Returns the configuration with all continuous values moved a fraction of the way towards those of a sample. Empty if
/// that is no configuration of the space.
std::optional<space::Configuration> moved_towards_sample(const space::Space& space, const space::Configuration& point,
                                                         double fraction, Rng& rng);

}  // namespace krigtune::search
