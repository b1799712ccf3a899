#pragma once
#include "core/error.h"
#include "core/json.h"
#include "session/session.h"

// The blocks of a session that belong to the tuner itself.
namespace krigtune::session {

Objective read_objective(const Json* block, const std::string& source, const std::string& pointer,
                         const trial::RunnerTraits& runner);
/// What goodput takes from the rest of the session, which is read: the batch, and the base batch of its baseline.
void complete_goodput(Session& session, const JsonObject& root);
Budget read_budget(const Json* block, const std::string& source, const std::string& pointer);
GridOptions read_grid(const Json* block, const std::string& source, const std::string& pointer);
StagewiseOptions read_stagewise(const Json* block, const std::string& source, const std::string& pointer);
Json to_json(const Budget& budget);
Json to_json(const GridOptions& options);
Json to_json(const StagewiseOptions& options);
/// The blocks as JSON Schemas.
Json objective_schema();
Json budget_schema();
Json grid_schema();
Json stagewise_schema();

/// Sets session.space from the keys "space" and "constraints" of `root`, once workload and cluster are set.
void read_space(Session& session, JsonObject& root);
/// Throws UserError with what excludes how much.
void refuse_empty_space(const space::Space& space, const JsonObject& root);

/// Sets session.baseline from the key "baseline" of `root`, once space, workload and runner are set.
void read_baseline(Session& session, JsonObject& root);

/// Throws UserError where krigtune-bench (or the virtual clock) would not understand a parameter of the space or one of
/// its values.
void check_planned_parameters(const Session& session, const JsonObject& root);
/// Names that the plan does not know, of the space's parameters.
std::vector<std::string> unplanned_parameters(const space::Space& space);
/// Those of them that are not well-known either: nobody can say what they do to memory.
std::vector<std::string> unknown_parameters(const space::Space& space);
/// A line for each of them that is a well-known parameter under another name.
std::vector<std::string> other_names(const space::Space& space);

/// The key "fixed" of `root`.
space::Configuration read_fixed(JsonObject& root);
/// Throws UserError where the models do not understand what is fixed. Once space, workload and runner are set.
void check_fixed(const Session& session, const JsonObject& root);
/// What predictions take as the framework usually has it, because neither space nor "fixed" says it.
std::vector<Assumption> assumptions_of(const Session& session, const JsonObject& root);

/// What `compute` complains of, at the place in the session that it is about.
template <class Compute>
auto at_key(const JsonObject& object, const std::string& key, Compute compute) {
  try {
    return compute();
  } catch (const UserError& error) {
    object.fail(key, error.what(), "");
  }
}

}  // namespace krigtune::session
