#pragma once
#include <cstdint>

#include "cost/machine.h"
#include "plan/step_plan.h"
#include "schedule/knobs.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// Expert parallelism: `expert_ranks` data ranks share the experts of each block (Lepikhin et al. 2020, "GShard"; as in
/// Megatron Core). A rank has 1 / e of the experts and receives their tokens of all e ranks: as many as it sends, if
/// all experts are equally busy. So it computes what it would compute with all experts, in fewer and larger products.

/// Returns the workload of one rank: with its share of the experts.
workload::Workload experts_of_rank(const workload::Workload& workload, const schedule::Knobs& knobs);

/// The tokens that are sent to the ranks of their experts, or back, in one layer.
struct ExpertExchange {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;  ///< of those that share the experts
  schedule::TokenDispatch dispatch = schedule::TokenDispatch::kAllToAll;
  std::int64_t per_token = 1;    ///< experts of a token
  std::int64_t token_bytes = 0;  ///< of all tokens that a rank sends, each once
  /// Read and written to order what came from several ranks by expert, before or after each exchange; 0 if a rank has
  /// one expert (sort_chunks_by_idxs in Megatron Core's transformer/moe/token_dispatcher.py).
  std::int64_t sorted_bytes = 0;
};
ExpertExchange expert_exchange(const workload::Workload& workload, const schedule::Knobs& knobs,
                               std::int64_t ranks_per_node);

/// Returns whether tokens are exchanged before or after an operation: when they are ordered by expert or back, forward
/// and backward.
bool moves_tokens(schedule::OpKind kind);
/// Returns the seconds of one such exchange, in which all experts receive as many tokens, and of ordering what came.
double exchange_s(const Machine& machine, const ExpertExchange& exchange);

}  // namespace krigtune::cost
