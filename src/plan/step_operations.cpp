// Tensor parallelism as in Megatron (Shoeybi et al. 2019): a rank has 1/t of the heads and of the MLP's columns.
//
//   column-parallel:  Y_r = X W_r^T         backward:  dX = sum_r dY_r W_r    (all-reduce)
//   row-parallel:     Y = sum_r X_r W_r^T   (all-reduce; then the bias)        dX_r = dY W_r
//
// Sequence parallelism (Korthikanti et al. 2022): norms, dropouts and residuals use 1/t of the tokens. Each all-reduce
// becomes a reduce-scatter, and there is an all-gather before each column-parallel product and, in backward, before
// each row-parallel one. Only a rank's part of a column-parallel input is kept; it is gathered again for the weight's
// gradient.
#include "plan/step_operations.h"

#include <utility>

namespace krigtune::plan {
namespace {

StepSizes sizes_of(const workload::ModelSpec& model, const schedule::Knobs& knobs) {
  const std::int64_t t = knobs.tensor_ranks;
  StepSizes sizes;
  sizes.batch = knobs.micro_batch;
  sizes.seq = model.seq_len;
  sizes.rows = sizes.batch * sizes.seq;
  sizes.own_rows = knobs.sequence_parallel ? sizes.rows / t : sizes.rows;
  sizes.hidden = model.hidden;
  sizes.heads = model.heads / t;
  sizes.kv_heads = model.kv_heads / t;
  sizes.queries = model.query_width() / t;
  sizes.attention = model.output_width() / t;
  sizes.qkv = sizes.queries + (model.key_width() + model.value_width()) / t;
  sizes.experts = model.experts.count;
  sizes.expert_rows = knobs.whole_experts ? sizes.own_rows : sizes.rows;
  sizes.routed = sizes.expert_rows * model.experts.per_token;
  sizes.expert_ffn = model.experts.ffn_hidden / knobs.parts_of_expert();
  sizes.expert_hidden = model.expert_hidden();
  sizes.expert_up = (model.gated_mlp ? 2 : 1) * sizes.expert_ffn;
  sizes.vocab = schedule::vocab_rows(model, t);
  return sizes;
}

// The framework leaves the model's code to its user, who mostly takes that of Hugging Face.
bool trains_models_of_transformers(workload::Framework framework) {
  return framework == workload::Framework::kFsdp || framework == workload::Framework::kDeepSpeed;
}

}  // namespace

StepOperations::StepOperations(PlanBuilder& builder, ZeroOperations& zero, const workload::Workload& workload,
                               const schedule::Knobs& knobs)
    : builder_(builder),
      recomputation_(builder, knobs.modules),
      zero_(zero),
      model_(workload.model),
      knobs_(knobs),
      adapter_dropout_(workload.training.lora.dropout),
      copies_adapter_inputs_(adapter_dropout_ > 0.0 || trains_models_of_transformers(workload.framework)),
      adds_adapters_at_once_(workload.framework == workload::Framework::kKrigtune),
      eager_kernels_(workload::has_eager_kernels(workload)),
      type_(schedule::compute_type(workload.precision)),
      input_type_(workload.training.has_narrow_products() ? schedule::DType::kUint8 : type_),
      sizes_(sizes_of(model_, knobs)),
      keeps_expert_outputs_(workload.framework != workload::Framework::kMegatron),
      loss_parts_(workload.training.loss == workload::LossKind::kFused
                      ? workload::fused_loss_parts(model_.vocab, model_.hidden)
                      : 1),
      keeps_keys_beside_values_(trains_models_of_transformers(workload.framework)) {}

void StepOperations::at(schedule::Phase phase, std::int64_t layer) {
  layer_ = layer;
  builder_.at(phase, micro_step_, layer);
  recomputation_.at(phase, micro_step_, layer);
}

BufferId StepOperations::own(std::string name, schedule::Term term, std::int64_t width) {
  return buffer(std::move(name), term, sizes_.own_rows * width, type_);
}

BufferId StepOperations::all(std::string name, schedule::Term term, std::int64_t width) {
  return buffer(std::move(name), term, sizes_.rows * width, type_);
}

BufferId StepOperations::own_input(std::string name, schedule::Term term, std::int64_t width) {
  return buffer(std::move(name), term, sizes_.own_rows * width, input_type_);
}

BufferId StepOperations::all_input(std::string name, schedule::Term term, std::int64_t width) {
  return buffer(std::move(name), term, sizes_.rows * width, input_type_);
}

BufferId StepOperations::buffer(std::string name, schedule::Term term, std::int64_t elems, schedule::DType type) {
  return builder_.buffer(std::move(name), term, elems, type);
}

void StepOperations::add(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands, double scale) {
  recomputation_.emit({kind, false, shape, std::move(operands), scale});
}

void StepOperations::add_on_own(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands) {
  if (!knobs_.sequence_parallel) return add(kind, shape, std::move(operands));
  recomputation_.emit({kind, true, shape, std::move(operands)});
}

void StepOperations::all_reduce(schedule::OpKind kind, std::vector<Operand> wholes) {
  if (knobs_.tensor_ranks == 1) return;
  recomputation_.emit({kind, true, {}, std::move(wholes)});
}

BufferId StepOperations::gathered(BufferId x, const char* name, std::int64_t width, schedule::DType type) {
  if (!knobs_.sequence_parallel) return x;
  const BufferId whole = buffer(name, schedule::Term::kWorkspace, sizes_.rows * width, type);
  recomputation_.emit({schedule::OpKind::kAllGather,
                       true,
                       {},
                       {reads(x, sizes_.own_rows * width), writes(whole, sizes_.rows * width)}});
  return whole;
}

void StepOperations::gather_columns(BufferId part, BufferId y) {
  const std::int64_t elems = sizes_.rows * sizes_.hidden;
  const bool splits_tokens = knobs_.sequence_parallel;
  const BufferId whole = splits_tokens ? all("gathered columns", schedule::Term::kWorkspace, sizes_.hidden) : y;
  const std::int64_t own = elems / knobs_.tensor_ranks;
  recomputation_.emit({schedule::OpKind::kAllGather, true, {}, {reads(part, own), writes(whole, elems)}});
  if (!splits_tokens) return;
  add_on_own(schedule::OpKind::kCopy, {}, {{{whole, 0, own, own}, Access::kRead}, writes(y, own)});
}

BufferId StepOperations::own_columns(BufferId y) {
  const BufferId whole = gathered(y);
  if (knobs_.tensor_ranks == 1) return whole;
  const std::int64_t own = sizes_.rows * sizes_.hidden / knobs_.tensor_ranks;
  const BufferId part = buffer("own columns", schedule::Term::kWorkspace, own, type_);
  recomputation_.emit({schedule::OpKind::kCopy, true, {}, {{{whole, 0, own, own}, Access::kRead}, writes(part, own)}});
  return part;
}

Operand StepOperations::reduced(BufferId x, std::int64_t width) {
  const std::int64_t elems = sizes_.rows * width;
  if (!knobs_.sequence_parallel) {
    all_reduce(schedule::OpKind::kAllReduce, {updates(x, elems)});
    return reads(x, elems);
  }
  recomputation_.emit({schedule::OpKind::kReduceScatter, true, {}, {updates(x, elems)}});
  const std::int64_t part = elems / knobs_.tensor_ranks;
  return {{x, 0, part, part}, Access::kRead};
}

KeptByNorm StepOperations::norm_stats(std::string name, schedule::Term term) {
  return {.stats = buffer(std::move(name), term, stats_elems(), schedule::DType::kFp32)};
}

// A frozen gain has no gradient, for which eager kernels would keep what it multiplies.
bool StepOperations::keeps_normalised(const schedule::NormTensors& norm) const {
  return eager_kernels_ && !subtracts_mean() && !norm.is_plain && zero_.trains(norm.gain);
}

Operand StepOperations::stats_operand(BufferId stats, Access access) const {
  return {{stats, 0, stats_elems(), 0}, access};
}

// PyTorch has layer norms as one kernel. Of an RMS norm, eager kernels cast the input to fp32, divide it by its rms,
// cast it back and multiply it by the gain (LlamaRMSNorm in transformers; measured: experiments/kept).
void StepOperations::norm_forward(BufferId x, const schedule::NormTensors& norm, BufferId y, KeptByNorm& kept,
                                  schedule::Term term) {
  const std::int64_t elems = sizes_.own_rows * sizes_.hidden;
  const bool casts = eager_kernels_ && !subtracts_mean() && type_ != schedule::DType::kFp32;
  if (casts) {
    kept.input = buffer("norm input in fp32", term, elems, schedule::DType::kFp32);
    add(schedule::OpKind::kCopy, {}, {own_reads(x), writes(kept.input, elems)});
  }
  std::vector<Operand> operands = {own_reads(casts ? kept.input : x), writes(y, elems),
                                   stats_operand(kept.stats, Access::kWrite)};
  if (!norm.is_plain) operands.push_back(zero_.parameter(norm.gain));
  if (norm.bias != schedule::kNoTensor) operands.push_back(zero_.parameter(norm.bias));
  if (keeps_normalised(norm)) {
    kept.normalised = own("normalised", term, sizes_.hidden);
    operands.push_back(writes(kept.normalised, elems));
  }
  add(subtracts_mean() ? schedule::OpKind::kLayerNormForward : schedule::OpKind::kRmsNormForward, own_shape(),
      std::move(operands));
}

void StepOperations::norm_backward(const Operand& dy, BufferId x, const schedule::NormTensors& norm,
                                   const KeptByNorm& kept, const Operand& dx) {
  std::vector<Operand> operands = {dy, own_reads(kept.input >= 0 ? kept.input : x),
                                   stats_operand(kept.stats, Access::kRead), dx};
  const bool trains = !norm.is_plain && zero_.trains(norm.gain);
  const bool has_bias = norm.bias != schedule::kNoTensor;
  if (!norm.is_plain) operands.push_back(zero_.parameter(norm.gain));
  if (trains) operands.push_back(zero_.gradient(norm.gain));
  if (trains && has_bias) operands.push_back(zero_.gradient(norm.bias));
  if (kept.normalised >= 0) operands.push_back(own_reads(kept.normalised));
  add_on_own(subtracts_mean() ? schedule::OpKind::kLayerNormBackward : schedule::OpKind::kRmsNormBackward, own_shape(),
             std::move(operands));
  if (trains) zero_.gradient_done(norm.gain);
  if (trains && has_bias) zero_.gradient_done(norm.bias);
}

void StepOperations::others_forward(int tensor) {
  if (tensor == schedule::kNoTensor) return;
  const Operand parameter = zero_.parameter(tensor);
  const BufferId used = buffer("other parameters", schedule::Term::kWorkspace, parameter.range.elems, type_);
  add(schedule::OpKind::kCopy, {}, {parameter, writes(used, parameter.range.elems)});
}

void StepOperations::others_backward(int tensor) {
  if (tensor == schedule::kNoTensor || !zero_.trains(tensor)) return;
  const Operand parameter = zero_.parameter(tensor);
  const BufferId found = buffer("their gradient", schedule::Term::kWorkspace, parameter.range.elems, type_);
  add(schedule::OpKind::kCopy, {}, {parameter, writes(found, parameter.range.elems)});
  add(schedule::OpKind::kAccumulate, {}, {reads(found, parameter.range.elems), zero_.gradient(tensor)});
  zero_.gradient_done(tensor);
}

void StepOperations::linear_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t inner,
                                    std::int64_t outer) {
  product_forward(x, linear, y, {.rows = sizes_.rows, .inner = inner, .outer = outer});
  for (const schedule::AdapterTensors& adapter : linear.adapters) adapter_forward(adapter, x, y, inner, outer);
}

