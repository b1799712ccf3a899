#pragma once
#include <cstdint>

#include "cost/machine.h"
#include "plan/step_plan.h"
#include "schedule/knobs.h"
#include "workload/workload.h"

namespace krigtune::cost {

/// Context parallelism: `context_ranks` data ranks share each sequence (Liu et al. 2023, "Ring attention with blockwise
/// transformers"; as in Megatron Core). A rank has 1 / c of the tokens through the whole model and the same parameters
/// as the others. So it computes what a data rank computes with a shorter sequence, except that its tokens attend to
/// those of all c ranks, for which keys and values go round.

/// Returns the tokens of a sequence that one rank has, rounded up to what tensor ranks divide if they split tokens too.
std::int64_t tokens_of_rank(const workload::ModelSpec& model, const schedule::Knobs& knobs);

/// Returns the workload of one rank: with its share of the tokens of a sequence, and with flash attention,
/// which context parallelism needs. Parameters are counted with the whole workload, as a table of positions has its
/// length.
workload::Workload share_of_rank(const workload::Workload& workload, const schedule::Knobs& knobs);

/// What goes round in the attention of one layer in one direction.
struct ContextExchange {
  std::int64_t ranks = 1;
  plan::GroupSpan span;
  std::int64_t keys_and_values_bytes = 0;  ///< of the tokens of one rank
};
ContextExchange context_exchange(const workload::Workload& workload, const schedule::Knobs& knobs,
                                 std::int64_t ranks_per_node);

/// The attention of one rank. The exchange of the next keys and values runs beside it.
struct SharedAttention {
  double compute_s = 0.0;
  double exposed_s = 0.0;  ///< of the exchange, beyond compute_s
};
/// `operation`: an operation of class kAttention, planned for the rank's own tokens alone.
SharedAttention shared_attention(const Machine& machine, const plan::Operation& operation,
                                 const ContextExchange& exchange);

}  // namespace krigtune::cost
