#pragma once
#include <cstdint>

#include "krigtune/plan/step_plan.h"

namespace krigtune {

/// Writes elements [begin, begin + count) of tensor `index` of the model: initial_mean + initial_stddev * normal, a
/// pure function of (seed, index, element), whoever holds them; padding elements are 0.
void fill_initial_values(const ParameterTensor& tensor, std::uint64_t seed, std::int64_t index, std::int64_t begin,
                         std::int64_t count, float* out);

}  // namespace krigtune
