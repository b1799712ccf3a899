#pragma once
#include <optional>
#include <string>

#include "krigtune/space/space.h"

// What the names of parameters say where no workload does. Private to this layer.
namespace krigtune {

struct RuleOfThumb {
  double log_speed = 0.0;      ///< of the job, for each doubling of the value
  double success_slope = 0.0;  ///< of a trial's success in probits, from the smallest to the largest value
  bool splits_model = false;   ///< the value is a number of ranks that share one copy of the model
};

/// By the parameter's usual names ("tensor_parallel", "tp", ...).
std::optional<RuleOfThumb> rule_of_thumb(const std::string& name);
/// The parameters with numbers, and more than one, that split the model over ranks.
std::vector<std::string> model_splits(const Space& space);

}  // namespace krigtune
