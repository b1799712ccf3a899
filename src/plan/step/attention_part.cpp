// The attention branch of a layer: norm, fused q, k, v, rotary positions, causal attention, projection, dropout.
#include "step/transformer_layer.h"

namespace krigtune {
namespace {

bool eager(const StepOperations& to) { return to.model().attention == Attention::kEager; }

Shape attention_shape(const StepOperations& to) {
  const StepSizes& n = to.sizes();
  Shape shape{.batch = n.batch, .seq = n.seq, .heads = n.heads, .kv_heads = n.kv_heads, .inner = n.attention};
  shape.site = kProbabilitiesSite;
  shape.dropout = to.model().dropout;
  return shape;
}

std::int64_t probability_elems(const StepSizes& n) { return n.batch * n.heads * n.seq * n.seq; }

void make_probabilities(StepOperations& to, AttentionBuffers& buffers, Term term) {
  if (!eager(to)) return;
  const std::int64_t elems = probability_elems(to.sizes());
  const DType type = to.type();
  buffers.probabilities = to.buffer("probabilities", term, elems, type);
  if (!to.drops()) return;
  buffers.mask = to.buffer("probabilities mask", term, elems, DType::kUint8);
  buffers.dropped = to.buffer("dropped probabilities", term, elems, type);
}

void push_probabilities(const StepOperations& to, const AttentionBuffers& buffers, Access access,
                        std::vector<Operand>& operands) {
  const std::int64_t elems = probability_elems(to.sizes());
  for (const BufferId buffer : {buffers.probabilities, buffers.mask, buffers.dropped}) {
    if (buffer >= 0) operands.push_back({{buffer, 0, elems, 0}, access});
  }
}

void core_forward(StepOperations& to, const AttentionBuffers& buffers) {
  const StepSizes& n = to.sizes();
  std::vector<Operand> operands = {reads(buffers.qkv, n.rows * n.qkv), writes(buffers.out, n.rows * n.attention),
                                   writes(buffers.logsumexp, n.rows * n.heads)};
  push_probabilities(to, buffers, Access::kWrite, operands);
  to.add(OpKind::kAttentionForward, attention_shape(to), std::move(operands));
}

BufferId core_backward(StepOperations& to, const AttentionBuffers& kept, BufferId dout) {
  const StepSizes& n = to.sizes();
  const BufferId dqkv = to.all("qkv gradient", Term::kWorkspace, n.qkv);
  std::vector<Operand> operands = {reads(dout, n.rows * n.attention), reads(kept.qkv, n.rows * n.qkv),
                                   reads(kept.out, n.rows * n.attention), reads(kept.logsumexp, n.rows * n.heads),
                                   writes(dqkv, n.rows * n.qkv)};
  push_probabilities(to, kept, Access::kRead, operands);
  to.add(OpKind::kAttentionBackward, attention_shape(to), std::move(operands));
  return dqkv;
}

void rotate(StepOperations& to, OpKind kind, BufferId qkv) {
  if (to.model().positions != Positions::kRotary) return;
  const StepSizes& n = to.sizes();
  to.add(kind, {.batch = n.batch, .seq = n.seq, .heads = n.heads, .kv_heads = n.kv_heads, .inner = n.attention},
         {updates(qkv, n.rows * n.qkv)});
}

}  // namespace

AttentionBuffers attention_forward(StepOperations& to, const BlockTensors& block, BufferId input,
                                   const LayerTerms& terms) {
  const StepSizes& n = to.sizes();
  AttentionBuffers buffers;
  buffers.input = input;
  buffers.norm = to.own("norm1", terms.norms, n.hidden);
  buffers.stats = to.norm_stats("norm1 stats", terms.rest);
  buffers.qkv = to.all("qkv", terms.rest, n.qkv);
  buffers.out = to.all("attention", terms.rest, n.attention);
  buffers.logsumexp = to.buffer("logsumexp", terms.rest, n.rows * n.heads, DType::kFp32);
  make_probabilities(to, buffers, terms.core);
  buffers.output = to.own("middle", terms.rest, n.hidden);

  to.norm_forward(input, block.norm1, buffers.norm, buffers.stats);
  to.column_forward(buffers.norm, block.qkv, buffers.qkv, n.qkv);
  rotate(to, OpKind::kRotaryForward, buffers.qkv);
  core_forward(to, buffers);
  to.row_forward(buffers.out, block.out, buffers.output, n.attention);
  buffers.branch_mask = to.dropout_forward(buffers.output, kAttentionSite, terms.rest);
  to.add(OpKind::kAdd, {}, {to.own_updates(buffers.output), to.own_reads(input)});
  return buffers;
}

void attention_backward(StepOperations& to, const BlockTensors& block, AttentionBuffers& kept, const LayerTerms& terms,
                        BufferId residual_gradient) {
  const StepSizes& n = to.sizes();
  const BufferId branch = to.branch_gradient(residual_gradient, kept.branch_mask, kAttentionSite);
  const BufferId dout = to.all("attention gradient", Term::kWorkspace, n.attention);
  to.row_backward(branch, kept.out, block.out, dout, n.attention);
  if (eager(to) && terms.computes_again(terms.core)) {
    to.in(Phase::kRecompute);
    make_probabilities(to, kept, Term::kWorkspace);
    core_forward(to, kept);
    to.in(Phase::kBackward);
  }
  const BufferId dqkv = core_backward(to, kept, dout);
  rotate(to, OpKind::kRotaryBackward, dqkv);
  if (terms.computes_again(terms.norms)) {
    to.in(Phase::kRecompute);
    kept.norm = to.own("norm1 again", Term::kWorkspace, n.hidden);
    to.norm_forward(kept.input, block.norm1, kept.norm, kept.stats);
    to.in(Phase::kBackward);
  }
  const Operand dnorm = to.column_backward(dqkv, kept.norm, block.qkv, n.qkv, "norm1 gradient");
  to.norm_backward(dnorm, kept.input, block.norm1, kept.stats, to.own_updates(residual_gradient));
}

}  // namespace krigtune
