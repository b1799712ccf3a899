#pragma once
#include "core/json.h"
#include "cost/time/step_cost.h"
#include "programs/krigtune/command.h"
#include "session/session.h"

namespace krigtune::cli {

/// Returns the beginning of every document of --json: schema_version, version, command, host.
Json new_document(const char* command);

/// Prints the document. Nothing else may go to stdout.
void print(const Context& context, const Json& document);

/// Return the network's label, or null if no network is emulated.
Json emulated_json(const std::string& label);
Json emulated_json(const session::Session& session);

/// Returns the parts of a predicted step, in seconds.
Json step_parts_json(const cost::StepCost& cost);

/// Returns the number, or null if there is none.
Json json_or_null(std::optional<double> number);

}  // namespace krigtune::cli