void StepOperations::product_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y,
                                     const Shape& shape) {
  std::vector<Operand> operands = {reads(x, shape.rows * shape.inner), weight_of(linear, shape.outer * shape.inner),
                                   writes(y, shape.rows * shape.outer)};
  if (linear.bias != schedule::kNoTensor) operands.push_back(zero_.parameter(linear.bias));
  add(schedule::OpKind::kLinearForward, shape, std::move(operands));
}

void StepOperations::own_linear_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y,
                                        std::int64_t inner, std::int64_t outer) {
  product_forward(x, linear, y, {.rows = sizes_.own_rows, .inner = inner, .outer = outer});
}

// A quantised weight is restored before each use.
Operand StepOperations::weight_of(const schedule::LinearTensors& linear, std::int64_t elems) {
  if (!linear.packed) return zero_.parameter(linear.weight);
  const BufferId restored = buffer("restored weight", schedule::Term::kGatheredParameters, elems, type_);
  add(schedule::OpKind::kDequantize, {.inner = elems}, {zero_.parameter(linear.weight), writes(restored, elems)});
  return reads(restored, elems);
}

void StepOperations::linear_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, BufferId dx,
                                     std::int64_t inner, std::int64_t outer) {
  const Shape shape{.rows = sizes_.rows, .inner = inner, .outer = outer};
  product_backward_weight(dy, x, linear, shape);
  add(schedule::OpKind::kLinearBackwardInput, shape,
      {reads(dy, sizes_.rows * outer), weight_of(linear, outer * inner), writes(dx, sizes_.rows * inner)});
  for (const schedule::AdapterTensors& adapter : linear.adapters) adapter_backward(adapter, dy, x, dx, inner, outer);
}

