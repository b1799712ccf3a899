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
/// those of all c ranks, for which keys and values, or heads, are exchanged (schedule::ContextKind).

/// Returns the tokens of a sequence that one rank has, rounded up to what tensor ranks divide if they split tokens too.
std::int64_t tokens_of_rank(const workload::ModelSpec& model, const schedule::Knobs& knobs);

/// Returns the workload of one rank: with its share of the tokens of a sequence, and with flash attention,
/// which context parallelism needs. Parameters are counted with the whole workload, as a table of positions has its
/// length.
workload::Workload share_of_rank(const workload::Workload& workload, const schedule::Knobs& knobs);

/// What is exchanged in the attention of one layer in one direction.
struct ContextExchange {
  std::int64_t ranks = 1;
  std::int64_t rounds = 1;                 ///< ranks among which keys and values go round, or are gathered
  plan::GroupSpan span;                    ///< of these
  std::int64_t keys_and_values_bytes = 0;  ///< of the tokens of one rank
  bool is_gathered = false;                ///< all keys and values at once, before attention begins
  std::int64_t head_ranks = 1;             ///< that exchange tokens for heads
  std::int64_t head_ranks_per_node = 1;    ///< of these
  std::int64_t heads_bytes = 0;            ///< of one rank's tokens: queries, keys, values and attention's output
};
ContextExchange context_exchange(const workload::Workload& workload, const schedule::Knobs& knobs,
                                 std::int64_t ranks_per_node);

/// Returns whether several ranks share what the operation does: attention of a sequence.
bool is_shared(const ContextExchange& exchange, const plan::Operation& operation);

/// Returns the bytes that the exchange of an operation of attention needs beside what the operation reads and writes. A
/// ring receives each block of keys and values into a buffer of its own, and with gradients into two in turn; gathered
/// keys and values, and their gradients, are whole; heads are exchanged from one copy into another. 0 if the operation
/// is not shared.
std::int64_t exchange_buffer_bytes(const ContextExchange& exchange, const plan::Operation& operation);

/// The attention of one rank.
struct SharedAttention {
  double compute_s = 0.0;
  double exposed_s = 0.0;  ///< of the exchanges, beyond what runs beside compute_s
};
/// `operation`: a shared one, planned for the rank's own tokens alone.
SharedAttention shared_attention(const Machine& machine, const plan::Operation& operation,
                                 const ContextExchange& exchange);

}  // namespace krigtune::cost
