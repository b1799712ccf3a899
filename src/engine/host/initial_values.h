#pragma once
#include <cstdint>

#include "krigtune/plan/step_plan.h"

namespace krigtune {

/// Writes elements [begin, begin + count) of tensor `index` as `tensor_rank` holds it: initial_mean + initial_stddev *
/// normal, a pure function of (seed, index, element of the whole tensor), whoever holds it; padding elements are 0.
void fill_initial_values(const StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                         std::int64_t begin, std::int64_t count, float* out);

}  // namespace krigtune
