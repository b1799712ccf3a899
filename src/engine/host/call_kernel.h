#pragma once
#include "host/bound_plan.h"

namespace krigtune {

/// Calls the kernel of an operation that is not a collective. Kernels compute in float: an operand of 16 bits is seen
/// through a float shadow, widened before the call where it is read and rounded after it where it is written. Allocates
/// nothing; `scratch`: as many elements as call_scratch_elems says.
void call_kernel(const BoundOperation& bound, const StepContext& context, float* scratch);

/// Throws std::logic_error for more operands than shadows can be kept of.
std::int64_t call_scratch_elems(const BoundOperation& bound);

}  // namespace krigtune
