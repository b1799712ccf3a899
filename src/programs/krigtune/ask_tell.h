#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "journal/journal.h"
#include "programs/krigtune/command.h"
#include "run/run_directory.h"
#include "search/strategies/strategy.h"
#include "search/trials/history.h"
#include "session/session.h"
#include "trial/outcome.h"

// What krigtune ask and tell print is also what krigtune serve answers.
namespace krigtune::cli {

/// Says how a directory is to be used: by a session for a new one, by what it recorded otherwise.
struct RunRequest {
  std::filesystem::path directory;
  Json session = nullptr;           ///< the contents of a session; null: the directory has one
  std::filesystem::path file = {};  ///< that session's file, for errors and relative paths
  std::optional<search::StrategyKind> strategy = {};
  std::optional<std::uint64_t> seed = {};
  std::vector<std::string> warm_start = {};  ///< earlier runs from which it learns
  std::string warm_start_called = {};        ///< how errors call these: "--warm-start"
  std::string way_to_name_a_session = {};    ///< what to do if there is neither a run nor a session
};

/// Returns the session and the options of its search, and prints the warnings of a new one. Throws UserError.
run::RunRecord record_of(const Context& context, const RunRequest& request);

/// Returns a trial that was proposed: "trial", "configuration", "predicted_value" and "predicted_memory_bytes".
Json asked_json(const journal::Trial& trial);

/// A result as somebody typed or sent it, not yet checked.
struct ToldResult {
  std::optional<std::string> status = {};  ///< ok, oom or failed; empty: ok
  std::optional<double> value = {};        ///< in the objective's unit
  std::optional<double> value_sem = {};    ///< its standard error
  std::optional<double> peak_memory_bytes = {};
  std::optional<std::string> reason = {};  ///< why it failed
  std::string last_lines = {};             ///< what it said when it failed
  Json metrics = Json::object();           ///< further numbers by name
};

/// The words that `status` and `reason` may be.
std::vector<std::string> told_statuses();
std::vector<std::string> told_reasons();

/// Returns the outcome that it means. `metric`: the field of the objective's value. Throws UserError for what
/// contradicts itself; names of values begin with `dash` there, as in "--value".
trial::Outcome outcome_told(const ToldResult& told, const std::string& metric, const std::string& dash);

/// Returns the outcome with every objective of the session (session::with_objectives). Throws UserError if it is
/// measured without one of several: the trial stays open, so that the number can be told. `way`: how to tell it.
trial::Outcome complete_outcome(const session::Session& session, const space::Configuration& configuration,
                                const trial::Outcome& told, const std::string& way);

/// Returns what is known of a trial that was just closed; `history`: with it.
Json told_json(const session::Session& session, const journal::Trial& trial, const search::History& history);

}  // namespace krigtune::cli
