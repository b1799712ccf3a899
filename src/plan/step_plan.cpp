#include "krigtune/plan/step_plan.h"

#include <cassert>

namespace krigtune {

std::int64_t size_bytes(DType type) {
  switch (type) {
    case DType::kFp32:
    case DType::kInt32:
      return 4;
  }
  assert(false);
  return 0;
}

const char* to_string(Term term) {
  switch (term) {
    case Term::kParameters:
      return "parameters";
    case Term::kGradients:
      return "gradients";
    case Term::kOptimizerState:
      return "optimizer_state";
    case Term::kGatheredParameters:
      return "gathered_parameters";
    case Term::kReduceBuckets:
      return "reduce_buckets";
    case Term::kActivations:
      return "activations";
    case Term::kLogits:
      return "logits";
    case Term::kWorkspace:
      return "workspace";
    case Term::kInputs:
      return "inputs";
  }
  assert(false);
  return "";
}

const char* to_string(OpKind kind) {
  switch (kind) {
    case OpKind::kLoadBatch:
      return "load_batch";
    case OpKind::kZero:
      return "zero";
    case OpKind::kEmbeddingForward:
      return "embedding_forward";
    case OpKind::kEmbeddingBackward:
      return "embedding_backward";
    case OpKind::kLayerNormForward:
      return "layer_norm_forward";
    case OpKind::kLayerNormBackward:
      return "layer_norm_backward";
    case OpKind::kLinearForward:
      return "linear_forward";
    case OpKind::kLinearBackwardInput:
      return "linear_backward_input";
    case OpKind::kLinearBackwardWeight:
      return "linear_backward_weight";
    case OpKind::kAttentionForward:
      return "attention_forward";
    case OpKind::kAttentionBackward:
      return "attention_backward";
    case OpKind::kGeluForward:
      return "gelu_forward";
    case OpKind::kGeluBackward:
      return "gelu_backward";
    case OpKind::kAdd:
      return "add";
    case OpKind::kCrossEntropy:
      return "cross_entropy";
    case OpKind::kAccumulate:
      return "accumulate";
    case OpKind::kAdamW:
      return "adamw";
    case OpKind::kAllReduce:
      return "all_reduce";
    case OpKind::kReduceScatter:
      return "reduce_scatter";
    case OpKind::kAllGather:
      return "all_gather";
  }
  assert(false);
  return "";
}

bool is_collective(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kAllGather;
}

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
  }
  assert(false);
  return "";
}

}  // namespace krigtune