void StepOperations::own_linear_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear,
                                         const Operand& dx, std::int64_t inner, std::int64_t outer) {
  const Shape shape{.rows = sizes_.own_rows, .inner = inner, .outer = outer};
  product_backward_weight(dy, x, linear, shape);
  add_on_own(schedule::OpKind::kLinearBackwardInput, shape,
             {reads(dy, sizes_.own_rows * outer), weight_of(linear, outer * inner), dx});
}

void StepOperations::product_backward_weight(BufferId dy, BufferId x, const schedule::LinearTensors& linear,
                                             const Shape& shape) {
  if (zero_.trains(linear.weight)) {
    std::vector<Operand> operands = {reads(dy, shape.rows * shape.outer), reads(x, shape.rows * shape.inner),
                                     zero_.gradient(linear.weight)};
    if (linear.bias != schedule::kNoTensor) operands.push_back(zero_.gradient(linear.bias));
    add(schedule::OpKind::kLinearBackwardWeight, shape, std::move(operands));
    zero_.gradient_done(linear.weight);
    if (linear.bias != schedule::kNoTensor) zero_.gradient_done(linear.bias);
  }
}

// The product with B, of the columns of y, and of its gradient, that are the adapter's. Frameworks have queries, keys
// and values in tensors of their own: there these columns are taken as one range.
StepOperations::AdaptedOutput StepOperations::adapted(BufferId y, const schedule::AdapterTensors& adapter,
                                                      std::int64_t outer, Access access) const {
  AdaptedOutput output{{.rows = sizes_.rows, .inner = adapter.rank, .outer = adapter.outputs}, {{}, access}};
  output.y.range = {y, sizes_.rows * adapter.begin_outputs, sizes_.rows * adapter.outputs, 0};
  if (!adds_adapters_at_once_ || adapter.outputs == outer) return output;
  output.shape.begin = adapter.begin_outputs;
  output.shape.width = outer;
  output.y.range = {y, 0, sizes_.rows * outer, 0};
  return output;
}

