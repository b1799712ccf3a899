#pragma once
#include <Eigen/Core>
#include <functional>

#include "krigtune/rng.h"
#include "search/candidates/candidate_list.h"

namespace krigtune::search {

/// Returns one score per configuration of a list; larger is better, and 0 is worth nothing.
using ListScore = std::function<Eigen::VectorXd(const CandidateList& list)>;

/// Returns new configurations to which a climb of the score leads from the best of a pool: at most one for each of a
/// few starts that are far from each other. Empty if no step is better than its start. `scores`: those of `pool`. For a
/// space that cannot be listed; a pure function of its arguments.
CandidateList climb(const Candidates& candidates, const CandidateList& pool, const Eigen::VectorXd& scores,
                    const ListScore& score, Rng& rng);

/// Appends configurations that `list` does not have.
void append(CandidateList& list, const CandidateList& more);

}  // namespace krigtune::search
