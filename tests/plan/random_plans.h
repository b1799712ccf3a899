#pragma once
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "krigtune/rng.h"
#include "plan/build_plan.h"
#include "schedule/knobs.h"
#include "workload/model_presets.h"

namespace krigtune {

/// Returns how many random plans a test draws: a tenth under AddressSanitizer, which is ten times slower.
constexpr int sweep(int plans) {
#if defined(__SANITIZE_ADDRESS__)
  return plans / 10;
#else
  return plans;
#endif
}

/// The inputs of a plan.
struct PlanCase {
  workload::Workload workload;
  workload::ClusterSpec cluster;
  space::Configuration configuration;

  plan::StepPlan plan() const { return plan::build_plan(workload, cluster, configuration); }
  std::string text() const {
    return workload::to_json(workload).dump() + " " + std::to_string(cluster.ranks()) + " ranks " +
           configuration.text();
  }
};

/// Draws models and configurations, all of small sizes. A new knob needs one line here.
class RandomPlans {
 public:
  explicit RandomPlans(std::uint64_t seed) : rng_(seed, 0), rng_of_parts_(seed, 2) {}

  /// Returns the next case that an executor can run: one without what is predicted only. A third trains adapters.
  PlanCase next_executed() {
    for (;;) {
      PlanCase drawn = next();
      if (*drawn.workload.model.predicted_only() != 0) continue;
      return rng_of_parts_.below(3) == 0 ? with_adapters(drawn) : drawn;
    }
  }

  /// Adds adapters to some layers, of which the MLP's upper one exists in every model without experts.
  PlanCase with_adapters(PlanCase drawn) {
    workload::AdapterSpec& lora = drawn.workload.training.lora;
    lora.rank = static_cast<std::int64_t>(1 + rng_of_parts_.below(5));
    lora.dropout = rng_of_parts_.below(2) == 1 ? 0.1 : 0.0;
    for (bool& adapts : lora.targets) adapts = rng_of_parts_.below(2) == 1;
    lora.targets[static_cast<std::size_t>(workload::AdaptedLayer::kOutput)] = true;
    return drawn;
  }

  /// Returns the next case with another optimizer, other kernels, a fused loss or states in the model's type.
  PlanCase next_predicted() {
    PlanCase drawn = next();
    workload::TrainingSpec& training = drawn.workload.training;
    training.kernels = one_of({workload::Kernels::kFused, workload::Kernels::kEager});
    training.loss = one_of({workload::LossKind::kPlain, workload::LossKind::kFused});
    training.states = one_of({workload::OptimizerStates::kFp32, workload::OptimizerStates::kAsModel});
    drawn.workload.optimizer = workload::kOptimizers[rng_.below(workload::kOptimizers.size())].kind;
    return drawn;
  }

  /// Adds to a third of the models further tokens, and latents to a half of those with experts.
  PlanCase with_more_parts(PlanCase drawn) {
    workload::ModelSpec& model = drawn.workload.model;
    if (model.has_experts() && rng_of_parts_.below(2) == 1) model.experts.latent = 6;
    if (rng_of_parts_.below(3) == 0) {
      const auto further_tokens = static_cast<std::int64_t>(1 + rng_of_parts_.below(2));
      model.mtp = {further_tokens, rng_of_parts_.below(2) == 1, {}};
    }
    workload::resolve(model);
    return drawn;
  }

  /// Returns the next case that makes a plan. Combinations that are not valid are drawn again.
  PlanCase next() {
    for (;;) {
      PlanCase drawn;
      draw_model(drawn);
      draw_configuration(drawn);
      try {
        schedule::check_knobs(drawn.workload, drawn.cluster, drawn.configuration);
        return drawn;
      } catch (const UserError&) {
        continue;
      }
    }
  }

 private:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[rng_.below(values.size())];
  }
  std::int64_t number(std::initializer_list<std::int64_t> values) { return one_of<std::int64_t>(values); }
  bool coin() { return one_of({false, true}); }

