// Plans with experts, compared with closed forms of what a token passes: its parameters, products and kept activations.
#include <gtest/gtest.h>

#include <cstdint>

#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"

namespace krigtune::experts_test {
namespace {

using plan::StepPlan;

// Two layers of 4 experts of width 24, of which a token uses 2, and a shared one of width 40.
workload::Workload mixture() {
  workload::Workload workload;
  workload.model = {.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn_hidden = 64, .vocab = 50, .seq_len = 8};
  workload.model.gated_mlp = true;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.model.positions = workload::Positions::kRotary;
  workload.model.experts = {4, 2, 24, 40};
  workload.precision = workload::Precision::kBf16;
  return workload;
}

// All experts are held, and a token passes few of them. model_flops counts attention exactly, so what remains are the
// products with parameters: two FLOPs forward and four backward for each that a token uses.
TEST(Experts, APlanHasTheParametersAndTheProductsOfTheModel) {
  for (const bool gated : {true, false}) {
    for (const workload::ExpertSpec& experts :
         {workload::ExpertSpec{4, 2, 24, 40}, workload::ExpertSpec{4, 1, 24, 0}, workload::ExpertSpec{3, 3, 16, 16}}) {
      workload::Workload workload = mixture();
      workload.model.gated_mlp = gated;
      workload.model.experts = experts;
      const workload::ModelSpec& model = workload.model;
      const StepPlan plan = plan_of(workload);
      EXPECT_EQ(tensor_elems(plan), parameter_count(model));
      const double mlp = (gated ? 3.0 : 2.0) * 32.0 *
                         static_cast<double>(experts.per_token * experts.ffn_hidden + experts.shared_ffn_hidden);
      const double router = 32.0 * static_cast<double>(experts.count);
      const double attention = 32.0 * (32.0 + 2.0 * 16.0) + 32.0 * 32.0;
      const double token = 2.0 * (attention + router + mlp) + 50.0 * 32.0;
      EXPECT_EQ(product_flops(plan), 6.0 * 8.0 * token);
      const double causal = 6.0 * 2.0 * 32.0 * 2.0 * (8.0 * 9.0 / 2.0);
      EXPECT_EQ(model_flops(model, 1), 6.0 * 8.0 * token + causal);
    }
  }
}

// A layer without experts has the MLP of the model, beside which there are no experts.
TEST(Experts, APlanOfLayersOfBothKindsHasTheParametersAndTheProductsOfEach) {
  const auto model = [](std::int64_t layers, std::int64_t dense) {
    workload::Workload workload = mixture();
    workload.model.layers = layers;
    workload.model.experts.dense_layers = dense;
    return workload;
  };
  for (const auto& [ranks, checkpointing] : {std::pair(1, "none"), std::pair(2, "selective"), std::pair(2, "full")}) {
    const auto plan = [&](std::int64_t layers, std::int64_t dense) {
      return plan_of(model(layers, dense), ranks, ranks > 1, checkpointing);
    };
    EXPECT_EQ(product_flops(plan(3, 2)),
              product_flops(plan(2, 2)) + product_flops(plan(2, 0)) - product_flops(plan(1, 0)));
    EXPECT_EQ(kept_bytes(plan(3, 2)), kept_bytes(plan(2, 2)) + kept_bytes(plan(2, 0)) - kept_bytes(plan(1, 0)));
  }
  EXPECT_EQ(tensor_elems(plan_of(model(3, 2))), parameter_count(model(3, 2).model));
  workload::Workload dense = mixture();
  dense.model.experts = {};
  EXPECT_EQ(product_flops(plan_of(model(2, 2))), product_flops(plan_of(dense)));
}

TEST(Experts, OneExpertForEveryTokenComputesWhatAnMlpDoesAndRoutes) {
  workload::Workload one = mixture();
  one.model.experts = {1, 1, 64, 0};
  workload::Workload dense = mixture();
  dense.model.experts = {};
  EXPECT_EQ(product_flops(plan_of(one)) - product_flops(plan_of(dense)), 2.0 * 6.0 * 8.0 * 32.0);
  EXPECT_EQ(parameter_count(one.model) - parameter_count(dense.model), 2 * 32);
}

// Of one layer and token, in bytes: of each of the token's experts its input, gate and up, activation and output, and
// the routing weight (fp32) and place (int32); the router's logits; gate, up and activation of the shared expert.
TEST(Experts, KeepWhatBackwardReads) {
  workload::Workload dense = mixture();
  dense.model.experts = {};
  constexpr std::int64_t kTokens = 8;
  constexpr std::int64_t kLayers = 2;
  const std::int64_t dense_mlp = 2 * 3 * 64;
  const std::int64_t routed = 2 * (2 * (32 + 2 * 24 + 24 + 32) + 4 + 4);
  const std::int64_t shared = 2 * 3 * 40;
  const std::int64_t logits = 2 * 4;
  EXPECT_EQ(kept_bytes(plan_of(mixture())) - kept_bytes(plan_of(dense)),
            kTokens * kLayers * (routed + shared + logits - dense_mlp));
  // Selective checkpointing computes the activations again, and the norms as in a dense model.
  EXPECT_EQ(kept_bytes(plan_of(mixture())) - kept_bytes(plan_of(mixture(), 1, false, "selective")),
            kTokens * kLayers * 2 * (2 * 24 + 40 + 2 * 32));
  workload::Workload megatrons = mixture();
  megatrons.framework = workload::Framework::kMegatron;
  EXPECT_EQ(kept_bytes(plan_of(mixture())) - kept_bytes(plan_of(megatrons)), kTokens * kLayers * 2 * 2 * 32);
  EXPECT_EQ(kept_bytes(plan_of(mixture(), 1, false, "full")), kept_bytes(plan_of(dense, 1, false, "full")));
}

TEST(Experts, AreSplitOverTheTensorRanksExceptForTheRouter) {
  const StepPlan whole = plan_of(mixture());
  for (const bool sequence_parallel : {false, true}) {
    const StepPlan half = plan_of(mixture(), 2, sequence_parallel);
    const double router = 2.0 * 6.0 * 8.0 * 32.0 * 4.0;
    const double routers_share = sequence_parallel ? 0.5 * router : router;
    EXPECT_EQ(product_flops(half), 0.5 * (product_flops(whole) - router) + routers_share);
    for (std::size_t t = 0; t < whole.tensors.size(); ++t) {
      const bool is_whole = whole.tensors[t].name.find("router") != std::string::npos ||
                            whole.tensors[t].name.find("norm") != std::string::npos;
      EXPECT_EQ(half.tensors[t].elems * (is_whole ? 1 : 2), whole.tensors[t].elems) << whole.tensors[t].name;
    }
  }
}

}  // namespace
}  // namespace krigtune::experts_test
