#pragma once
#include <memory>
#include <vector>

#include "core/json.h"
#include "runner/runner.h"
#include "session/session.h"

// Several objectives: the session's block "objectives". The first one is Session::objective, and the others are
// Session::others.
namespace krigtune::session {

/// Sets session.objective, session.others and session.preference from the keys "objective", "objectives" and "prefer"
/// of `root`; the runner must be set. Throws UserError if the first two are given, if a metric is named twice, or if
/// the runner does not measure one.
void read_objectives(Session& session, JsonObject& root);
/// Returns the block as read_objectives reads it, with every default.
Json objectives_json(const Session& session);
Json objectives_schema();
Json prefer_schema();  ///< of the key "prefer"

/// Sets session.limits from the key "limits" of `root`: "METRIC <= NUMBER" or "METRIC >= NUMBER". The objectives must
/// be set. Throws UserError if a text is none, names an objective or repeats a limit, or if the runner does not measure
/// it.
void read_limits(Session& session, JsonObject& root);
/// Returns the limit as it is written in a session: "power_w <= 300".
std::string limit_text(const Objective& limit);
Json limits_schema();

/// Returns whether a value is not worse than the limit. True without one.
bool is_within(const Objective& objective, double value);

/// Returns the first objective and the others.
std::vector<Objective> all_objectives(const Session& session);

/// Reads `METRIC >= NUMBER [best]` for a metric to be maximised and `METRIC <= NUMBER [best]` for one to be minimised.
/// Throws UserError that begins with `where`, also if the session has one objective.
Preference read_preference(const Session& session, const std::string& text, const std::string& where);

/// Returns what a measured trial must have a number for beside the first objective: the others, and the limits.
std::vector<Objective> needed_metrics(const Session& session);
/// Names a measured peak of memory as the metric, where it is needed.
void name_peak_memory(const Session& session, trial::Measured& measured);
/// Returns the fields of these that the outcome does not have, in the order of the session.
/// Empty if it is not Measured.
std::vector<std::string> missing_metrics(const Session& session, const trial::Outcome& outcome);

/// Returns the outcome with every objective and every limited metric among its metrics: goodput is computed from the
/// throughput (with_goodput), and a measured peak of memory is named as the metric. A measured outcome without a finite
/// number for one of several objectives or for a limit becomes Failed (bad_result), with an explanation. With one
/// objective and no limits this is with_goodput.
trial::Outcome with_objectives(const Session& session, const space::Configuration& configuration,
                               trial::Outcome outcome);
/// Wraps a runner so that its outcomes are of this kind; `session` must outlive it.
std::unique_ptr<trial::Runner> with_objectives(const Session& session, std::unique_ptr<trial::Runner> runner);

}  // namespace krigtune::session
