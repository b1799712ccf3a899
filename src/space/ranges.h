#pragma once
#include "bound_expression.h"

namespace krigtune {

/// One operation on ranges: bounds by interval arithmetic, exact where the operands are. Rounding is monotone, so the
/// bounds hold for the rounded results too.
Range combine(BoundOp op, const Range& a, const Range& b);
Range combine(BoundOp op, const Range& a);
/// What does not change an operand of kSum ... kOr.
Range identity(BoundOp op);
Range either(const Range& a, const Range& b);

}  // namespace krigtune
