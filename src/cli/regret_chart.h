#pragma once
#include <string>
#include <vector>

#include "krigtune/tuner/compare.h"

namespace krigtune {

/// Median regret over the seeds after each of `trials` trials. A run that ended earlier keeps its last.
std::vector<double> median_regret(const Comparison& comparison, StrategyKind strategy, int trials);

/// Median regret of each strategy over the trials, drawn with the first letters of their names.
std::string regret_chart(const Comparison& comparison, int trials, int width);

}  // namespace krigtune
