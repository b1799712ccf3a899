#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "krigtune/space/configuration.h"
#include "krigtune/space/parameter.h"

namespace krigtune {

/// What decides whether a knob has an effect.
struct Situation {
  std::int64_t zero_stage = 0;
  std::int64_t dp = 1;
  std::optional<std::int64_t> parameter_count;
};

/// Replaces the values of knobs that are parameters of the space by the one value that stands for their meaning:
/// without effect, the first of the range; a bucket that holds all parameters, the smallest such one of the range.
void canonicalise_knobs(const std::vector<Parameter>& parameters, const Situation& situation,
                        Configuration& configuration);

}  // namespace krigtune
