#include "cost/expert_split.h"

#include <algorithm>
#include <cmath>

#include "cost/context_split.h"
#include "cost/pairwise_exchange.h"

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
  const workload::ExpertSpec& experts = workload.model.experts;
  // The ranks that share experts are neighbours in the data group, as those that share a sequence are; tensor ranks
  // with whole experts are among them.
  exchange.ranks_per_node = group_span(knobs.expert_ranks, knobs.parts_of_expert(), ranks_per_node).ranks_per_node;
  exchange.dispatch = knobs.dispatch;
  exchange.per_token = experts.per_token;
  // Tensor ranks of the same data rank send parts of the tokens each, and gather them afterwards if they have parts of
  // the experts.
  const std::int64_t tokens = knobs.micro_batch * tokens_of_rank(workload.model, knobs);
  const std::int64_t row_bytes =
      workload.model.expert_hidden() * schedule::size_bytes(schedule::compute_type(workload.precision));
  exchange.token_bytes = tokens / knobs.tensor_ranks * row_bytes;
  const std::int64_t ordered = knobs.whole_experts ? tokens / knobs.tensor_ranks : tokens;
  if (experts.count > knobs.expert_ranks) exchange.sorted_bytes = 2 * ordered * experts.per_token * row_bytes;
  return exchange;
}

bool moves_tokens(schedule::OpKind kind) {
  using schedule::OpKind;
  return kind == OpKind::kDispatchForward || kind == OpKind::kDispatchBackward || kind == OpKind::kCombineForward ||
         kind == OpKind::kCombineBackward;
}

namespace {

// How many of `places` have an expert of a token, if its experts are drawn independently.
double expected_places(double places, std::int64_t per_token) {
  return places * (1.0 - std::pow(1.0 - 1.0 / places, static_cast<double>(per_token)));
}

PairwiseExchange sent_by_rank(const ExpertExchange& exchange) {
  const auto bytes = static_cast<double>(exchange.token_bytes);
  const auto members = static_cast<double>(exchange.ranks);
  const auto within = static_cast<double>(exchange.ranks_per_node);
  switch (exchange.dispatch) {
    case schedule::TokenDispatch::kAllToAll:
      return all_to_all(exchange.ranks, exchange.ranks_per_node,
                        bytes * static_cast<double>(exchange.per_token) / members);
    case schedule::TokenDispatch::kAllGather:
      return all_to_all(exchange.ranks, exchange.ranks_per_node, bytes);
    case schedule::TokenDispatch::kOncePerNode: {
      const double nodes = std::ceil(members / within);
      const double reached = expected_places(members, exchange.per_token);
      return {exchange.ranks, exchange.ranks_per_node, bytes * reached * (within - 1.0) / within,
              bytes * expected_places(nodes, exchange.per_token) * (nodes - 1.0) / nodes};
    }
  }
  return {};
}

}  // namespace

double exchange_s(const Machine& machine, const ExpertExchange& exchange) {
  if (exchange.ranks == 1) return 0.0;
  const double sort_s =
      kernel_time_s(machine, workload::OpClass::kMemory, 0.0, static_cast<double>(exchange.sorted_bytes));
  return sort_s + pairwise_exchange_s(machine, sent_by_rank(exchange));
}

}  // namespace krigtune::cost
