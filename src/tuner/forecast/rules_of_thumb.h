#pragma once
#include <string>
#include <vector>

#include "krigtune/space/space.h"
#include "krigtune/space/well_known.h"

// What the names of parameters say where no workload does. Private to this layer.
namespace krigtune {

/// Of numbers, by any name of the parameter ("tensor_parallel", "tp", ...); nullptr: none.
const RuleOfThumb* rule_of_thumb(const std::string& name);
/// The parameters with numbers, and more than one, that split the model over ranks.
std::vector<std::string> model_splits(const Space& space);

}  // namespace krigtune
