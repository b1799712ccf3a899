#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "krigtune/core/clock.h"

namespace krigtune {

/// The program krigtune-bench: results to `out`, what went wrong to `err`. Returns the exit code.
int run_bench(const std::vector<std::string>& arguments, const Clock& clock, std::ostream& out, std::ostream& err);

}  // namespace krigtune
