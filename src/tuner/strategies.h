#pragma once
#include <vector>

#include "krigtune/tuner/strategy.h"

// One maker a strategy, and what they share. Private to this layer: a new strategy adds its line here, in strategy.cpp
// (enum, name, registry) and in CMake.
namespace krigtune {

std::unique_ptr<Strategy> make_bayes(const Session& session, const Candidates& candidates, const StrategyOptions&);
std::unique_ptr<Strategy> make_random(const Session& session, const Candidates& candidates, const StrategyOptions&);
std::unique_ptr<Strategy> make_grid(const Session& session, const Candidates& candidates, const StrategyOptions&);

/// One flag a candidate: it may still be asked.
std::vector<bool> unseen(const Candidates& candidates, const History& history);

/// The candidate as a proposal, with what the plan knows of it.
Proposal propose(const Candidates& candidates, std::size_t index, StrategyKind kind);

}  // namespace krigtune
