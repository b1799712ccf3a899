#pragma once
#include <memory>

#include "search/strategies/strategy.h"

namespace krigtune::search {

/// The strategy bayes for a session with several objectives: it searches their front. `first`: proposes the first
/// trials, before every objective has been measured. `session` and `candidates` must outlive the result.
std::unique_ptr<Strategy> make_pareto(const session::Session& session, const Candidates& candidates,
                                      const StrategyOptions& options, std::unique_ptr<Strategy> first);

}  // namespace krigtune::search