// Tensor ranks that have a part of the inputs draw the part of the mask that is theirs.
Shape StepOperations::adapter_dropout_shape(const schedule::AdapterTensors& adapter, std::int64_t inner) const {
  using workload::AdaptedLayer;
  const bool splits_inputs = adapter.layer == AdaptedLayer::kOutput || adapter.layer == AdaptedLayer::kDown;
  Shape shape{.batch = sizes_.batch, .seq = sizes_.seq, .rows = sizes_.rows, .inner = inner};
  shape.width = splits_inputs ? inner * knobs_.tensor_ranks : 0;
  shape.site = kFirstAdapterSite + static_cast<std::int32_t>(adapter.layer);
  shape.dropout = adapter_dropout_;
  return shape;
}

// y += B (A x). Each adapter has a dropout of its own, and PEFT's adapters have fp32 weights and cast x to them and
// back, so that each keeps its own input (measured with PEFT 0.21: experiments/kept).
void StepOperations::adapter_forward(const schedule::AdapterTensors& adapter, BufferId x, BufferId y,
                                     std::int64_t inner, std::int64_t outer) {
  using schedule::OpKind;
  const std::int64_t rows = sizes_.rows;
  const schedule::Term kept = knobs_.checkpointing == schedule::Checkpointing::kFull ? schedule::Term::kWorkspace
                                                                                     : schedule::Term::kActivations;
  AdapterBuffers& buffers = adapters_[adapter.a];
  buffers = {};
  if (copies_adapter_inputs_) {
    buffers.input = all("adapter input", kept, inner);
    add(OpKind::kCopy, {}, {reads(x, rows * inner), writes(buffers.input, rows * inner)});
  }
  if (adapter_dropout_ > 0.0) {
    buffers.mask = buffer("adapter mask", kept, rows * inner, schedule::DType::kUint8);
    add(OpKind::kDropoutForward, adapter_dropout_shape(adapter, inner),
        {updates(buffers.input, rows * inner), writes(buffers.mask, rows * inner)});
  }
  const BufferId input = buffers.input >= 0 ? buffers.input : x;
  buffers.hidden = all("adapter hidden", kept, adapter.rank);
  add(OpKind::kLinearForward, {.rows = rows, .inner = inner, .outer = adapter.rank},
      {reads(input, rows * inner), zero_.parameter(adapter.a), writes(buffers.hidden, rows * adapter.rank)});
  const Operand hidden = reads(buffers.hidden, rows * adapter.rank);
  const AdaptedOutput to = adapted(y, adapter, outer, Access::kReadWrite);
  if (adds_adapters_at_once_) return add(OpKind::kLinearForward, to.shape, {hidden, zero_.parameter(adapter.b), to.y});
  const BufferId output = all("adapter output", schedule::Term::kWorkspace, adapter.outputs);
  add(OpKind::kLinearForward, to.shape, {hidden, zero_.parameter(adapter.b), writes(output, rows * adapter.outputs)});
  add(OpKind::kAdd, {}, {to.y, reads(output, rows * adapter.outputs)});
}

