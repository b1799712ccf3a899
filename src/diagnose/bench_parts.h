#pragma once
#include <string>

#include "core/json.h"
#include "diagnose/measured_parts.h"

namespace krigtune::diagnose {

/// Where the step of rank 0 went, by what `krigtune-bench --json` wrote. Throws UserError, one line that begins with
/// `source`, for what is no such document and for runs of which nothing was measured.
MeasuredParts parts_of_bench(const Json& document, const std::string& source);

}  // namespace krigtune::diagnose
