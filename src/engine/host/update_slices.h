#pragma once
#include <cstdint>
#include <vector>

#include "engine/host/bound_plan.h"

namespace krigtune::engine {

/// Fewer elements are not worth a thread of their own: they take 0.2 ms or less.
inline constexpr std::int64_t kLeastSliceElems = std::int64_t{1} << 17U;

/// An optimizer's update as at most `parts` updates of about as many elements each, at least kLeastSliceElems, that may
/// run at the same time: elements are updated one by one, so the bits are the same. Any other operation: itself.
std::vector<BoundOperation> slices_of(const BoundOperation& bound, int parts,
                                      std::int64_t least_elems = kLeastSliceElems);

/// How many cores of this machine one of `processes` processes may keep busy; at least 1.
int cores_of_a_process(std::int64_t processes);

}  // namespace krigtune::engine
