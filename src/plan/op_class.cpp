#include "krigtune/plan/op_class.h"

namespace krigtune {

OpClass class_of(const Operation& operation) {
  if (operation.stream == Stream::kHost) return OpClass::kHost;
  if (operation.stream == Stream::kCopy) return OpClass::kCopy;
  if (operation.kind == OpKind::kAttentionForward || operation.kind == OpKind::kAttentionBackward) {
    return OpClass::kAttention;
  }
  if (is_product(operation.kind)) return OpClass::kProduct;
  return operation.phase == Phase::kOptimizer ? OpClass::kOptimizer : OpClass::kMemory;
}

}  // namespace krigtune
