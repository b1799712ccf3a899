#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace krigtune::session {

/// Returns the JSON Schema of a file for `krigtune plan --clusters`, as docs/clusters.schema.json has it.
std::string clusters_schema_text();

/// Returns the JSON Schema (draft-07) of the session file, for editors: `krigtune init --schema`. It describes the
/// structure: blocks, keys, kinds of values and names. Only the reader checks what requires arithmetic or other files
/// (constraints, tables, memory).
nlohmann::ordered_json session_schema();

/// Returns the same for people, with an introduction: docs/session.md.
std::string session_reference();

}  // namespace krigtune::session
