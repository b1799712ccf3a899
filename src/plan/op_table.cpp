// The properties of each kind of operation, one block for each kind. Apart from the kernels, a new kind needs nothing
// else.
//
// FLOPs of elementwise kernels are operations per element as the kernels count them; their speed is limited by memory
// and not by FLOPs. A matrix product has 2 m n k. Causal attention is counted exactly: row i attends to i + 1 keys, so
// Q K^T and P V cost 4 * batch * hidden * seq (seq + 1) / 2 in the forward pass. The backward pass has five products,
// including the recomputed Q K^T, instead of two.
// Names follow the equations at the top of the host's kernels. Matrices are row-major.
#include <algorithm>
#include <array>

#include "plan/op_operands.h"
#include "plan/op_scans.h"
#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

using namespace operands;  // NOLINT(google-build-using-namespace): the words of the table

// An optimizer's update, with `moments` behind parameter and gradient.
constexpr OpTraits update(schedule::OpKind kind, const char* name, std::initializer_list<OperandTraits> moments,
                          double flops_per_elem) {
  OpTraits traits;
  traits.kind = kind;
  traits.name = name;
  traits.family = OpFamily::kUpdate;
  traits.group = OperandList({in_place("parameter"), in("gradient")}, moments);
  traits.control = true;
  traits.flops_per_elem = flops_per_elem;
  return traits;
}

constexpr OpTraits for_predictions(OpTraits traits) {
  traits.predicted_only = true;
  return traits;
}

