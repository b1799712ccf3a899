#include "plan/transformer.h"

#include <cassert>
#include <optional>
#include <utility>

#include "plan/mtp.h"

namespace krigtune::plan {

// What selective checkpointing recomputes: with eager attention, the attention core, whose 5 a s^2 b bytes cost few
// FLOPs (Korthikanti et al. 2022, section 5). Flash attention does not keep these bytes, so there it recomputes the
// outputs of the norms and of the MLP's activation (as llm.c's recompute = 2).

LayerTerms kept_layer(schedule::Checkpointing checkpointing, workload::Attention attention) {
  assert(checkpointing != schedule::Checkpointing::kFull);
  LayerTerms terms;
  if (checkpointing == schedule::Checkpointing::kNone) return terms;
  if (attention == workload::Attention::kEager) {
    terms.core = schedule::Term::kWorkspace;
  } else {
    terms.norms = schedule::Term::kWorkspace;
    terms.activated = schedule::Term::kWorkspace;
  }
  return terms;
}

LayerTerms passing_layer(schedule::Term output) {
  return {schedule::Term::kWorkspace, schedule::Term::kWorkspace, schedule::Term::kWorkspace,
          schedule::Term::kWorkspace, output};
}

LayerBuffers layer_forward(StepOperations& to, const schedule::BlockTensors& block, BufferId input,
                           const LayerTerms& terms) {
  LayerBuffers buffers;
  buffers.input = buffers.attention.output = input;
  const bool mixes = block.kind.mixer != workload::Mixer::kNone;
  const bool feeds = block.kind.feed_forward != workload::FeedForward::kNone;
  LayerTerms of_attention = terms;
  if (feeds) of_attention.output = terms.rest;
  if (mixes) buffers.attention = attention_forward(to, block, input, of_attention);
  if (feeds) buffers.mlp = mlp_forward(to, block, buffers.attention, terms);
  buffers.output = feeds ? buffers.mlp.output : buffers.attention.output;
  to.others_forward(block.others);
  return buffers;
}

void layer_backward(StepOperations& to, const schedule::BlockTensors& block, LayerBuffers& kept,
                    const LayerTerms& terms, BufferId residual_gradient) {
  to.others_backward(block.others);
  std::optional<Operand> shared;
  if (block.kind.feed_forward != workload::FeedForward::kNone)
    shared = mlp_backward(to, block, kept, terms, residual_gradient);
  if (block.kind.mixer != workload::Mixer::kNone) attention_backward(to, block, kept, terms, residual_gradient, shared);
}

namespace {

// Where a branch writes: what is added to the residual stream, or what its norm reads.
BufferId branch_output(StepOperations& to, const schedule::NormTensors& norm, schedule::Term term, BufferId output) {
  return norm.exists() ? to.own("branch before its norm", term, to.sizes().hidden) : output;
}

KeptByNorm branch_norm(StepOperations& to, const schedule::NormTensors& norm, schedule::Term term, BufferId branch,
                       BufferId output) {
  if (!norm.exists()) return {};
  KeptByNorm kept = to.norm_stats("branch norm stats", term);
  to.norm_forward(branch, norm, output, kept, term);
  return kept;
}

// Returns the gradient of the branch's output.
BufferId branch_norm_backward(StepOperations& to, const schedule::NormTensors& norm, BufferId branch,
                              const KeptByNorm& kept, BufferId gradient) {
  if (!norm.exists()) return gradient;
  const std::int64_t elems = to.sizes().own_rows * to.sizes().hidden;
  const BufferId before = to.own("gradient before the branch's norm", schedule::Term::kWorkspace, to.sizes().hidden);
  to.norm_backward(to.own_reads(gradient), branch, norm, kept, writes(before, elems));
  return before;
}

// The gradient of a branch's input, which has no norm, joins the residual stream's.
void add_gradient(StepOperations& to, const Operand& gradient, BufferId residual_gradient) {
  to.add_on_own(schedule::OpKind::kAdd, {}, {to.own_updates(residual_gradient), gradient});
}

}  // namespace

// The attention branch of a layer: norm, fused q, k, v (or those of latents), rotary positions, causal attention,
// projection, dropout.
namespace {

bool eager(const StepOperations& to) { return to.model().attention == workload::Attention::kEager; }

Shape attention_shape(const StepOperations& to) {
  const StepSizes& n = to.sizes();
  Shape shape{.batch = n.batch, .seq = n.seq, .heads = n.heads, .kv_heads = n.kv_heads, .inner = n.queries};
  if (to.model().has_latents()) shape.values = n.attention;
  shape.site = kProbabilitiesSite;
  shape.dropout = to.model().dropout;
  return shape;
}

std::int64_t probability_elems(const StepSizes& n) { return n.batch * n.heads * n.seq * n.seq; }

void make_probabilities(StepOperations& to, AttentionBuffers& buffers, schedule::Term term) {
  if (!eager(to)) return;
  const std::int64_t elems = probability_elems(to.sizes());
  const schedule::DType type = to.type();
  buffers.probabilities = to.buffer("probabilities", term, elems, type);
  if (!to.drops()) return;
  buffers.mask = to.buffer("probabilities mask", term, elems, schedule::DType::kUint8);
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
  to.add(schedule::OpKind::kAttentionForward, attention_shape(to), std::move(operands));
}

BufferId core_backward(StepOperations& to, const AttentionBuffers& kept, BufferId dout) {
  const StepSizes& n = to.sizes();
  const BufferId dqkv = to.all("qkv gradient", schedule::Term::kWorkspace, n.qkv);
  std::vector<Operand> operands = {reads(dout, n.rows * n.attention), reads(kept.qkv, n.rows * n.qkv),
                                   reads(kept.out, n.rows * n.attention), reads(kept.logsumexp, n.rows * n.heads),
                                   writes(dqkv, n.rows * n.qkv)};
  push_probabilities(to, kept, Access::kRead, operands);
  to.add(schedule::OpKind::kAttentionBackward, attention_shape(to), std::move(operands));
  return dqkv;
}

void rotate(StepOperations& to, schedule::OpKind kind, BufferId qkv) {
  if (to.model().positions != workload::Positions::kRotary) return;
  const StepSizes& n = to.sizes();
  to.add(kind, {.batch = n.batch, .seq = n.seq, .heads = n.heads, .kv_heads = n.kv_heads, .inner = n.queries},
         {updates(qkv, n.rows * n.qkv)});
}

// groups: gain, and bias.
Shape qk_norm_shape(StepOperations& to, const schedule::BlockTensors& block) {
  Shape shape = attention_shape(to);
  shape.groups = to.model().has_norm_bias() ? 2 : 1;
  shape.outer = to.zero().parameter(block.q_norm).range.elems / shape.groups;
  return shape;
}

std::int64_t qk_elems(const StepSizes& n) { return n.rows * (n.queries + (n.qkv - n.queries) / 2); }

void normalise_qk(StepOperations& to, const schedule::BlockTensors& block, AttentionBuffers& buffers,
                  schedule::Term term) {
  if (block.q_norm == schedule::kNoTensor) return;
  const StepSizes& n = to.sizes();
  const std::int64_t stats = n.rows * (n.heads + n.kv_heads);
  const bool eager = to.has_eager_kernels();
  const schedule::DType kept_type = eager ? schedule::DType::kFp32 : to.type();
  buffers.before_norm = to.buffer("queries and keys before their norm", term, qk_elems(n), kept_type);
  buffers.qk_stats = to.buffer("qk norm stats", term, stats, schedule::DType::kFp32);
  std::vector<Operand> operands = {updates(buffers.qkv, n.rows * n.qkv), to.zero().parameter(block.q_norm),
                                   to.zero().parameter(block.k_norm), writes(buffers.before_norm, qk_elems(n)),
                                   writes(buffers.qk_stats, stats)};
  if (eager && to.zero().trains(block.q_norm)) {
    buffers.normalised = to.buffer("normalised queries and keys", term, qk_elems(n), to.type());
    operands.push_back(writes(buffers.normalised, qk_elems(n)));
  }
  to.add(schedule::OpKind::kQkNormForward, qk_norm_shape(to, block), std::move(operands));
}

void qk_norm_backward(StepOperations& to, const schedule::BlockTensors& block, const AttentionBuffers& kept,
                      BufferId dqkv) {
  if (block.q_norm == schedule::kNoTensor) return;
  const StepSizes& n = to.sizes();
  std::vector<Operand> operands = {updates(dqkv, n.rows * n.qkv), to.zero().parameter(block.q_norm),
                                   to.zero().parameter(block.k_norm), reads(kept.before_norm, qk_elems(n)),
                                   reads(kept.qk_stats, n.rows * (n.heads + n.kv_heads))};
  if (!to.zero().trains(block.q_norm))
    return to.add(schedule::OpKind::kQkNormBackward, qk_norm_shape(to, block), std::move(operands));
  operands.push_back(to.zero().gradient(block.q_norm));
  operands.push_back(to.zero().gradient(block.k_norm));
  if (kept.normalised >= 0) operands.push_back(reads(kept.normalised, qk_elems(n)));
  to.add(schedule::OpKind::kQkNormBackward, qk_norm_shape(to, block), std::move(operands));
  to.zero().gradient_done(block.q_norm);
  to.zero().gradient_done(block.k_norm);
}

void qkv_forward(StepOperations& to, const schedule::BlockTensors& block, AttentionBuffers& buffers,
                 const LayerTerms& terms) {
  if (to.model().has_latents()) {
    buffers.latent = latents_forward(to, block.latent, buffers.norm, buffers.qkv, terms.rest);
    return;
  }
  to.column_forward(buffers.norm, block.qkv, buffers.qkv, to.sizes().qkv);
  normalise_qk(to, block, buffers, terms.rest);
  rotate(to, schedule::OpKind::kRotaryForward, buffers.qkv);
}

// Of the kept norm's output, which the MLP may have computed already.
void first_norm_again(StepOperations& to, const schedule::BlockTensors& block, AttentionBuffers& kept,
                      const LayerTerms& terms) {
  if (!block.norm1.exists() || !terms.computes_again(terms.norms)) return;
  to.in(schedule::Phase::kRecompute);
  kept.norm = to.own_input("norm1 again", schedule::Term::kWorkspace, to.sizes().hidden);
  to.norm_forward(kept.input, block.norm1, kept.norm, kept.of_norm, schedule::Term::kWorkspace);
  to.in(schedule::Phase::kBackward);
}

}  // namespace

AttentionBuffers attention_forward(StepOperations& to, const schedule::BlockTensors& block, BufferId input,
                                   const LayerTerms& terms) {
  const StepSizes& n = to.sizes();
  AttentionBuffers buffers;
  buffers.input = input;
  buffers.norm = block.norm1.exists() ? to.own_input("norm1", terms.norms, n.hidden) : input;
  if (block.norm1.exists()) buffers.of_norm = to.norm_stats("norm1 stats", terms.rest);
  const bool attends = block.kind.mixer == workload::Mixer::kAttention;
  const std::int64_t width = attends ? n.attention : mixer_widths(to, block).output;
  if (attends) buffers.qkv = to.all("qkv", terms.rest, n.qkv);
  buffers.out = to.all(attends ? "attention" : "mixed tokens", terms.rest, width);
  if (attends) {
    buffers.logsumexp = to.buffer("logsumexp", terms.rest, n.rows * n.heads, schedule::DType::kFp32);
    make_probabilities(to, buffers, terms.core);
  }
  buffers.output = to.own("middle", terms.output, n.hidden);

  if (block.norm1.exists()) {
    const StepOperations::InModule in(to, schedule::Module::kNorms, to.model().has_latents());
    to.norm_forward(input, block.norm1, buffers.norm, buffers.of_norm, terms.norms);
  }
  if (attends) {
    qkv_forward(to, block, buffers, terms);
    const StepOperations::InModule in(to, schedule::Module::kCoreAttention);
    core_forward(to, buffers);
  } else {
    buffers.mixer = mixer_forward(to, block, buffers.norm, buffers.out, terms.rest);
  }
  buffers.branch = branch_output(to, block.post_norm1, terms.rest, buffers.output);
  to.row_forward(buffers.out, block.out, buffers.branch, width);
  buffers.of_post_norm = branch_norm(to, block.post_norm1, terms.rest, buffers.branch, buffers.output);
  buffers.branch_mask = to.dropout_forward(buffers.output, kAttentionSite, terms.rest);
  to.add(schedule::OpKind::kAdd, {}, {to.own_updates(buffers.output), to.own_reads(input)});
  return buffers;
}

namespace {

// Returns the gradient of the norm's output for the own tokens, of that of attention's output.
Operand core_and_qkv_backward(StepOperations& to, const schedule::BlockTensors& block, AttentionBuffers& kept,
                              const LayerTerms& terms, BufferId dout, bool has_shared_norm) {
  const StepSizes& n = to.sizes();
  if (eager(to) && terms.computes_again(terms.core)) {
    to.in(schedule::Phase::kRecompute);
    make_probabilities(to, kept, schedule::Term::kWorkspace);
    core_forward(to, kept);
    to.in(schedule::Phase::kBackward);
  }
  const BufferId dqkv = core_backward(to, kept, dout);
  const bool has_latents = to.model().has_latents();
  if (!has_latents) rotate(to, schedule::OpKind::kRotaryBackward, dqkv);
  qk_norm_backward(to, block, kept, dqkv);
  if (!has_shared_norm) first_norm_again(to, block, kept, terms);
  return has_latents ? latents_backward(to, block.latent, kept.latent, kept.norm, dqkv)
                     : to.column_backward(dqkv, kept.norm, block.qkv, n.qkv, "norm1 gradient");
}

// The same of a mixer in place of attention.
Operand mixer_and_input_backward(StepOperations& to, const schedule::BlockTensors& block, AttentionBuffers& kept,
                                 const LayerTerms& terms, BufferId dout) {
  const BufferId dprojected = mixer_backward(to, block, kept.mixer, dout);
  first_norm_again(to, block, kept, terms);
  return to.column_backward(dprojected, kept.norm, block.mixer.in, mixer_widths(to, block).projected, "norm1 gradient");
}

}  // namespace

void attention_backward(StepOperations& to, const schedule::BlockTensors& block, LayerBuffers& layer,
                        const LayerTerms& terms, BufferId residual_gradient, const std::optional<Operand>& shared) {
  AttentionBuffers& kept = layer.attention;
  const bool attends = block.kind.mixer == workload::Mixer::kAttention;
  const std::int64_t width = attends ? to.sizes().attention : mixer_widths(to, block).output;
  const BufferId added = to.branch_gradient(residual_gradient, kept.branch_mask, kAttentionSite);
  const BufferId branch = branch_norm_backward(to, block.post_norm1, kept.branch, kept.of_post_norm, added);
  const BufferId dout = to.all("attention gradient", schedule::Term::kWorkspace, width);
  to.row_backward(branch, kept.out, block.out, dout, width);
  const Operand dnorm = attends ? core_and_qkv_backward(to, block, kept, terms, dout, shared.has_value())
                                : mixer_and_input_backward(to, block, kept, terms, dout);
  if (!block.norm1.exists()) return add_gradient(to, dnorm, residual_gradient);
  if (shared) to.add_on_own(schedule::OpKind::kAdd, {}, {{dnorm.range, Access::kReadWrite}, *shared});
  to.norm_backward(dnorm, kept.input, block.norm1, kept.of_norm, to.own_updates(residual_gradient));
}

// The MLP branch of a layer: norm, up (and gate), activation, down, dropout; or experts, and the MLP beside them.
namespace {

constexpr int kSecondNorm = 1;  // a part of Module::kNorms, beside that before attention

bool has_mlp(const schedule::BlockTensors& block) { return block.mlp_columns > 0; }

void activate(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& buffers, schedule::Term term) {
  buffers.gate = to.activate(buffers.up, buffers.activated, to.sizes().rows, block.mlp_columns, term);
}

// The same where each tensor rank sends its own tokens to whole experts.
void own_mixture_forward(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& buffers,
                         const LayerTerms& terms) {
  const StepSizes& n = to.sizes();
  buffers.experts =
      experts_forward(to, block, {buffers.norm, buffers.norm}, buffers.branch, terms.rest, terms.activated);
  if (!has_mlp(block)) return;
  const BufferId shared = to.own("shared expert's output", schedule::Term::kWorkspace, n.hidden);
  {
    const StepOperations::InModule in(to, schedule::Module::kSharedExperts);
    to.column_forward(buffers.norm, block.up, buffers.up, to.up_columns(block));
    activate(to, block, buffers, terms.activated);
    to.row_forward(buffers.activated, block.down, shared, block.mlp_columns);
  }
  to.add(schedule::OpKind::kAdd, {}, {to.own_updates(buffers.branch), to.own_reads(shared)});
}

// Every token's experts, and the MLP that all tokens pass.
void mixture_forward(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& buffers,
                     const LayerTerms& terms) {
  if (to.has_whole_experts()) return own_mixture_forward(to, block, buffers, terms);
  const StepSizes& n = to.sizes();
  const BufferId x = to.gathered(buffers.norm);
  const BufferId sums = to.sums_for(buffers.branch);
  buffers.experts = experts_forward(to, block, {buffers.norm, x}, sums, terms.rest, terms.activated);
  if (has_mlp(block)) {
    const BufferId shared = to.all("shared expert's output", schedule::Term::kWorkspace, n.hidden);
    {
      const StepOperations::InModule in(to, schedule::Module::kSharedExperts);
      to.linear_forward(x, block.up, buffers.up, n.hidden, to.up_columns(block));
      activate(to, block, buffers, terms.activated);
      to.linear_forward(buffers.activated, to.row_product(block.down), shared, block.mlp_columns, n.hidden);
    }
    to.add(schedule::OpKind::kAdd, {}, {updates(sums, n.rows * n.hidden), reads(shared, n.rows * n.hidden)});
  }
  to.reduce_sums(sums, buffers.branch);
  if (has_mlp(block)) to.add_row_bias(block.down, buffers.branch);
}

void activate_again(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& kept,
                    const LayerTerms& terms) {
  if (!terms.computes_again(terms.activated)) return;
  to.in(schedule::Phase::kRecompute);
  if (has_mlp(block)) {
    kept.activated = to.all_input("activated again", schedule::Term::kWorkspace, block.mlp_columns);
    activate(to, block, kept, schedule::Term::kWorkspace);
  }
  if (block.has_experts) activate_experts_again(to, kept.experts);
  to.in(schedule::Phase::kBackward);
}

void norm_again(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& kept, const LayerTerms& terms) {
  if (!block.norm2.exists() || !terms.computes_again(terms.norms)) return;
  to.in(schedule::Phase::kRecompute);
  kept.norm = to.own_input("norm2 again", schedule::Term::kWorkspace, to.sizes().hidden);
  to.norm_forward(kept.input, block.norm2, kept.norm, kept.of_norm, schedule::Term::kWorkspace);
  to.in(schedule::Phase::kBackward);
}

// Returns the gradient of the norm's output for the own tokens.
Operand dense_backward(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& kept,
                       const LayerTerms& terms, BufferId branch) {
  const std::int64_t columns = block.mlp_columns;
  const BufferId dactivated = to.all("activated gradient", schedule::Term::kWorkspace, columns);
  to.row_backward(branch, kept.activated, block.down, dactivated, columns);
  const BufferId dup = to.activation_backward(kept.up, kept.gate, dactivated, to.sizes().rows, columns, "up gradient");
  norm_again(to, block, kept, terms);
  return to.column_backward(dup, kept.norm, block.up, to.up_columns(block), "norm2 gradient");
}

Operand own_mixture_backward(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& kept,
                             const LayerTerms& terms, BufferId branch) {
  const StepSizes& n = to.sizes();
  if (!has_mlp(block)) {
    norm_again(to, block, kept, terms);
    const BufferId gradient = to.own("norm2 gradient", schedule::Term::kWorkspace, n.hidden);
    const BufferId dweights =
        experts_backward(to, block, kept.experts, {branch, writes(gradient, n.own_rows * n.hidden)}, kept.norm);
    router_backward(to, block, kept.experts, kept.norm, dweights, to.own_updates(gradient));
    return to.own_reads(gradient);
  }
  Operand dnorm = dense_backward(to, block, kept, terms, branch);
  const Operand added{dnorm.range, Access::kReadWrite};
  const BufferId dweights = experts_backward(to, block, kept.experts, {branch, added}, kept.norm);
  router_backward(to, block, kept.experts, kept.norm, dweights, dnorm);
  return dnorm;
}

Operand mixture_backward(StepOperations& to, const schedule::BlockTensors& block, MlpBuffers& kept,
                         const LayerTerms& terms, BufferId branch) {
  if (to.has_whole_experts()) return own_mixture_backward(to, block, kept, terms, branch);
  const StepSizes& n = to.sizes();
  if (has_mlp(block)) to.row_bias_backward(block.down, branch);
  const BufferId dy = to.gathered(branch);
  norm_again(to, block, kept, terms);
  // What experts read is kept; the MLP beside them and the product of their latents read the input again.
  const bool has_latent = block.to_latent.weight != schedule::kNoTensor;
  const bool reads_input =
      (has_mlp(block) && to.reads_input_again(block.up)) || (has_latent && to.reads_input_again(block.to_latent));
  const BufferId x = reads_input ? to.gathered(kept.norm) : kept.norm;
  const BufferId sums = to.all("norm2 gradient", schedule::Term::kWorkspace, n.hidden);
  Operand dx = writes(sums, n.rows * n.hidden);
  if (has_mlp(block)) {
    const std::int64_t columns = block.mlp_columns;
    const BufferId dactivated = to.all("activated gradient", schedule::Term::kWorkspace, columns);
    to.linear_backward(dy, kept.activated, to.row_product(block.down), dactivated, columns, n.hidden);
    const BufferId dup = to.activation_backward(kept.up, kept.gate, dactivated, n.rows, columns, "up gradient");
    to.linear_backward(dup, x, block.up, sums, n.hidden, to.up_columns(block));
    dx.access = Access::kReadWrite;
  }
  const BufferId dweights = experts_backward(to, block, kept.experts, {dy, dx}, x);
  const Operand dnorm = to.reduced(sums);
  router_backward(to, block, kept.experts, kept.norm, dweights, dnorm);
  return dnorm;
}

}  // namespace

MlpBuffers mlp_forward(StepOperations& to, const schedule::BlockTensors& block, const AttentionBuffers& attention,
                       const LayerTerms& terms) {
  const StepSizes& n = to.sizes();
  const bool shares = to.model().norm_places == workload::NormPlaces::kShared;
  MlpBuffers buffers;
  buffers.input = attention.output;
  buffers.norm = block.norm2.exists() ? to.own_input("norm2", terms.norms, n.hidden)
                 : shares             ? attention.norm
                                      : buffers.input;
  if (block.norm2.exists()) buffers.of_norm = to.norm_stats("norm2 stats", terms.rest);
  if (has_mlp(block)) {
    buffers.up = to.all("up", terms.rest, to.up_columns(block));
    buffers.activated = to.all_input("activated", terms.activated, block.mlp_columns);
  }
  buffers.output = to.own("block output", terms.output, n.hidden);

  buffers.branch = branch_output(to, block.post_norm2, terms.rest, buffers.output);
  if (block.norm2.exists()) {
    const schedule::Module module = block.has_experts ? schedule::Module::kNorms : schedule::Module::kMlp;
    const StepOperations::InModule in(to, module, true, block.has_experts ? kSecondNorm : 0);
    to.norm_forward(buffers.input, block.norm2, buffers.norm, buffers.of_norm, terms.norms);
  }
  if (block.has_experts) {
    const StepOperations::InModule in(to, schedule::Module::kExperts);
    mixture_forward(to, block, buffers, terms);
  } else {
    const StepOperations::InModule in(to, schedule::Module::kMlp);
    to.column_forward(buffers.norm, block.up, buffers.up, to.up_columns(block));
    activate(to, block, buffers, terms.activated);
    to.row_forward(buffers.activated, block.down, buffers.branch, block.mlp_columns);
  }
  buffers.of_post_norm = branch_norm(to, block.post_norm2, terms.rest, buffers.branch, buffers.output);
  buffers.branch_mask = to.dropout_forward(buffers.output, kMlpSite, terms.rest);
  to.add(schedule::OpKind::kAdd, {}, {to.own_updates(buffers.output), to.own_reads(buffers.input)});
  return buffers;
}

std::optional<Operand> mlp_backward(StepOperations& to, const schedule::BlockTensors& block, LayerBuffers& layer,
                                    const LayerTerms& terms, BufferId residual_gradient) {
  MlpBuffers& kept = layer.mlp;
  const bool shares = to.model().norm_places == workload::NormPlaces::kShared;
  activate_again(to, block, kept, terms);
  if (shares) {
    first_norm_again(to, block, layer.attention, terms);
    kept.norm = layer.attention.norm;
  }
  const BufferId added = to.branch_gradient(residual_gradient, kept.branch_mask, kMlpSite);
  const BufferId branch = branch_norm_backward(to, block.post_norm2, kept.branch, kept.of_post_norm, added);
  const Operand dnorm = block.has_experts ? mixture_backward(to, block, kept, terms, branch)
                                          : dense_backward(to, block, kept, terms, branch);
  if (shares) return dnorm;
  if (block.norm2.exists()) {
    to.norm_backward(dnorm, kept.input, block.norm2, kept.of_norm, to.own_updates(residual_gradient));
  } else {
    add_gradient(to, dnorm, residual_gradient);
  }
  return std::nullopt;
}

// Full checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost") keeps only the input of each
// group of layers. Before a group's backward its forward is added again: the same operations on the same values, so all
// sums and masks are bitwise equal.

using schedule::Part;
using schedule::Unit;

TransformerStep::TransformerStep(PlanBuilder& builder, ZeroOperations& zero, const schedule::ParameterTable& table,
                                 const workload::Workload& workload, const schedule::Knobs& knobs, BufferId loss)
    : table_(table),
      checkpointing_(knobs.modules ? schedule::Checkpointing::kNone : knobs.checkpointing),
      operations_(builder, zero, workload, knobs),
      vocabulary_(operations_, table, loss),
      layers_(table.blocks.size()) {
  if (!table.mtp.empty()) mtp_ = std::make_unique<MtpLayers>(operations_, vocabulary_, table);
}

TransformerStep::~TransformerStep() = default;

void TransformerStep::begin(const Part& part) {
  operations_.at(part.phase, part.layer);
  if (part.is(Unit::kEmbedding, schedule::Phase::kForward)) vocabulary_.load_batch();
  if (part.is(Unit::kHead, schedule::Phase::kForward)) {
    residual_gradient_ = operations_.own("residual gradient", schedule::Term::kWorkspace, operations_.sizes().hidden);
  }
}

void TransformerStep::add(const Part& part) {
  if (part.begins_use) operations_.zero().begin_use();
  switch (part.unit) {
    case Unit::kEmbedding:
      return add_embedding(part);
    case Unit::kFirstKind:
    case Unit::kSecondKind:
    case Unit::kThirdKind:
    case Unit::kBlock:
      return add_block(part);
    case Unit::kHead:
      return add_head(part);
  }
  assert(false);
}

void TransformerStep::add_embedding(const Part& part) {
  if (part.phase == schedule::Phase::kForward) {
    residual_ = vocabulary_.embed();
  } else {
    vocabulary_.embed_backward(residual_gradient_);
  }
}

void TransformerStep::add_head(const Part& part) {
  if (part.phase == schedule::Phase::kForward) {
    vocabulary_.head(residual_);
    if (mtp_) mtp_->forward(residual_, terms_of_mtp(true));
  } else if (mtp_) {
    mtp_->backward(residual_gradient_, terms_of_mtp(false), checkpointing_ == schedule::Checkpointing::kFull);
  } else {
    vocabulary_.head_backward(0, residual_gradient_);
  }
}

// A layer that predicts a further token is a group of its own.
LayerTerms TransformerStep::terms_of_mtp(bool leaves_output) const {
  if (checkpointing_ != schedule::Checkpointing::kFull)
    return kept_layer(checkpointing_, operations_.model().attention);
  return passing_layer(leaves_output ? schedule::Term::kActivations : schedule::Term::kWorkspace);
}

void TransformerStep::add_block(const Part& part) {
  const schedule::BlockTensors& block = table_.blocks[static_cast<std::size_t>(part.layer)];
  LayerBuffers& buffers = layers_[static_cast<std::size_t>(part.layer)];
  if (part.phase == schedule::Phase::kBackward) {
    return layer_backward(operations_, block, buffers, terms_of(part), residual_gradient_);
  }
  const bool starts_again = part.phase == schedule::Phase::kRecompute && part.in_group == 0;
  if (starts_again) residual_ = buffers.input;
  buffers = layer_forward(operations_, block, residual_, terms_of(part));
  residual_ = buffers.output;
}

LayerTerms TransformerStep::terms_of(const Part& part) const {
  if (checkpointing_ != schedule::Checkpointing::kFull)
    return kept_layer(checkpointing_, operations_.model().attention);
  const bool leaves_checkpoint = part.phase == schedule::Phase::kForward && part.closes_group;
  return passing_layer(leaves_checkpoint ? schedule::Term::kActivations : schedule::Term::kWorkspace);
}

}  // namespace krigtune::plan
