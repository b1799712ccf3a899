#pragma once
#include <vector>

#include "core/json.h"
#include "diagnose/diagnosis.h"
#include "machine/finding.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

/// Facts about this machine that may explain a measurement: warnings of the checks of krigtune doctor.
struct Hints {
  std::vector<machine::Finding> findings;
};

/// Returns the results of the checks that are related to these limits.
Hints hints_of(const Context& context, const std::vector<diagnose::Verdict>& verdicts);

/// Prints the hints, or nothing if there are none.
void print_hints(const Context& context, const Hints& hints);
Json to_json(const Hints& hints);

}  // namespace krigtune::cli