constexpr auto kTable = std::to_array<OpTraits>({
    {
        // Loads the tokens of a batch and the token that follows each of them. outer = vocabulary.
        .kind = schedule::OpKind::kLoadBatch,
        .name = "load_batch",
        .operands = {set("tokens", tokens), set("targets", tokens)},
    },
    {
        .kind = schedule::OpKind::kZero,
        .name = "zero",
        .group = {set("range")},
    },
    {
        // Types and places may differ.
        .kind = schedule::OpKind::kCopy,
        .name = "copy",
        .group = {in("source"), set("destination")},
    },
    {
        // destination += source, or destination = source for kWrite.
        .kind = schedule::OpKind::kAccumulate,
        .name = "accumulate",
        .group = {in("source"), out("destination")},
        .flops_per_elem = 1,
    },
    {
        // A table that is split over the tensor group contains tokens [rank * outer, ...); other tokens give 0. outer =
        // rows of the table.
        .kind = schedule::OpKind::kEmbeddingForward,
        .name = "embedding_forward",
        .operands = {in("tokens", rows), look_up(in("table", outer_inner)), set("x", rows_inner)},
        .flops = of_rows_inner,
    },
    {
        .kind = schedule::OpKind::kEmbeddingBackward,
        .name = "embedding_backward",
        .operands = {in("tokens", rows), in("dx", rows_inner), look_up(out("dtable", outer_inner)),
                     maybe(held("table", outer_inner))},
        .flops = of_rows_inner,
        .backward_of = schedule::OpKind::kEmbeddingForward,
    },
    {
        // x += positions. If rows < batch * seq, tensor rank r has the tokens [r * rows, ...).
        .kind = schedule::OpKind::kPositionsForward,
        .name = "positions_forward",
        .operands = {sum("x", rows_inner), in("positions", seq_inner)},
        .flops_per_elem = 1,
        .passes_on = 1,
        .places_rows = true,
    },
    {
        .kind = schedule::OpKind::kPositionsBackward,
        .name = "positions_backward",
        .operands = {in("dx", rows_inner), out("dpositions", seq_inner), maybe(held("positions", seq_inner))},
        .flops_per_elem = 1,
        .backward_of = schedule::OpKind::kPositionsForward,
        .places_rows = true,
    },
    {
        // stats: the means of the rows, then their 1 / stddev.
        .kind = schedule::OpKind::kLayerNormForward,
        .name = "layer_norm_forward",
        .operands = {in("x", rows_inner), set("y", rows_inner), set("stats", two_rows), maybe(in("gain", inner)),
                     maybe(in("bias", inner))},
        .flops_per_elem = 7,
    },
    {
        // The gradients of gain and bias are missing if these are frozen.
        .kind = schedule::OpKind::kLayerNormBackward,
        .name = "layer_norm_backward",
        .operands = {in("dy", rows_inner), in("x", rows_inner), in("stats", two_rows), out("dx", rows_inner),
                     maybe(in("gain", inner)), maybe(out("dgain", inner)), maybe(out("dbias", inner))},
        .flops_per_elem = 14,
        .backward_of = schedule::OpKind::kLayerNormForward,
    },
    {
        // stats: 1 / rms of the rows. Eager kernels also keep x / rms for the gradient of the gain.
        .kind = schedule::OpKind::kRmsNormForward,
        .name = "rms_norm_forward",
        .operands = {in("x", rows_inner), set("y", rows_inner), set("stats", rows), maybe(in("gain", inner)),
                     only_predicted(set("normalised", rows_inner))},
        .flops_per_elem = 4,
    },
    {
        .kind = schedule::OpKind::kRmsNormBackward,
        .name = "rms_norm_backward",
        .operands = {in("dy", rows_inner), in("x", rows_inner), in("stats", rows), out("dx", rows_inner),
                     maybe(in("gain", inner)), maybe(out("dgain", inner)),
                     only_predicted(in("normalised", rows_inner))},
        .flops_per_elem = 11,
        .backward_of = schedule::OpKind::kRmsNormForward,
    },
    {
        // weight, in the model's type, of a quantised matrix and its constants. inner = elements of the weight.
        .kind = schedule::OpKind::kDequantize,
        .name = "dequantize",
        .operands = {in("packed"), set("weight", inner)},
        .flops_per_elem = 4,
        .predicted_only = true,
    },
    {
        // y = x weight^T + bias. One of some columns of y (shape.width) adds to them.
        .kind = schedule::OpKind::kLinearForward,
        .name = "linear_forward",
        .family = OpFamily::kProduct,
        .operands = {in("x", rows_inner), in("weight", outer_inner), out("y", rows_of_outer), maybe(in("bias", outer))},
        .flops = of_product,
    },
    {
        .kind = schedule::OpKind::kLinearBackwardInput,
        .name = "linear_backward_input",
        .family = OpFamily::kProduct,
        .operands = {in("dy", rows_of_outer), in("weight", outer_inner), out("dx", rows_inner)},
        .flops = of_product,
        .backward_of = schedule::OpKind::kLinearForward,
    },
    {
        .kind = schedule::OpKind::kLinearBackwardWeight,
        .name = "linear_backward_weight",
        .family = OpFamily::kProduct,
        .operands = {in("dy", rows_of_outer), in("x", rows_inner), out("dweight", outer_inner),
                     maybe(out("dbias", outer))},
        .flops = of_product,
        .backward_of = schedule::OpKind::kLinearForward,
    },
    {
        // y += bias, in every row.
        .kind = schedule::OpKind::kAddBias,
        .name = "add_bias",
        .operands = {sum("y", rows_inner), in("bias", inner)},
        .flops_per_elem = 1,
        .passes_on = 1,
    },
    {
        .kind = schedule::OpKind::kBiasBackward,
        .name = "bias_backward",
        .operands = {in("dy", rows_inner), out("dbias", inner)},
        .flops_per_elem = 1,
        .backward_of = schedule::OpKind::kAddBias,
    },
    {
        // RMS norms of q and of k in place, v stays; before: what they were. outer: the width of a norm of queries,
        // which is that of a head or of all. stats: 1 / rms of each head's norm. Eager kernels also keep the normalised
        // ones.
        .kind = schedule::OpKind::kQkNormForward,
        .name = "qk_norm_forward",
        .operands = {in_place("qkv", qkv), in("q_gain", groups_outer), in("k_gain", gain_of_keys),
                     set("before", queries_and_keys), set("stats", head_stats),
                     only_predicted(set("normalised", queries_and_keys))},
        .flops_per_elem = 4,
    },
    {
        .kind = schedule::OpKind::kQkNormBackward,
        .name = "qk_norm_backward",
        .operands = {in_place("dqkv", qkv), in("q_gain", groups_outer), in("k_gain", gain_of_keys),
                     in("before", queries_and_keys), in("stats", head_stats), maybe(out("dq_gain", groups_outer)),
                     maybe(out("dk_gain", gain_of_keys)), only_predicted(in("normalised", queries_and_keys))},
        .flops_per_elem = 11,
        .backward_of = schedule::OpKind::kQkNormForward,
    },
    {
        // Of latent attention: the RMS norm of the latent of keys and values (inner), beside which a row of x has the
        // keys' part with positions (outer).
        .kind = schedule::OpKind::kLatentNormForward,
        .name = "latent_norm_forward",
        .operands = {in("x", rows_inner_and_outer), in("gain", inner), set("y", rows_inner),
                     set("positioned", rows_outer), set("stats", rows)},
        .flops_per_elem = 4,
        .predicted_only = true,
    },
    {
        .kind = schedule::OpKind::kLatentNormBackward,
        .name = "latent_norm_backward",
        .operands = {in("dy", rows_inner), in("dpositioned", rows_outer), in("x", rows_inner_and_outer),
                     in("gain", inner), in("stats", rows), set("dx", rows_inner_and_outer), maybe(out("dgain", inner))},
        .flops_per_elem = 11,
        .backward_of = schedule::OpKind::kLatentNormForward,
        .predicted_only = true,
    },
    {
        // Rows of qkv from queries, the heads' keys without positions and values (kv), and the keys' part with
        // positions, which all heads share. That of queries and keys is rotated. beside: keys that stay because the
        // values, in one tensor with them, are not copied.
        .kind = schedule::OpKind::kLatentHeadsForward,
        .name = "latent_heads_forward",
        .operands = {in("q", head_queries), in("kv"), in("positioned"), set("qkv", qkv), maybe(set("beside"))},
        .flops_per_elem = 3,
        .predicted_only = true,
    },
    {
        // The gradient of what all heads share is their sum.
        .kind = schedule::OpKind::kLatentHeadsBackward,
        .name = "latent_heads_backward",
        .operands = {in("dqkv", qkv), set("dq", head_queries), set("dkv"), set("dpositioned"),
                     maybe(held("beside", nullptr))},
        .flops_per_elem = 3,
        .backward_of = schedule::OpKind::kLatentHeadsForward,
        .predicted_only = true,
    },
    {
        // Rotates q and k; v stays unchanged.
        .kind = schedule::OpKind::kRotaryForward,
        .name = "rotary_forward",
        .operands = {in_place("qkv", qkv)},
        .flops_per_elem = 3,
    },
    {
        // Rotates back.
        .kind = schedule::OpKind::kRotaryBackward,
        .name = "rotary_backward",
        .operands = {in_place("dqkv", qkv)},
        .flops_per_elem = 3,
        .backward_of = schedule::OpKind::kRotaryForward,
    },
    {
        // The last three operands are kept by eager attention: the probabilities and, with dropout, the mask and the
        // probabilities after dropout.
        .kind = schedule::OpKind::kAttentionForward,
        .name = "attention_forward",
        .family = OpFamily::kAttention,
        .operands = {in("qkv", qkv), set("out", head_outputs), set("logsumexp", logsumexp),
                     maybe(set("probabilities", probabilities)), maybe(set("mask", probabilities)),
                     maybe(set("dropped", probabilities))},
        .flops = of_attention,
        .draws = true,
    },
    {
        .kind = schedule::OpKind::kAttentionBackward,
        .name = "attention_backward",
        .family = OpFamily::kAttention,
        .operands = {in("dout", head_outputs), in("qkv", qkv), in("out", head_outputs), in("logsumexp", logsumexp),
                     out("dqkv", qkv), maybe(in("probabilities", probabilities)), maybe(in("mask", probabilities)),
                     maybe(in("dropped", probabilities))},
        .flops = of_attention_backward,
        .backward_of = schedule::OpKind::kAttentionForward,
    },
    scan_forward(schedule::OpKind::kMambaForward, "mamba_forward", of_mamba),
    scan_backward(schedule::OpKind::kMambaBackward, schedule::OpKind::kMambaForward, "mamba_backward",
                  of_mamba_backward),
    scan_forward(schedule::OpKind::kDeltaForward, "delta_forward", of_delta),
    scan_backward(schedule::OpKind::kDeltaBackward, schedule::OpKind::kDeltaForward, "delta_backward",
                  of_delta_backward),
    {
        .kind = schedule::OpKind::kGeluForward,
        .name = "gelu_forward",
        .operands = {in("x", rows_inner), set("y", rows_inner)},
        .flops_per_elem = 9,
    },
    {
        .kind = schedule::OpKind::kGeluBackward,
        .name = "gelu_backward",
        .operands = {in("x", rows_inner), becomes("dx", "dy", rows_inner)},
        .flops_per_elem = 16,
        .backward_of = schedule::OpKind::kGeluForward,
    },
    {
        // A row of gate_up: gate (inner) | up (inner). 6 FLOPs an element of y. Eager kernels also keep the activated
        // gate.
        .kind = schedule::OpKind::kSwigluForward,
        .name = "swiglu_forward",
        .operands = {in("gate_up", two_rows_inner), set("y", rows_inner),
                     only_predicted(set("activated_gate", rows_inner))},
        .flops_per_elem = 3,
    },
    {
        .kind = schedule::OpKind::kSwigluBackward,
        .name = "swiglu_backward",
        .operands = {in("gate_up", two_rows_inner), in("dy", rows_inner), out("dgate_up", two_rows_inner),
                     only_predicted(in("activated_gate", rows_inner))},
        .flops_per_elem = 7,
        .backward_of = schedule::OpKind::kSwigluForward,
    },
    {
        // Rows as in positions_forward. The site distinguishes the dropouts of a layer.
        .kind = schedule::OpKind::kDropoutForward,
        .name = "dropout_forward",
        .operands = {in_place("x", rows_inner), set("mask", rows_inner)},
        .flops_per_elem = 1,
        .draws = true,
        .places_rows = true,
    },
    {
        .kind = schedule::OpKind::kDropoutBackward,
        .name = "dropout_backward",
        .operands = {in_place("dx", rows_inner), in("mask", rows_inner)},
        .flops_per_elem = 1,
        .backward_of = schedule::OpKind::kDropoutForward,
    },
    {
        // The router of experts: the `inner` largest of a token's `outer` logits, as probabilities, and which they are.
        .kind = schedule::OpKind::kRouteForward,
        .name = "route_forward",
        .operands = {in("logits", rows_outer), set("weights", rows_inner), set("places", rows_inner)},
        .flops_per_elem = 4,
        .predicted_only = true,
    },
    {
        .kind = schedule::OpKind::kRouteBackward,
        .name = "route_backward",
        .operands = {in("dweights", rows_inner), in("weights", rows_inner), in("places", rows_inner),
                     set("dlogits", rows_outer)},
        .flops_per_elem = 4,
        .backward_of = schedule::OpKind::kRouteForward,
        .predicted_only = true,
    },
    {
        // Each token's row once for each of its `outer` experts, ordered by experts.
        .kind = schedule::OpKind::kDispatchForward,
        .name = "dispatch_forward",
        .operands = {in("x", rows_inner), in("places", rows_outer), set("y", rows_outer_inner)},
        .predicted_only = true,
    },
    {
        .kind = schedule::OpKind::kDispatchBackward,
        .name = "dispatch_backward",
        .operands = {in("dy", rows_outer_inner), in("places", rows_outer), out("dx", rows_inner)},
        .flops_per_elem = 1,
        .backward_of = schedule::OpKind::kDispatchForward,
        .predicted_only = true,
    },
    {
        // y = x weight^T + bias, each of `groups` parts of the rows with its own weight. All parts are taken as equal.
        .kind = schedule::OpKind::kGroupedForward,
        .name = "grouped_forward",
        .family = OpFamily::kProduct,
        .operands = {in("x", rows_inner), in("weight", groups_outer_inner), set("y", rows_outer),
                     maybe(in("bias", groups_outer))},
        .flops = of_product,
        .predicted_only = true,
    },
    {
        .kind = schedule::OpKind::kGroupedBackwardInput,
        .name = "grouped_backward_input",
        .family = OpFamily::kProduct,
        .operands = {in("dy", rows_outer), in("weight", groups_outer_inner), out("dx", rows_inner)},
        .flops = of_product,
        .backward_of = schedule::OpKind::kGroupedForward,
        .predicted_only = true,
    },
    {
        .kind = schedule::OpKind::kGroupedBackwardWeight,
        .name = "grouped_backward_weight",
        .family = OpFamily::kProduct,
        .operands = {in("dy", rows_outer), in("x", rows_inner), out("dweight", groups_outer_inner),
                     maybe(out("dbias", groups_outer))},
        .flops = of_product,
        .backward_of = schedule::OpKind::kGroupedForward,
        .predicted_only = true,
    },
    {
        // The sum of a token's `outer` rows of x, each times its weight.
        .kind = schedule::OpKind::kCombineForward,
        .name = "combine_forward",
        .operands = {in("x", rows_outer_inner), in("weights", rows_outer), in("places", rows_outer),
                     set("y", rows_inner)},
        .flops_per_elem = 2,
        .predicted_only = true,
    },
    {
        // Without x the weights have multiplied what x was computed from, and their gradient is computed there.
        .kind = schedule::OpKind::kCombineBackward,
        .name = "combine_backward",
        .operands = {in("dy", rows_inner), in("weights", rows_outer), in("places", rows_outer),
                     set("dx", rows_outer_inner), set("dweights", rows_outer), maybe(in("x", rows_outer_inner))},
        .flops_per_elem = 3,
        .backward_of = schedule::OpKind::kCombineForward,
        .predicted_only = true,
    },
    {
        // y += x.
        .kind = schedule::OpKind::kAdd,
        .name = "add",
        .group = {sum("y"), in("x")},
        .one_group = true,
        .flops_per_elem = 1,
        .passes_on = 2,
    },
    {
        // Computes scale times the loss, the mean over rows. outer = vocabulary.
        .kind = schedule::OpKind::kCrossEntropy,
        .name = "cross_entropy",
        .operands = {becomes("dlogits", "logits", rows_outer), in("targets", rows), set("loss", one)},
        .control = true,
        .flops_per_elem = 5,
        .is_loss = true,
    },
    {
        // Computes the largest logit of each row. outer = columns of this rank, inner = whole vocabulary. Columns
        // beyond the end of the vocabulary are padding and are ignored, here and in the next two operations.
        .kind = schedule::OpKind::kVocabMax,
        .name = "vocab_max",
        .operands = {in("logits", rows_outer), set("top", rows)},
        .flops_per_elem = 1,
    },
    {
        // exponentials = exp(logits - top); at_target = logits - top, or 0 if another rank has the target.
        .kind = schedule::OpKind::kVocabSumExp,
        .name = "vocab_sum_exp",
        .operands = {becomes("exponentials", "logits", rows_outer), in("targets", rows), in("top", rows),
                     set("sums", rows), set("at_target", rows)},
        .flops_per_elem = 3,
        .passes_on = 1,
    },
    {
        // Computes the same as cross_entropy from the results of vocab_sum_exp.
        .kind = schedule::OpKind::kVocabCrossEntropy,
        .name = "vocab_cross_entropy",
        .operands = {becomes("dlogits", "exponentials", rows_outer), in("targets", rows), in("sums", rows),
                     in("at_target", rows), set("loss", one)},
        .control = true,
        .flops_per_elem = 1,
        .is_loss = true,
    },
    {
        // sum += scale * squares of the ranges.
        .kind = schedule::OpKind::kGradientNorm,
        .name = "gradient_norm",
        .operands = {out("sum", one)},
        .group = {in("range")},
        .flops_per_elem = 2,
    },
    {
        // sum is the squared norm of the scaled gradients, from which clipping and the new loss scale are computed.
        .kind = schedule::OpKind::kLossScale,
        .name = "loss_scale",
        .operands = {in("sum", one), in_place("control", control_elems)},
    },
    // These compute in fp32, whatever the type of the gradient.
    update(schedule::OpKind::kAdamW, "adamw", {in_place("first_moment"), in_place("second_moment")}, 14),
    update(schedule::OpKind::kSgd, "sgd", {in_place("momentum")}, 5),
    // Moments of 8 bits, each block of them with a constant that the range does not contain.
    for_predictions(
        update(schedule::OpKind::kAdamW8bit, "adamw_8bit", {in_place("first_moment"), in_place("second_moment")}, 30)),
    // The sign of a mean of momentum and gradient.
    for_predictions(update(schedule::OpKind::kLion, "lion", {in_place("momentum")}, 9)),
    // Its second moments are sums of rows and of columns, which the ranges do not contain.
    for_predictions(update(schedule::OpKind::kAdafactor, "adafactor", {}, 12)),
    // Also the last step of Muon's update of a matrix, with the orthogonal matrix in place of the gradient.
    for_predictions(update(schedule::OpKind::kSgdPlain, "sgd_plain", {}, 2)),
    {
        // The first step of Muon's update of a matrix.
        .kind = schedule::OpKind::kMomentum,
        .name = "momentum",
        .group = {in_place("momentum"), in("gradient")},
        .one_group = true,
        .control = true,
        .flops_per_elem = 3,
        .predicted_only = true,
    },
    {
        // Five Newton-Schulz steps on `groups` matrices of rows x inner. outer = ranks that share them.
        .kind = schedule::OpKind::kOrthogonalize,
        .name = "orthogonalize",
        .family = OpFamily::kProduct,
        .operands = {in("momentum"), set("direction")},
        .flops = of_newton_schulz,
        .predicted_only = true,
    },
    {
        // Sums over all ranks.
        .kind = schedule::OpKind::kAllReduce,
        .name = "all_reduce",
        .family = OpFamily::kCollective,
        .group = {in_place("whole")},
        .flops_per_elem = 1,
        .wire_passes = 2,
    },
    {
        // Takes the maximum over all ranks.
        .kind = schedule::OpKind::kAllReduceMax,
        .name = "all_reduce_max",
        .family = OpFamily::kCollective,
        .group = {in_place("whole")},
        .flops_per_elem = 1,
        .wire_passes = 2,
    },
    {
        // Rank r's result is the r-th 1/N of each range.
        .kind = schedule::OpKind::kReduceScatter,
        .name = "reduce_scatter",
        .family = OpFamily::kCollective,
        .group = {in_place("whole")},
        .flops_per_elem = 1,
        .wire_passes = 1,
    },
    {
        // Rank r's shard becomes the r-th 1/N of each whole range. It may already be there.
        .kind = schedule::OpKind::kAllGather,
        .name = "all_gather",
        .family = OpFamily::kCollective,
        .group = {in("shard"), set("whole")},
        .wire_passes = 1,
    },
});

