#pragma once
#include <string>
#include <vector>

#include "compare/compare.h"

namespace krigtune::report {

/// Returns the comparison in words, "bayes needs 2.6 times fewer trials than random: ...", with a line for each pair of
/// strategies that come within `within` of the best. `budget`: trials of a run.
std::vector<std::string> comparison_sentences(const compare::Comparison& comparison, double within, int budget);

/// Returns comparison.svg: median and quartiles of the regret over the trials, for each strategy.
std::string comparison_svg(const compare::Comparison& comparison, const std::string& title, int budget);

}  // namespace krigtune::report
