#include "cost/time/block_time.h"

#include <algorithm>

#include "plan/op_traits.h"

namespace krigtune::cost {
namespace {

using schedule::OpKind;

// Megatron Core adds p b to the outputs of an expert with bias b, for the weights p of its tokens, which are fp32
// (megatron/core/transformer/moe/experts.py, _apply_bias). For each number of the outputs PyTorch's kernels write the
// product (4 bytes), read both and write the sum (2 + 4 + 4), join the experts' (4 + 4) and round (4 + 2); backward:
// they convert the gradient (2 + 4) and that of the output (4 + 2), multiply it by p and by b and sum (twice 4 + 4 +
// 4), and join (2 + 2).
constexpr double kBiasBytes = 28.0;
constexpr double kBiasGradientBytes = 40.0;

bool is_attention(OpKind kind) { return kind == OpKind::kAttentionForward; }
bool is_mixer(OpKind kind) { return kind == OpKind::kMambaForward || kind == OpKind::kDeltaForward; }

// "blocks.0.qkv.weight" is a weight "qkv".
bool is_weight(std::string_view name, std::string_view of) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return false;
  name.remove_suffix(kWeight.size());
  if (!name.ends_with(of)) return false;
  return name.size() == of.size() || name[name.size() - of.size() - 1] == '.';
}

bool is_any_weight(std::string_view name, std::initializer_list<std::string_view> of) {
  return std::ranges::any_of(of, [&](std::string_view one) { return is_weight(name, one); });
}

Machine with_products(const Machine& machine, std::optional<workload::ClassRate> rate) {
  Machine other = machine;
  other.narrow_products = rate;
  return other;
}

}  // namespace

BlockTime::BlockTime(const workload::Workload& workload, const Machine& machine, const plan::StepPlan& plan)
    : machine_(machine), plan_(plan), precise_(workload.training.precise) {
  adds_biases_ = machine.separate_experts && workload.model.has_experts() && workload.model.has_mlp_bias();
  if (!machine.narrow_products) return;
  full_ = with_products(machine, std::nullopt);
  constexpr double kFp8Times = 2.0;  // the rate of 16 bits
  workload::ClassRate fp8 = machine.rate(workload::OpClass::kProduct);
  fp8.flops_per_s *= kFp8Times;
  fp8.half_flops *= kFp8Times;
  if (fp8.flops_per_s < machine.narrow_products->flops_per_s) fp8_ = with_products(machine, fp8);
  const auto layers = static_cast<double>(std::max<std::int64_t>(1, workload.model.layers));
  last_share_ = std::min(1.0, static_cast<double>(precise_.last_layers) / layers);
  for (const plan::Operation& operation : plan.operations) {
    if (is_attention(operation.kind)) attention_.insert(operation.layer);
    if (is_mixer(operation.kind)) mixed_.insert(operation.layer);
  }
}

// The name of the matrix that a product reads, or whose gradient it makes.
std::string_view BlockTime::weight_of(const plan::Operation& operation) const {
  for (const plan::Operand& operand : operation.operands) {
    const plan::Buffer& buffer = plan_.buffers[static_cast<std::size_t>(operand.range.buffer)];
    const bool is_tensor = buffer.term == schedule::Term::kParameters || buffer.term == schedule::Term::kGradients;
    if (!buffer.persistent || !is_tensor) continue;
    return plan_.tensors[static_cast<std::size_t>(plan_.tensor_at(buffer.term, operand.range.begin_elems))].name;
  }
  return {};
}

BlockTime::Width BlockTime::width_of(const plan::Operation& operation) const {
  const std::string_view name = weight_of(operation);
  if (is_weight(name, "router")) return Width::kFull;  // in the model's type or fp32, in all frameworks
  if (precise_.latents && is_any_weight(name, {"to_latent", "from_latent"})) return Width::kFull;
  const bool of_attention =
      attention_.contains(operation.layer) && is_any_weight(name, {"qkv", "out", "q_down", "q_up", "kv_down", "kv_up"});
  if (precise_.attention && of_attention) return Width::kFull;
  const bool of_mixer = mixed_.contains(operation.layer) && is_weight(name, "out");
  return precise_.mixer_outputs && of_mixer && fp8_ ? Width::kFp8 : Width::kAsOthers;
}

double BlockTime::biases_s(const plan::Operation& operation) const {
  const bool forward = operation.kind == OpKind::kCombineForward;
  if (!adds_biases_ || !(forward || operation.kind == OpKind::kCombineBackward)) return 0.0;
  const plan::Shape& shape = operation.shape;
  const auto elems = static_cast<double>(shape.rows * shape.inner * shape.outer);
  return kernel_time_s(machine_, workload::OpClass::kMemory, 0.0, (forward ? kBiasBytes : kBiasGradientBytes) * elems);
}

double BlockTime::seconds(const plan::Operation& operation) const {
  if (!full_ || operation.layer < 0 || !plan::is_matrix_product(operation.kind))
    return operation_time_s(machine_, plan_, operation) + biases_s(operation);
  const Width width = width_of(operation);
  const double full_s = operation_time_s(*full_, plan_, operation);
  if (width == Width::kFull) return full_s;
  const double narrow_s = operation_time_s(width == Width::kFp8 ? *fp8_ : machine_, plan_, operation);
  return (1.0 - last_share_) * narrow_s + last_share_ * full_s;
}

}  // namespace krigtune::cost
