#include "cost/expert_split.h"

#include <algorithm>

#include "cost/context_split.h"

namespace krigtune::cost {

workload::Workload experts_of_rank(const workload::Workload& workload, const schedule::Knobs& knobs) {
  workload::Workload own = workload;
  own.model.experts.count /= knobs.expert_ranks;
  return own;
}

ExpertExchange expert_exchange(const workload::Workload& workload, const schedule::Knobs& knobs,
                               std::int64_t ranks_per_node) {
  ExpertExchange exchange;
  exchange.ranks = knobs.expert_ranks;
  if (exchange.ranks == 1) return exchange;
  // The ranks that share experts are neighbours in the data group, as those that share a sequence are.
  exchange.ranks_per_node = group_span(knobs.expert_ranks, knobs.tensor_ranks, ranks_per_node).ranks_per_node;
  const std::int64_t tokens = knobs.micro_batch * tokens_of_rank(workload.model, knobs);
  // Tensor ranks of the same data rank send parts of the tokens each, and gather them afterwards.
  const std::int64_t sent = tokens * workload.model.experts.per_token / knobs.tensor_ranks;
  const std::int64_t row_bytes =
      workload.model.hidden * schedule::size_bytes(schedule::compute_type(workload.precision));
  exchange.bytes = sent * row_bytes;
  if (workload.model.experts.count > knobs.expert_ranks)
    exchange.sorted_bytes = 2 * tokens * workload.model.experts.per_token * row_bytes;
  return exchange;
}

bool moves_tokens(schedule::OpKind kind) {
  using schedule::OpKind;
  return kind == OpKind::kDispatchForward || kind == OpKind::kDispatchBackward || kind == OpKind::kCombineForward ||
         kind == OpKind::kCombineBackward;
}

// Every pair of ranks exchanges bytes / ranks. Those of one node use the links within it, the others a card each, at
// the same time.
double exchange_s(const Machine& machine, const ExpertExchange& exchange) {
  if (exchange.ranks == 1) return 0.0;
  const std::int64_t within = exchange.ranks_per_node;
  const auto part = [&](const plan::GroupSpan& span, std::int64_t others) {
    return span.ranks == 1
               ? 0.0
               : link_time_s(machine, schedule::OpKind::kAllGather, span, exchange.bytes * others / exchange.ranks);
  };
  const std::int64_t nodes = (exchange.ranks + within - 1) / within;
  const double sort_s =
      kernel_time_s(machine, workload::OpClass::kMemory, 0.0, static_cast<double>(exchange.sorted_bytes));
  return sort_s + std::max(part({within, 1, within}, within - 1), part({nodes, nodes, 1}, exchange.ranks - within));
}

}  // namespace krigtune::cost
