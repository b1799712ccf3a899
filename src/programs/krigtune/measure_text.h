#pragma once
#include <cstdint>
#include <string>

#include "trial/measure_pattern.h"
#include "trial/measure_spec.h"

namespace krigtune::cli {

/// Returns what a recipe (krigtune recipes) or a recipe file measures and checks.
trial::MeasureSpec measures_of_recipe(const std::string& name);

/// A match to show to the user.
struct ShownMatch {
  std::int64_t number = 0;  ///< of the line, from 1; each state of a progress bar is a line
  std::string line;
  trial::MeasurePattern::Found found;
  std::string name;   ///< the metric's name
  std::string means;  ///< "5.4449 s"
};

inline constexpr int kWidthOfFiles = 120;

/// Returns the part of the line around the match and, below it, marks: '~' below the match, '^' below the number. With
/// `colors` the match is underlined, and the number bold as well.
///
///     12  ...| elapsed time per iteration (ms): 5444.9 | throughput per GPU...
///             ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~^^^^^^  step_time_s: 5.4449 s
std::string match_text(const ShownMatch& match, int width, bool colors);

}  // namespace krigtune::cli
