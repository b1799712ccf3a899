#pragma once
#include <vector>

#include "core/json.h"
#include "diagnose/diagnosis.h"
#include "machine/finding.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

/// What on this machine may explain what was measured: warnings of the checks of krigtune doctor.
struct Hints {
  std::vector<machine::Finding> findings;
};

/// Of the checks that have to do with these limits.
Hints hints_of(const Context& context, const std::vector<diagnose::Verdict>& verdicts);

/// Nothing where there are none.
void print_hints(const Context& context, const Hints& hints);
Json to_json(const Hints& hints);

}  // namespace krigtune::cli
