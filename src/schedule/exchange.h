#pragma once
#include "schedule/op_kind.h"
#include "workload/measured_rates.h"

namespace krigtune::schedule {

/// Returns the operation that performs a measured exchange.
constexpr OpKind collective_of(workload::ExchangeKind kind) {
  switch (kind) {
    case workload::ExchangeKind::kAllReduce:
      return OpKind::kAllReduce;
    case workload::ExchangeKind::kReduceScatter:
      return OpKind::kReduceScatter;
    case workload::ExchangeKind::kAllGather:
      return OpKind::kAllGather;
  }
  return OpKind::kAllReduce;
}

}  // namespace krigtune::schedule
