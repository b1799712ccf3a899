#pragma once
#include <cstdint>

#include "space/well_known.h"

namespace krigtune::space {

inline constexpr std::int64_t kMostCount = 1'000'000;  ///< a product of three does not overflow

// Rows of the table of well-known parameters (space/well_known.cpp) that are about several ranks.
WellKnownParameter tensor_parallel();
WellKnownParameter sequence_parallel();
WellKnownParameter pipeline_parallel();
WellKnownParameter virtual_pipeline();
WellKnownParameter pipeline_schedule();
WellKnownParameter context_parallel();
WellKnownParameter context_kind();
WellKnownParameter expert_parallel();
WellKnownParameter expert_tensor_parallel();
WellKnownParameter moe_dispatch();
WellKnownParameter moe_overlap();
WellKnownParameter tensor_overlap();
WellKnownParameter hybrid_shard();
WellKnownParameter secondary_shard();

}  // namespace krigtune::space
