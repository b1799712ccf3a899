#pragma once
#include "core/json.h"
#include "cost/time/step_cost.h"
#include "programs/krigtune/command.h"
#include "session/session.h"

namespace krigtune::cli {

/// How every document of --json begins: schema_version, version, command, host.
Json new_document(const char* command);

/// Prints it as the only thing on stdout.
void print(const Context& context, const Json& document);

/// The network's label, or null where none is emulated.
Json emulated_json(const session::Session& session);

/// Where the time of a predicted step goes, by its parts in seconds.
Json step_parts_json(const cost::StepCost& cost);

/// null where there is none.
Json json_or_null(std::optional<double> number);

}  // namespace krigtune::cli
