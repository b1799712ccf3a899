#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "session/session.h"

// The blocks of a session that belong to the tuner.
namespace krigtune::session {

Objective read_objective(const Json* block, const std::string& source, const std::string& pointer,
                         const trial::RunnerTraits& runner);
/// Returns whether a text may be the objective's "unit": "" or a few letters, "/" and the like. No digits, because
/// "12 3" must not be read as a number.
bool is_unit(const std::string& text);
/// Fills in what goodput needs from the rest of the session, which must have been read: the batch, and the base batch
/// from the baseline.
void complete_goodput(Session& session, const JsonObject& root);
Budget read_budget(const Json* block, const std::string& source, const std::string& pointer);
GridOptions read_grid(const Json* block, const std::string& source, const std::string& pointer);
StagewiseOptions read_stagewise(const Json* block, const std::string& source, const std::string& pointer);
Json to_json(const Objective& objective);
Json to_json(const Budget& budget);
Json to_json(const GridOptions& options);
Json to_json(const StagewiseOptions& options);
/// Returns the JSON Schemas of the blocks.
Json objective_schema();
Json budget_schema();
Json grid_schema();
Json stagewise_schema();

/// Sets session.space from the keys "space" and "constraints" of `root`. Workload and cluster must be set.
void read_space(Session& session, JsonObject& root);
/// Throws UserError if the space is empty, with the reasons and how many points each excludes.
void refuse_empty_space(const space::Space& space, const JsonObject& root);

/// Sets session.baseline from the key "baseline" of `root`. Space, workload and runner must be set.
void read_baseline(Session& session, JsonObject& root);

/// Leaves values out of the space that this model or cluster cannot use, with one warning: people keep one list for
/// many clusters. Throws UserError for a parameter without any other value, and if krigtune-bench (or the virtual
/// clock) does not support a parameter of the space or one of its values.
void keep_planned_values(Session& session, const JsonObject& root);
/// Returns the parameters of the space that the plan does not know.
std::vector<std::string> unplanned_parameters(const space::Space& space);
/// Returns those that are neither well-known nor read as a well-known one, so that their effect on memory is unknown.
std::vector<std::string> unknown_parameters(const space::Space& space);
/// Returns the names in the space and in "fixed" that are read as a usual one, and which: {"mbs", "micro_batch"}.
std::map<std::string, std::string> other_names(const space::Space& space);

/// Adds what predictions leave out that the workload block does not say. Needs space, runner and framework.
void add_caveats(Session& session);

/// Reads the key "fixed" of `root`.
space::Configuration read_fixed(JsonObject& root);
/// Throws UserError if the models do not support a fixed value. Space, workload and runner must be set.
void check_fixed(const Session& session, const JsonObject& root);
/// Returns the framework's usual values that predictions assume because neither the space nor "fixed" states them.
std::vector<Assumption> assumptions_of(const Session& session, const JsonObject& root);

/// Calls `compute` and reports its errors at the key of the session that caused them.
template <class Compute>
auto at_key(const JsonObject& object, const std::string& key, Compute compute) {
  try {
    return compute();
  } catch (const UserError& error) {
    object.fail(key, error.what(), "");
  }
}

}  // namespace krigtune::session
