#pragma once
#include <string>
#include <vector>

#include "workload/workload.h"

namespace krigtune::report {

/// Returns what predictions take for granted, and what they do not contain, as at most two lines for people.
std::vector<std::string> caveat_lines(const workload::Workload& workload);

}  // namespace krigtune::report
