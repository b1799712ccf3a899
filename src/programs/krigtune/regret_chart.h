#pragma once
#include <string>

#include "compare/compare.h"

namespace krigtune::cli {

/// Draws the median regret of each strategy over the trials. The marks are the first letters of the strategies' names.
std::string regret_chart(const compare::Comparison& comparison, int trials, int width);

}  // namespace krigtune::cli
