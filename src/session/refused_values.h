#pragma once
#include <vector>

#include "space/expression.h"
#include "space/parameter.h"
#include "space/space.h"
#include "workload/workload.h"

namespace krigtune::session {

/// Returns whether a parameter has a value of at least `least`.
bool reaches(const std::vector<space::Parameter>& parameters, const char* name, double least);

/// Adds the constraints that keep configurations out which the job's framework refuses, or which no pipeline schedule
/// has: they are neither predicted nor tried. None is added twice.
void add_refused(workload::Framework framework, const std::vector<space::Parameter>& parameters,
                 const space::JobFacts& facts, std::vector<space::Expression>& constraints);

}  // namespace krigtune::session
