#include "cost/context_split.h"

#include <algorithm>

#include "cost/pairwise_exchange.h"
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
  const workload::ModelSpec& model = workload.model;
  ContextExchange exchange;
  exchange.ranks = knobs.context_ranks;
  exchange.head_ranks = knobs.head_ranks;
  exchange.rounds = knobs.context_ranks / knobs.head_ranks;
  exchange.is_gathered = knobs.context_kind == schedule::ContextKind::kAllGather;
  // The ranks that share a sequence are the nearest of the data group (the order tp-cp-ep-dp-pp of Megatron Core), and
  // those that exchange heads the nearest of these.
  exchange.span = group_span(exchange.rounds, knobs.tensor_ranks * knobs.head_ranks, ranks_per_node);
  exchange.head_ranks_per_node = group_span(knobs.head_ranks, knobs.tensor_ranks, ranks_per_node).ranks_per_node;
  const std::int64_t row_bytes = knobs.micro_batch * tokens_of_rank(model, knobs) *
                                 schedule::size_bytes(schedule::compute_type(workload.precision));
  // Where there are fewer heads of keys than ranks that exchange heads, several have the same ones.
  const std::int64_t kv_heads = std::max(model.kv_heads / knobs.tensor_ranks, knobs.head_ranks);
  const std::int64_t kv_width = kv_heads * (model.head_width() + model.value_head_width());
  const std::int64_t q_and_out_width = (model.query_width() + model.output_width()) / knobs.tensor_ranks;
  exchange.keys_and_values_bytes = row_bytes * kv_width;
  exchange.heads_bytes = row_bytes * (q_and_out_width + kv_width);
  return exchange;
}

bool is_shared(const ContextExchange& exchange, const plan::Operation& operation) {
  return exchange.ranks > 1 && plan::traits_of(operation.kind).family == plan::OpFamily::kAttention;
}

// TransformerEngine, attention/dot_product_attention/context_parallel.py.
std::int64_t exchange_buffer_bytes(const ContextExchange& exchange, const plan::Operation& operation) {
  if (!is_shared(exchange, operation)) return 0;
  const bool backward = operation.phase == schedule::Phase::kBackward;
  const std::int64_t rounds = exchange.rounds;
  const std::int64_t heads_bytes = exchange.head_ranks > 1 ? exchange.heads_bytes : 0;
  if (rounds == 1) return heads_bytes;
  const std::int64_t blocks = exchange.is_gathered ? (backward ? 2 * rounds : rounds) : (backward ? 4 : rounds - 1);
  return heads_bytes + blocks * exchange.keys_and_values_bytes;
}

// Forward passes on the keys and values of the other ranks; backward passes them again, with gradients of the same size
// (TransformerEngine, attention/dot_product_attention/context_parallel.py). Heads are exchanged for queries, keys and
// values, and back for the output; backward does the same with gradients. Only a ring runs beside attention.
SharedAttention shared_attention(const Machine& machine, const plan::Operation& operation,
                                 const ContextExchange& exchange) {
  const bool backward = operation.phase == schedule::Phase::kBackward;
  const std::int64_t rounds = exchange.rounds;
  const bool is_ring = rounds > 1 && !exchange.is_gathered;
  const double rate = is_ring ? kBlockwiseRate : 1.0;
  const auto bytes = static_cast<double>(operation.bytes_read + operation.bytes_written);
  SharedAttention attention;
  attention.compute_s =
      kernel_time_s(machine, plan::class_of(operation), static_cast<double>(exchange.ranks) * operation.flops / rate,
                    static_cast<double>(rounds) * bytes);
  const std::int64_t wire_bytes = (rounds - 1) * exchange.keys_and_values_bytes * (backward ? 2 : 1);
  const double round_s = link_time_s(machine, schedule::OpKind::kAllGather, exchange.span, wire_bytes);
  const auto to_each = static_cast<double>(exchange.heads_bytes) / static_cast<double>(exchange.head_ranks);
  attention.exposed_s =
      std::max(0.0, round_s - (is_ring ? attention.compute_s : 0.0)) +
      pairwise_exchange_s(machine, all_to_all(exchange.head_ranks, exchange.head_ranks_per_node, to_each));
  return attention;
}

}  // namespace krigtune::cost
