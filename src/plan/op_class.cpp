#include "krigtune/plan/op_class.h"

namespace krigtune {

OpClass class_of(const Operation& operation) {
  if (operation.stream == Stream::kHost) return OpClass::kHost;
  if (operation.stream == Stream::kCopy) return OpClass::kCopy;
  const OpFamily family = family_of(operation.kind);
  if (family == OpFamily::kAttention) return OpClass::kAttention;
  if (family == OpFamily::kProduct) return OpClass::kProduct;
  return operation.phase == Phase::kOptimizer ? OpClass::kOptimizer : OpClass::kMemory;
}

}  // namespace krigtune
