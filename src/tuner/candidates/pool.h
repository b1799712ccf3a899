#pragma once
#include <cstdint>

#include "candidates/candidate_list.h"

// Candidates of a space that cannot be listed. Private to this layer.
namespace krigtune {

/// Samples of the whole space, and what lies near the best trials of the history; in lattice order.
CandidateList make_pool(const Candidates& candidates, const Objective& objective, const History& history,
                        std::uint64_t seed);

/// The number that lies a fraction of the way between two numbers of a real range, on its scale.
double between(const Parameter& parameter, double from, double to, double fraction);

}  // namespace krigtune
