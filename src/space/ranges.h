#pragma once
#include "bound_expression.h"

namespace krigtune {

/// One operation on ranges: bounds by interval arithmetic, exact where the operands are. Rounding is monotone, so the
/// bounds hold for the rounded results too.
BoundRange combine(BoundOp op, const BoundRange& a, const BoundRange& b);
BoundRange combine(BoundOp op, const BoundRange& a);
/// What does not change an operand of kSum ... kOr.
BoundRange identity(BoundOp op);
BoundRange either(const BoundRange& a, const BoundRange& b);

}  // namespace krigtune