  void draw_model(PlanCase& to) {
    workload::ModelSpec& model = to.workload.model;
    model.layers = number({1, 2, 3});
    model.heads = number({2, 4});
    model.kv_heads = number({1, 2, model.heads});
    model.hidden = model.heads * number({8, 10, 12});
    model.ffn_hidden = number({24, 40});
    model.vocab = number({32, 50, 67});
    model.seq_len = number({4, 7, 8});
    model.gated_mlp = coin();
    model.tied_embeddings = coin();
    model.positions = one_of({workload::Positions::kLearned, workload::Positions::kRotary});
    model.norm = one_of({workload::Norm::kLayerNorm, workload::Norm::kRmsNorm});
    model.attention = one_of({workload::Attention::kFlash, workload::Attention::kEager});
    model.dropout = one_of({0.0, 0.0, 0.1});
    model.head_dim = number({0, 0, 6});
    if (coin()) model.qkv_bias = coin();
    if (coin()) model.out_bias = coin();
    if (coin()) model.mlp_bias = coin();
    if (number({0, 0, 1}) == 1) {
      model.experts = {number({2, 3}), number({1, 2}), number({8, 12}), number({0, 16}), number({0, 1, 2})};
      model.experts.dense_layers = std::min(model.experts.dense_layers, model.layers);
    }
    using workload::NormPlaces;
    using workload::QkNorm;
    model.norm_places =
        one_of({NormPlaces::kPre, NormPlaces::kPre, NormPlaces::kPost, NormPlaces::kSandwich, NormPlaces::kShared});
    model.qk_norm = one_of({QkNorm::kNone, QkNorm::kNone, QkNorm::kHead, QkNorm::kFull});
    model.norm_bias = number({0, 1, 1}) == 1;
    if (number({0, 0, 1}) == 1) model.others = {number({0, 5}), number({0, 70})};
    if (number({0, 0, 1}) == 1) draw_latents(model);
    model.norm_gain = number({0, 1, 1, 1}) == 1;
    to.workload.precision =
        one_of({workload::Precision::kFp32, workload::Precision::kBf16, workload::Precision::kFp16});
    to.workload.optimizer =
        one_of({workload::OptimizerKind::kAdamW, workload::OptimizerKind::kAdamW, workload::OptimizerKind::kSgd});
    to.workload.dialect =
        one_of({workload::Dialect::kCanonical, workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed});
    to.workload.gradient_clipping = one_of({0.0, 1.0});
  }

  void draw_latents(workload::ModelSpec& model) {
    model.latent = {number({0, 6}), number({5, 8}), number({4, 6}), number({2, 4}), number({4, 6})};
    model.kv_heads = model.heads;
    model.head_dim = 0;
    model.qk_norm = workload::QkNorm::kNone;
  }

  void draw_configuration(PlanCase& to) {
    to.cluster.gpus_per_node = number({1, 2, 3, 4});
    space::Configuration& knobs = to.configuration;
    const auto set = [&](const char* name, std::int64_t value) { knobs.set(name, value); };
    set("zero_stage", number({0, 1, 2, 3}));
    set("micro_batch", number({1, 2}));
    set("gradient_accumulation_steps", number({1, 1, 2, 3}));
    set("reduce_bucket_size", number({1, 500, 4'000, 100'000'000}));
    set("allgather_bucket_size", number({1, 500, 4'000, 100'000'000}));
    knobs.set("overlap_comm", coin());
    set("tensor_parallel", number({1, 1, 2}));
    knobs.set("sequence_parallel", coin());
    knobs.set("activation_checkpointing", one_of<std::string>({"none", "selective", "full"}));
    set("activation_checkpointing_layers", number({1, 2}));
    knobs.set("offload_optimizer", one_of<std::string>({"none", "none", "cpu"}));
    knobs.set("offload_param", one_of<std::string>({"none", "none", "cpu"}));
    set("stage3_prefetch_bucket_size", number({0, 1'000, 100'000'000}));
    set("stage3_param_persistence_threshold", number({0, 30, 1'000}));
    set("stage3_max_live_parameters", number({0, 5'000, 100'000'000}));
    set("stage3_max_reuse_distance", number({0, 3'000, 100'000'000}));
    if (knobs.integer("zero_stage", 0) < 3) {
      knobs.set("recompute_modules",
                one_of<std::string>({"usual", "core_attn+layernorm+moe_act", "mla_up_proj+shared_experts", "mlp+moe",
                                     "moe_act+mla_up_proj+layernorm+mlp"}));
    }
  }

  Rng rng_;
  Rng rng_of_parts_;
};

}  // namespace krigtune
