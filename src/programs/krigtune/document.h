#pragma once
#include "core/json.h"
#include "programs/krigtune/command.h"
#include "session/session.h"

namespace krigtune::cli {

/// How every document of --json begins: schema_version, version, command, host.
Json new_document(const char* command);

/// Prints it as the only thing on stdout.
void print(const Context& context, const Json& document);

/// The network's label, or null where none is emulated.
Json emulated_json(const session::Session& session);

/// null where there is none.
Json json_or_null(std::optional<double> number);

}  // namespace krigtune::cli
