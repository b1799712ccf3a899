#pragma once
#include <string>

#include "compare/compare.h"

namespace krigtune::cli {

/// Median regret of each strategy over the trials, drawn with the first letters of their names.
std::string regret_chart(const compare::Comparison& comparison, int trials, int width);

}  // namespace krigtune::cli
