#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "krigtune/report/run_view.h"

namespace krigtune {

/// What to do about the learning rate where the recommended configuration's batch is not today's: lines for people.
/// Empty where it is the same.
std::vector<std::string> batch_advice_lines(const RunView& run);
/// The same for programs: an object, or null.
nlohmann::ordered_json batch_advice_json(const RunView& run);

}  // namespace krigtune
