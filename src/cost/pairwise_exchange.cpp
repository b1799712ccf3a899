#include "cost/pairwise_exchange.h"

#include <algorithm>

namespace krigtune::cost {

PairwiseExchange all_to_all(std::int64_t ranks, std::int64_t ranks_per_node, double bytes_to_each) {
  return {ranks, ranks_per_node, bytes_to_each * static_cast<double>(ranks_per_node - 1),
          bytes_to_each * static_cast<double>(ranks - ranks_per_node)};
}

double pairwise_exchange_s(const Machine& machine, const PairwiseExchange& exchange) {
  const std::int64_t within = exchange.ranks_per_node;
  const std::int64_t nodes = (exchange.ranks + within - 1) / within;
  const auto part = [&](const plan::GroupSpan& span, double bytes) {
    if (span.ranks == 1) return 0.0;
    return link_time_s(machine, schedule::OpKind::kAllGather, span, static_cast<std::int64_t>(bytes));
  };
  return std::max(part({within, 1, within}, exchange.within_bytes), part({nodes, nodes, 1}, exchange.beyond_bytes));
}

}  // namespace krigtune::cost