constexpr const OpTraits& traits_at(schedule::OpKind kind) { return kTable[static_cast<std::size_t>(kind)]; }

constexpr std::optional<std::size_t> position_of(const OpTraits& traits, std::string_view name) {
  for (std::size_t i = 0; i < traits.operands.size(); ++i) {
    if (traits.operands[i].name == name) return i;
  }
  return std::nullopt;
}

constexpr std::optional<ForwardOperand> forward_operand(const OpTraits& forward, std::string_view name) {
  if (const auto same = position_of(forward, name)) return ForwardOperand{*same, false};
  if (!name.starts_with('d')) return std::nullopt;
  if (const auto differentiated = position_of(forward, name.substr(1))) return ForwardOperand{*differentiated, true};
  return std::nullopt;
}

constexpr bool names_its_forward(const OpTraits& backward) {
  const OpTraits& forward = traits_at(*backward.backward_of);
  return std::ranges::all_of(backward.operands, [&](const OperandTraits& operand) {
    return forward_operand(forward, operand.name) &&
           (operand.becomes.empty() || forward_operand(forward, operand.becomes));
  });
}

static_assert(kTable.size() == schedule::kOpKindCount);
static_assert(std::ranges::adjacent_find(kTable, std::ranges::greater_equal{}, &OpTraits::kind) == kTable.end(),
              "in the order of OpKind");
static_assert(std::ranges::all_of(kTable, [](const OpTraits& t) { return !t.backward_of || names_its_forward(t); }));

}  // namespace

const OpTraits& traits_of(schedule::OpKind kind) { return traits_at(kind); }

std::optional<ForwardOperand> find_forward(const OpTraits& forward, std::string_view name) {
  return forward_operand(forward, name);
}

}  // namespace krigtune::plan
