#include "krigtune/plan/step_plan.h"

#include <array>

namespace krigtune {
namespace {

// In the order of the enumerators.
constexpr std::array<const char*, kTermCount> kTermNames = {
    "parameters", "gradients", "optimizer_state", "gathered_parameters", "reduce_buckets", "activations",
    "logits",     "workspace", "inputs"};
constexpr std::array<const char*, kOpKindCount> kOpKindNames = {"load_batch",
                                                                "zero",
                                                                "embedding_forward",
                                                                "embedding_backward",
                                                                "layer_norm_forward",
                                                                "layer_norm_backward",
                                                                "linear_forward",
                                                                "linear_backward_input",
                                                                "linear_backward_weight",
                                                                "attention_forward",
                                                                "attention_backward",
                                                                "gelu_forward",
                                                                "gelu_backward",
                                                                "add",
                                                                "cross_entropy",
                                                                "accumulate",
                                                                "adamw",
                                                                "all_reduce",
                                                                "reduce_scatter",
                                                                "all_gather"};
constexpr std::array<const char*, 3> kPhaseNames = {"forward", "backward", "optimizer"};

static_assert(kTermCount == static_cast<int>(Term::kInputs) + 1);
static_assert(kOpKindCount == static_cast<int>(OpKind::kAllGather) + 1);

}  // namespace

std::int64_t size_bytes(DType type) {
  static_assert(sizeof(float) == 4 && sizeof(std::int32_t) == 4);
  return type == DType::kFp32 ? sizeof(float) : sizeof(std::int32_t);
}

const char* to_string(Term term) { return kTermNames[static_cast<std::size_t>(term)]; }
const char* to_string(OpKind kind) { return kOpKindNames[static_cast<std::size_t>(kind)]; }
const char* to_string(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

bool is_collective(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kAllGather;
}

}  // namespace krigtune
