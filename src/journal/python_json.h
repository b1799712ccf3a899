#pragma once
#include <string_view>

#include "krigtune/core/json.h"

namespace krigtune {

/// JSON as Python's json.dumps writes it: NaN, Infinity and -Infinity, which are none, are read as null. Discarded
/// (is_discarded()) where the text is no JSON for Python either.
Json parse_python_json(std::string_view text);

}  // namespace krigtune
