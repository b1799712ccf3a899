#pragma once
#include "core/json.h"
#include "cost/time/step_cost.h"
#include "programs/krigtune/command.h"
#include "run/loop.h"
#include "session/session.h"

namespace krigtune::cli {

/// Returns the beginning of every document of --json: schema_version, version, command, host.
Json new_document(const char* command);

/// Prints the document. Nothing else may go to stdout.
void print(const Context& context, const Json& document);

/// Adds which search it was and of what: strategy, seed, metric, emulated network.
void add_search(Json& document, const session::Session& session, const run::LoopOptions& options);

/// Returns the network's label, or null if no network is emulated.
Json emulated_json(const session::Session& session);

/// Returns the parts of a predicted step, in seconds.
Json step_parts_json(const cost::StepCost& cost);

/// Returns the number, or null if there is none.
Json json_or_null(std::optional<double> number);

}  // namespace krigtune::cli
