#pragma once
#include <optional>
#include <string>

#include "core/json.h"
#include "programs/krigtune/log.h"
#include "programs/krigtune/session_state.h"
#include "report/run_view.h"
#include "run/loop.h"

namespace krigtune::cli {

/// Whether what is expected ended it, and not the budget.
bool is_stopped_early(run::EndReason reason);

/// For programs: "trials", "sure", "little_to_gain", ...
const char* word_of(run::EndReason reason);

/// Why a session ended, in one line, with its numbers.
std::string end_text(const session::Session& session, const run::RunResult& result);

/// What the next trial would be for: the bound, and its cost and worth; "" where the strategy does not say.
std::string left_text(const session::Session& session, const run::RunResult& result);

/// {"expected_gain", "regret_bound", "confidence"}, or null.
Json outlook_json(const std::optional<journal::Outlook>& outlook);
/// {"cost_gpu_hours", "expected_saving_gpu_hours"}, or null.
Json worth_json(const std::optional<run::TrialWorth>& worth);

/// Says why no trial is ok: the reasons by count, the first failing trial's log with its last lines, and what to try.
void explain_failure(const report::RunView& run, Log& log);

struct Conclusion {
  std::optional<double> slowest_gain;  ///< --fail-if-slower-than
  std::string command_to_go_on;
  std::string command_to_spend_the_budget;  ///< where it ended before that
  std::string command_to_keep_going;        ///< where it ended because all trials fail alike
};

/// Says how a session ended and returns its exit code. `start`: the view it began with; `best`: what it recommends.
int conclude(const Context& context, const report::RunView& start, const std::optional<search::Recommendation>& best,
             const run::RunResult& result, const Conclusion& conclusion);

}  // namespace krigtune::cli
