#include "gpt_step.h"

namespace krigtune {

std::vector<std::vector<int>> unit_uses(const ParameterTable& table) {
  std::vector<std::vector<int>> uses = {{table.table, table.positions}};
  for (const BlockTensors& b : table.blocks) {
    uses.push_back({b.norm1_gain, b.norm1_bias, b.qkv_weight, b.qkv_bias, b.out_weight, b.out_bias, b.norm2_gain,
                    b.norm2_bias, b.up_weight, b.up_bias, b.down_weight, b.down_bias});
  }
  uses.push_back({table.final_gain, table.final_bias, table.table});
  const std::vector<std::vector<int>> backward(uses.rbegin(), uses.rend());
  uses.insert(uses.end(), backward.begin(), backward.end());
  return uses;
}

std::vector<int> gradient_ready_order(const ParameterTable& table) {
  std::vector<int> order = {table.final_gain, table.final_bias};
  for (auto b = table.blocks.rbegin(); b != table.blocks.rend(); ++b) {
    order.insert(order.end(), {b->down_weight, b->down_bias, b->up_weight, b->up_bias, b->norm2_gain, b->norm2_bias,
                               b->out_weight, b->out_bias, b->qkv_weight, b->qkv_bias, b->norm1_gain, b->norm1_bias});
  }
  order.insert(order.end(), {table.positions, table.table});
  return order;
}

GptStep::GptStep(PlanBuilder& builder, ZeroSchedule& zero, const ParameterTable& table, const ModelSpec& model,
                 const Knobs& knobs, std::int64_t ranks, BufferId loss)
    : builder_(builder),
      zero_(zero),
      table_(table),
      model_(model),
      rows_(knobs.micro_batch * model.seq_len),
      batch_(knobs.micro_batch),
      // Gradients of the mean over all tokens of the step, so that sums over rows, micro-steps and ranks need no
      // division.
      loss_scale_(1.0 / static_cast<double>(rows_ * knobs.micro_steps * ranks)),
      loss_(loss) {}

void GptStep::add_micro_step(std::int64_t micro_step) {
  micro_step_ = micro_step;
  builder_.at(Phase::kForward, micro_step);
  BufferId x = embed();
  std::vector<Kept> kept(table_.blocks.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    builder_.at(Phase::kForward, micro_step, static_cast<std::int64_t>(i));
    x = block_forward(table_.blocks[i], x, kept[i]);
  }
  const BufferId residual_gradient = work("residual gradient", model_.hidden);
  head(x, residual_gradient);
  for (std::size_t i = kept.size(); i > 0; --i) {
    builder_.at(Phase::kBackward, micro_step, static_cast<std::int64_t>(i) - 1);
    block_backward(table_.blocks[i - 1], kept[i - 1], residual_gradient);
  }
  builder_.at(Phase::kBackward, micro_step);
  embed_backward(residual_gradient);
  zero_.end_micro_step();
}

BufferId GptStep::activation(const char* name, std::int64_t width_elems) {
  return builder_.buffer(name, Term::kActivations, rows_ * width_elems);
}

BufferId GptStep::work(const char* name, std::int64_t width_elems) {
  return builder_.buffer(name, Term::kWorkspace, rows_ * width_elems);
}

void GptStep::norm_forward(BufferId x, int gain, int bias, BufferId y, BufferId stats) {
  const std::int64_t elems = rows_ * model_.hidden;
  builder_.add(
      OpKind::kLayerNormForward, Stream::kCompute, {.rows = rows_, .inner = model_.hidden},
      {reads(x, elems), zero_.parameter(gain), zero_.parameter(bias), writes(y, elems), writes(stats, 2 * rows_)});
}

void GptStep::norm_backward(BufferId dy, BufferId x, int gain, int bias, BufferId stats, Operand dx) {
  const std::int64_t elems = rows_ * model_.hidden;
  builder_.add(OpKind::kLayerNormBackward, Stream::kCompute, {.rows = rows_, .inner = model_.hidden},
               {reads(dy, elems), reads(x, elems), zero_.parameter(gain), reads(stats, 2 * rows_), dx,
                zero_.gradient(gain), zero_.gradient(bias)});
  zero_.gradient_done(gain);
  zero_.gradient_done(bias);
}

void GptStep::linear_forward(BufferId x, int weight, int bias, BufferId y, std::int64_t inner, std::int64_t outer) {
  builder_.add(OpKind::kLinearForward, Stream::kCompute, {.rows = rows_, .inner = inner, .outer = outer},
               {reads(x, rows_ * inner), zero_.parameter(weight), writes(y, rows_ * outer), zero_.parameter(bias)});
}

void GptStep::linear_backward(BufferId dy, BufferId x, int weight, int bias, BufferId dx, std::int64_t inner,
                              std::int64_t outer) {
  const Shape shape{.rows = rows_, .inner = inner, .outer = outer};
  builder_.add(OpKind::kLinearBackwardWeight, Stream::kCompute, shape,
               {reads(dy, rows_ * outer), reads(x, rows_ * inner), zero_.gradient(weight), zero_.gradient(bias)});
  zero_.gradient_done(weight);
  zero_.gradient_done(bias);
  builder_.add(OpKind::kLinearBackwardInput, Stream::kCompute, shape,
               {reads(dy, rows_ * outer), zero_.parameter(weight), writes(dx, rows_ * inner)});
}

BufferId GptStep::embed() {
  tokens_ = builder_.buffer("tokens", Term::kInputs, rows_, DType::kInt32);
  targets_ = builder_.buffer("targets", Term::kInputs, rows_, DType::kInt32);
  builder_.add(OpKind::kLoadBatch, Stream::kCompute, {.batch = batch_, .seq = model_.seq_len, .outer = model_.vocab},
               {writes(tokens_, rows_), writes(targets_, rows_)});
  zero_.begin_use();
  const std::int64_t h = model_.hidden;
  const BufferId x = activation("embedding", h);
  builder_.add(OpKind::kEmbeddingForward, Stream::kCompute, {.rows = rows_, .inner = h, .outer = model_.vocab},
               {reads(tokens_, rows_), zero_.parameter(table_.table), writes(x, rows_ * h)});
  builder_.add(OpKind::kPositionsForward, Stream::kCompute,
               {.batch = batch_, .seq = model_.seq_len, .rows = rows_, .inner = h},
               {updates(x, rows_ * h), zero_.parameter(table_.positions)});
  return x;
}

BufferId GptStep::block_forward(const BlockTensors& block, BufferId input, Kept& kept) {
  zero_.begin_use();
  const std::int64_t h = model_.hidden;
  const std::int64_t f = model_.ffn_hidden;
  const std::int64_t s = model_.seq_len;
  kept = {.input = input,
          .norm1 = activation("norm1", h),
          .stats1 = activation("norm1 stats", 2),
          .qkv = activation("qkv", 3 * h),
          .attention = activation("attention", h),
          .logsumexp = activation("logsumexp", model_.heads),
          .middle = activation("middle", h),
          .norm2 = activation("norm2", h),
          .stats2 = activation("norm2 stats", 2),
          .up = activation("up", f),
          .activated = activation("activated", f)};
  norm_forward(input, block.norm1_gain, block.norm1_bias, kept.norm1, kept.stats1);
  linear_forward(kept.norm1, block.qkv_weight, block.qkv_bias, kept.qkv, h, 3 * h);
  builder_.add(OpKind::kAttentionForward, Stream::kCompute,
               {.batch = batch_, .seq = s, .heads = model_.heads, .kv_heads = model_.heads, .inner = h},
               {reads(kept.qkv, rows_ * 3 * h), writes(kept.attention, rows_ * h),
                writes(kept.logsumexp, rows_ * model_.heads)});
  linear_forward(kept.attention, block.out_weight, block.out_bias, kept.middle, h, h);
  builder_.add(OpKind::kAdd, Stream::kCompute, {}, {updates(kept.middle, rows_ * h), reads(input, rows_ * h)});
  norm_forward(kept.middle, block.norm2_gain, block.norm2_bias, kept.norm2, kept.stats2);
  linear_forward(kept.norm2, block.up_weight, block.up_bias, kept.up, h, f);
  builder_.add(OpKind::kGeluForward, Stream::kCompute, {.rows = rows_, .inner = f},
               {reads(kept.up, rows_ * f), writes(kept.activated, rows_ * f)});
  const BufferId output = activation("block output", h);
  linear_forward(kept.activated, block.down_weight, block.down_bias, output, f, h);
  builder_.add(OpKind::kAdd, Stream::kCompute, {}, {updates(output, rows_ * h), reads(kept.middle, rows_ * h)});
  return output;
}

void GptStep::block_backward(const BlockTensors& block, const Kept& kept, BufferId residual_gradient) {
  zero_.begin_use();
  const std::int64_t h = model_.hidden;
  const std::int64_t f = model_.ffn_hidden;
  const std::int64_t s = model_.seq_len;
  const Operand residual = updates(residual_gradient, rows_ * h);
  const BufferId dup = work("up gradient", f);
  linear_backward(residual_gradient, kept.activated, block.down_weight, block.down_bias, dup, f, h);
  builder_.add(OpKind::kGeluBackward, Stream::kCompute, {.rows = rows_, .inner = f},
               {reads(kept.up, rows_ * f), updates(dup, rows_ * f)});
  const BufferId dnorm2 = work("norm2 gradient", h);
  linear_backward(dup, kept.norm2, block.up_weight, block.up_bias, dnorm2, h, f);
  norm_backward(dnorm2, kept.middle, block.norm2_gain, block.norm2_bias, kept.stats2, residual);
  const BufferId dattention = work("attention gradient", h);
  linear_backward(residual_gradient, kept.attention, block.out_weight, block.out_bias, dattention, h, h);
  const BufferId dqkv = work("qkv gradient", 3 * h);
  builder_.add(OpKind::kAttentionBackward, Stream::kCompute,
               {.batch = batch_, .seq = s, .heads = model_.heads, .kv_heads = model_.heads, .inner = h},
               {reads(dattention, rows_ * h), reads(kept.qkv, rows_ * 3 * h), reads(kept.attention, rows_ * h),
                reads(kept.logsumexp, rows_ * model_.heads), writes(dqkv, rows_ * 3 * h)});
  const BufferId dnorm1 = work("norm1 gradient", h);
  linear_backward(dqkv, kept.norm1, block.qkv_weight, block.qkv_bias, dnorm1, h, 3 * h);
  norm_backward(dnorm1, kept.input, block.norm1_gain, block.norm1_bias, kept.stats1, residual);
}

// Forward, loss and backward of the final norm and the tied head.
void GptStep::head(BufferId input, BufferId residual_gradient) {
  const std::int64_t h = model_.hidden;
  const std::int64_t v = model_.vocab;
  const Shape shape{.rows = rows_, .inner = h, .outer = v};
  builder_.at(Phase::kForward, micro_step_);
  zero_.begin_use();
  const BufferId normed = activation("final norm", h);
  const BufferId stats = activation("final norm stats", 2);
  norm_forward(input, table_.final_gain, table_.final_bias, normed, stats);
  const BufferId logits = builder_.buffer("logits", Term::kLogits, rows_ * v);
  builder_.add(OpKind::kLinearForward, Stream::kCompute, shape,
               {reads(normed, rows_ * h), zero_.parameter(table_.table), writes(logits, rows_ * v)});
  const Operand loss{{loss_, micro_step_, 1, 0}, Access::kWrite};
  builder_.add(OpKind::kCrossEntropy, Stream::kCompute, {.rows = rows_, .outer = v},
               {updates(logits, rows_ * v), reads(targets_, rows_), loss}, loss_scale_);

  builder_.at(Phase::kBackward, micro_step_);
  zero_.begin_use();
  builder_.add(OpKind::kLinearBackwardWeight, Stream::kCompute, shape,
               {reads(logits, rows_ * v), reads(normed, rows_ * h), zero_.gradient(table_.table)});
  const BufferId dnormed = work("final norm gradient", h);
  builder_.add(OpKind::kLinearBackwardInput, Stream::kCompute, shape,
               {reads(logits, rows_ * v), zero_.parameter(table_.table), writes(dnormed, rows_ * h)});
  norm_backward(dnormed, input, table_.final_gain, table_.final_bias, stats, writes(residual_gradient, rows_ * h));
}

void GptStep::embed_backward(BufferId residual_gradient) {
  zero_.begin_use();
  const std::int64_t h = model_.hidden;
  std::vector<Operand> positions = {reads(residual_gradient, rows_ * h), zero_.gradient(table_.positions)};
  if (zero_.sharded_parameters()) positions.push_back(zero_.parameter(table_.positions));
  builder_.add(OpKind::kPositionsBackward, Stream::kCompute,
               {.batch = batch_, .seq = model_.seq_len, .rows = rows_, .inner = h}, std::move(positions));
  zero_.gradient_done(table_.positions);
  std::vector<Operand> table = {reads(tokens_, rows_), reads(residual_gradient, rows_ * h),
                                zero_.gradient(table_.table)};
  // Held as every unit is held through its backward.
  if (zero_.sharded_parameters()) table.push_back(zero_.parameter(table_.table));
  builder_.add(OpKind::kEmbeddingBackward, Stream::kCompute, {.rows = rows_, .inner = h, .outer = model_.vocab},
               std::move(table));
  zero_.gradient_done(table_.table);
}

}  // namespace krigtune
