#pragma once
#include <vector>

#include "krigtune/tuner/strategy.h"

// What strategies share. Private to this layer.
namespace krigtune {

/// One flag a candidate of the list: it may still be asked.
std::vector<bool> unseen(const Candidates& candidates, const CandidateList& list, const History& history);

/// The candidate as a proposal, with what the plan knows of it.
Proposal propose(const CandidateList& list, std::size_t index, StrategyKind kind);
Proposal propose(const Configuration& configuration, StrategyKind kind);
/// One drawn at random that was not asked; empty: none was found.
std::optional<Proposal> propose_drawn(const Candidates& candidates, const History& history, Rng& rng,
                                      StrategyKind kind);

}  // namespace krigtune
