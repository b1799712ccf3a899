#pragma once
#include <vector>

#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/history.h"

// What a grid need not run. Private to this layer.
namespace krigtune {

/// Judges configurations by what a history holds. The candidates' space must outlive it.
class GridPruning {
 public:
  enum class Verdict { kRun, kTooLarge, kCannotWin };

  GridPruning(const Space& space, const Objective& objective, const GridOptions& options, const History& history);

  Verdict operator()(const Configuration& configuration) const;

 private:
  bool needs_at_least(const Configuration& configuration, const Configuration& other) const;
  bool only_stage_differs(const Configuration& configuration, const Configuration& other) const;
  bool is_derived(const Parameter& parameter) const;

  const Space& space_;
  std::vector<const Configuration*> out_of_memory_;
  std::vector<const Configuration*> ran_;
};

/// "12 of 40 configurations skipped: 10 need more memory than ..."; empty: none.
std::string pruned_text(const Candidates& candidates, const GridPruning& pruning, const History& history);

}  // namespace krigtune