// dB = dy^T (A x), d(A x) = dy B, dA = d(A x)^T x, dx += d(A x) A.
void StepOperations::adapter_backward(const schedule::AdapterTensors& adapter, BufferId dy, BufferId x, BufferId dx,
                                      std::int64_t inner, std::int64_t outer) {
  using schedule::OpKind;
  const std::int64_t rows = sizes_.rows;
  const AdapterBuffers& kept = adapters_.at(adapter.a);
  const auto [up, gradient] = adapted(dy, adapter, outer, Access::kRead);
  const Shape down{.rows = rows, .inner = inner, .outer = adapter.rank};
  const BufferId dhidden = all("adapter hidden gradient", schedule::Term::kWorkspace, adapter.rank);
  add(OpKind::kLinearBackwardWeight, up,
      {gradient, reads(kept.hidden, rows * adapter.rank), zero_.gradient(adapter.b)});
  zero_.gradient_done(adapter.b);
  add(OpKind::kLinearBackwardInput, up, {gradient, zero_.parameter(adapter.b), writes(dhidden, rows * adapter.rank)});
  const Operand dh = reads(dhidden, rows * adapter.rank);
  const BufferId input = kept.input >= 0 ? kept.input : x;
  add(OpKind::kLinearBackwardWeight, down, {dh, reads(input, rows * inner), zero_.gradient(adapter.a)});
  zero_.gradient_done(adapter.a);
  if (kept.mask < 0) {
    return add(OpKind::kLinearBackwardInput, down, {dh, zero_.parameter(adapter.a), updates(dx, rows * inner)});
  }
  const BufferId dinput = all("adapter input gradient", schedule::Term::kWorkspace, inner);
  add(OpKind::kLinearBackwardInput, down, {dh, zero_.parameter(adapter.a), writes(dinput, rows * inner)});
  add(OpKind::kDropoutBackward, adapter_dropout_shape(adapter, inner),
      {updates(dinput, rows * inner), reads(kept.mask, rows * inner)});
  add(OpKind::kAdd, {}, {updates(dx, rows * inner), reads(dinput, rows * inner)});
}

BufferId StepOperations::column_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y,
                                        std::int64_t outer) {
  const BufferId input = gathered(x);
  linear_forward(input, linear, y, sizes_.hidden, outer);
  return input;
}

Operand StepOperations::column_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear,
                                        std::int64_t outer, const char* name) {
  const BufferId input = reads_input_again(linear) ? gathered(x) : x;
  const BufferId dx = all(name, schedule::Term::kWorkspace, sizes_.hidden);
  linear_backward(dy, input, linear, dx, sizes_.hidden, outer);
  return reduced(dx);
}

void StepOperations::row_forward(BufferId x, const schedule::LinearTensors& linear, BufferId y, std::int64_t inner) {
  if (knobs_.tensor_ranks == 1) return linear_forward(x, linear, y, inner, sizes_.hidden);
  const BufferId sums = sums_for(y);
  linear_forward(x, row_product(linear), sums, inner, sizes_.hidden);
  reduce_sums(sums, y);
  add_row_bias(linear, y);
}

schedule::LinearTensors StepOperations::row_product(const schedule::LinearTensors& linear) const {
  return knobs_.tensor_ranks == 1 ? linear : linear.without_bias();
}

