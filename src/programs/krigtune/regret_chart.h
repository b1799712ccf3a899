#pragma once
#include <string>

#include "compare/compare.h"

namespace krigtune {

/// Median regret of each strategy over the trials, drawn with the first letters of their names.
std::string regret_chart(const Comparison& comparison, int trials, int width);

}  // namespace krigtune
