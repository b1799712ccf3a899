#pragma once
#include <string>

#include "core/json.h"
#include "diagnose/measured_parts.h"

namespace krigtune::diagnose {

/// Returns where the step of rank 0 went, from the output of `krigtune-bench --json`. Throws a one-line UserError that
/// begins with `source` for other documents and for runs without measurements.
MeasuredParts parts_of_bench(const Json& document, const std::string& source);

}  // namespace krigtune::diagnose
