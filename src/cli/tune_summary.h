#pragma once
#include <optional>
#include <string>

#include "loaded_run.h"

namespace krigtune {

struct Conclusion {
  std::optional<double> slowest_gain;  ///< --fail-if-slower-than
  std::string command_to_go_on;
  std::string command_to_spend_the_budget;  ///< where it ended before that
};

/// Says how a session ended and returns its exit code. `start`: the view it began with; `best`: what it recommends.
int conclude(const Context& context, const RunView& start, const std::optional<Recommendation>& best,
             const RunResult& result, const Conclusion& conclusion);

}  // namespace krigtune
