#include "cost/context_split.h"

#include <algorithm>

#include "plan/op_traits.h"
#include "schedule/parameters.h"

namespace krigtune::cost {
namespace {

// Of attention on the same tokens in one piece: 8 GPUs with 8192 tokens each reached 90 % in blocks that are dealt out
// evenly ("zigzag", github.com/zhuzilin/ring-flash-attention, its README's table of 2024).
constexpr double kBlockwiseRate = 0.9;

// Rounded up.
std::int64_t quotient(std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

}  // namespace

std::int64_t tokens_of_rank(const workload::ModelSpec& model, const schedule::Knobs& knobs) {
  if (knobs.context_ranks == 1) return model.seq_len;
  const std::int64_t parts = knobs.sequence_parallel ? knobs.tensor_ranks : 1;
  const std::int64_t tokens = quotient(quotient(model.seq_len, knobs.context_ranks), parts) * parts;
  return std::max<std::int64_t>(tokens, 2);
}

workload::Workload share_of_rank(const workload::Workload& workload, const schedule::Knobs& knobs) {
  workload::Workload own = workload;
  if (knobs.context_ranks == 1) return own;
  own.model.seq_len = tokens_of_rank(workload.model, knobs);
  own.model.attention = workload::Attention::kFlash;
  return own;
}

ContextExchange context_exchange(const workload::Workload& workload, const schedule::Knobs& knobs,
                                 std::int64_t ranks_per_node) {
  ContextExchange exchange;
  exchange.ranks = knobs.context_ranks;
  // The ranks that share a sequence are the nearest of the data group (the order tp-cp-ep-dp-pp of Megatron Core).
  exchange.span = group_span(knobs.context_ranks, knobs.tensor_ranks, ranks_per_node);
  const std::int64_t tokens = knobs.micro_batch * tokens_of_rank(workload.model, knobs);
  const std::int64_t width = (workload.model.key_width() + workload.model.value_width()) / knobs.tensor_ranks;
  exchange.keys_and_values_bytes = tokens * width * schedule::size_bytes(schedule::compute_type(workload.precision));
  return exchange;
}

// Forward passes on c - 1 blocks of keys and values; backward passes them again, with gradients of the same size
// (TransformerEngine, attention/dot_product_attention/context_parallel.py).
SharedAttention shared_attention(const Machine& machine, const plan::Operation& operation,
                                 const ContextExchange& exchange) {
  const auto ranks = static_cast<double>(exchange.ranks);
  const bool backward = operation.phase == schedule::Phase::kBackward;
  SharedAttention attention;
  const auto bytes = static_cast<double>(operation.bytes_read + operation.bytes_written);
  attention.compute_s =
      kernel_time_s(machine, plan::class_of(operation), ranks * operation.flops / kBlockwiseRate, ranks * bytes);
  const std::int64_t wire_bytes = (exchange.ranks - 1) * exchange.keys_and_values_bytes * (backward ? 2 : 1);
  const double exchange_s = link_time_s(machine, schedule::OpKind::kAllGather, exchange.span, wire_bytes);
  attention.exposed_s = std::max(0.0, exchange_s - attention.compute_s);
  return attention;
}

}  // namespace krigtune::cost
