#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace krigtune::session {

/// The session file as a JSON Schema (draft-07), for editors: `krigtune init --schema`. It knows the structure: blocks,
/// keys, kinds of values, names. What needs arithmetic or other files (constraints, tables, memory) only the reader
/// knows.
nlohmann::ordered_json session_schema();

/// The same for people, with what goes before what: docs/session.md.
std::string session_reference();

}  // namespace krigtune::session
