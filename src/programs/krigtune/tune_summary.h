#pragma once
#include <optional>
#include <string>

#include "core/json.h"
#include "programs/krigtune/log.h"
#include "programs/krigtune/session_state.h"
#include "report/run_view.h"
#include "run/loop.h"

namespace krigtune::cli {

/// Returns one line with the reason why a session ended, and its numbers.
std::string end_text(const session::Session& session, const run::RunResult& result);

/// Returns what the next trial could gain: the bound, and its cost and worth. "" if the strategy does not estimate it.
std::string left_text(const session::Session& session, const run::RunResult& result);

/// Returns {"expected_gain", "regret_bound", "confidence"}, or null.
Json outlook_json(const std::optional<journal::Outlook>& outlook);
/// Returns {"cost_gpu_hours", "expected_saving_gpu_hours"}, or null.
Json worth_json(const std::optional<run::TrialWorth>& worth);

/// Prints why no trial succeeded: the reasons with their counts, the last lines of the first failed trial's log, and
/// what to try.
void explain_failure(const report::RunView& run, Log& log);

struct Conclusion {
  std::optional<double> slowest_gain;  ///< --fail-if-slower-than
  std::string command_to_go_on;
  std::string command_to_spend_the_budget;  ///< if it ended before that
  std::string command_to_keep_going;        ///< if it ended because all trials fail alike
  std::string doubt = {};                   ///< a sentence on why the values may be wrong; "" if there is none
};

/// Prints how a session ended and returns its exit code. `start`: the view with which it began; `best`: the
/// recommendation.
int conclude(const Context& context, const report::RunView& start, const std::optional<search::Recommendation>& best,
             const run::RunResult& result, const Conclusion& conclusion);

}  // namespace krigtune::cli
