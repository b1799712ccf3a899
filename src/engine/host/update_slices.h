#pragma once
#include <cstdint>
#include <vector>

#include "engine/host/bound_plan.h"

namespace krigtune::engine {

/// A slice with fewer elements is not worth a thread: it takes at most 0.2 ms.
inline constexpr std::int64_t kLeastSliceElems = std::int64_t{1} << 17U;

/// Splits an optimizer's update into at most `parts` updates with about equally many elements, at least
/// kLeastSliceElems each, that may run at the same time. Elements are updated independently, so the result has the same
/// bits. Any other operation is returned unchanged.
std::vector<BoundOperation> slices_of(const BoundOperation& bound, int parts,
                                      std::int64_t least_elems = kLeastSliceElems);

/// Returns how many cores of this machine each of `processes` processes may use; at least 1.
int cores_of_a_process(std::int64_t processes);

}  // namespace krigtune::engine
