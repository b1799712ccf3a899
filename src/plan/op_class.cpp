#include "krigtune/plan/op_class.h"

#include "krigtune/plan/op_traits.h"

namespace krigtune {

OpClass class_of(const Operation& operation) {
  if (operation.stream == Stream::kHost) return OpClass::kHost;
  if (operation.stream == Stream::kCopy) return OpClass::kCopy;
  const OpFamily family = traits_of(operation.kind).family;
  if (family == OpFamily::kAttention) return OpClass::kAttention;
  if (family == OpFamily::kProduct) return OpClass::kProduct;
  return operation.phase == Phase::kOptimizer ? OpClass::kOptimizer : OpClass::kMemory;
}

ExchangeKind exchange_of(OpKind kind) {
  if (kind == OpKind::kAllGather) return ExchangeKind::kAllGather;
  return kind == OpKind::kReduceScatter ? ExchangeKind::kReduceScatter : ExchangeKind::kAllReduce;
}

}  // namespace krigtune