void StepOperations::add_row_bias(const schedule::LinearTensors& linear, BufferId y) {
  if (knobs_.tensor_ranks == 1 || linear.bias == schedule::kNoTensor) return;
  add(schedule::OpKind::kAddBias, own_shape(), {own_updates(y), zero_.parameter(linear.bias)});
}

void StepOperations::row_bias_backward(const schedule::LinearTensors& linear, BufferId dy) {
  if (knobs_.tensor_ranks == 1 || linear.bias == schedule::kNoTensor || !zero_.trains(linear.bias)) return;
  add(schedule::OpKind::kBiasBackward, own_shape(), {own_reads(dy), zero_.gradient(linear.bias)});
  zero_.gradient_done(linear.bias);
}

// Without sequence parallelism own tokens are all tokens.
BufferId StepOperations::sums_for(BufferId y) {
  return knobs_.sequence_parallel ? all("partial sums", schedule::Term::kWorkspace, sizes_.hidden) : y;
}

void StepOperations::reduce_sums(BufferId sums, BufferId y) {
  const Operand sum = reduced(sums);
  if (sums != y) add_on_own(schedule::OpKind::kCopy, {}, {sum, writes(y, sizes_.own_rows * sizes_.hidden)});
}

void StepOperations::row_backward(BufferId dy, BufferId x, const schedule::LinearTensors& linear, BufferId dx,
                                  std::int64_t inner) {
  row_bias_backward(linear, dy);
  linear_backward(gathered(dy), x, row_product(linear), dx, inner, sizes_.hidden);
}

BufferId StepOperations::activate(BufferId up, BufferId activated, std::int64_t rows, std::int64_t width,
                                  schedule::Term term) {
  const bool gated = model_.gated_mlp;
  std::vector<Operand> operands = {reads(up, (gated ? 2 : 1) * rows * width), writes(activated, rows * width)};
  const BufferId gate = gated && eager_kernels_ ? buffer("activated gate", term, rows * width, type_) : -1;
  if (gate >= 0) operands.push_back(writes(gate, rows * width));
  add(gated ? schedule::OpKind::kSwigluForward : schedule::OpKind::kGeluForward, {.rows = rows, .inner = width},
      std::move(operands));
  return gate;
}

BufferId StepOperations::activation_backward(BufferId up, BufferId gate, BufferId dactivated, std::int64_t rows,
                                             std::int64_t width, const char* name) {
  const Shape shape{.rows = rows, .inner = width};
  if (!model_.gated_mlp) {
    add(schedule::OpKind::kGeluBackward, shape, {reads(up, rows * width), updates(dactivated, rows * width)});
    return dactivated;
  }
  const BufferId dup = buffer(name, schedule::Term::kWorkspace, 2 * rows * width, type_);
  std::vector<Operand> operands = {reads(up, 2 * rows * width), reads(dactivated, rows * width),
                                   writes(dup, 2 * rows * width)};
  if (gate >= 0) operands.push_back(reads(gate, rows * width));
  add(schedule::OpKind::kSwigluBackward, shape, std::move(operands));
  return dup;
}

Shape StepOperations::dropout_shape(std::int32_t site) const {
  Shape shape = own_shape();
  shape.batch = sizes_.batch;
  shape.seq = sizes_.seq;
  shape.site = site;
  shape.dropout = model_.dropout;
  return shape;
}

BufferId StepOperations::dropout_forward(BufferId y, std::int32_t site, schedule::Term term) {
  if (!drops()) return -1;
  const std::int64_t elems = sizes_.own_rows * sizes_.hidden;
  const BufferId mask = buffer("dropout mask", term, elems, schedule::DType::kUint8);
  add(schedule::OpKind::kDropoutForward, dropout_shape(site), {own_updates(y), writes(mask, elems)});
  return mask;
}

BufferId StepOperations::branch_gradient(BufferId residual_gradient, BufferId mask, std::int32_t site) {
  if (!drops()) return residual_gradient;
  const std::int64_t elems = sizes_.own_rows * sizes_.hidden;
  const BufferId gradient = own("branch gradient", schedule::Term::kWorkspace, sizes_.hidden);
  add(schedule::OpKind::kCopy, {}, {own_reads(residual_gradient), writes(gradient, elems)});
  add(schedule::OpKind::kDropoutBackward, dropout_shape(site), {own_updates(gradient), reads(mask, elems)});
  return gradient;
}

}  // namespace krigtune::plan
