// Layers that predict further tokens: their published parameters and FLOPs, and how they are said.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"
#include "workload/hub_models.h"
#include "workload/model.h"
#include "workload/model_presets.h"

namespace krigtune::mtp_test {
namespace {

using workload::ModelSpec;

ModelSpec read(const Json& json, workload::Caveats* caveats = nullptr) {
  return workload::read_model(json, "s.json", "/model", {}, caveats);
}

ModelSpec deepseek(std::int64_t further_tokens) {
  ModelSpec model = workload::hub_model("deepseek-ai/DeepSeek-V3")->sizes;
  model.seq_len = 4096;
  model.mtp.layers = further_tokens;
  workload::resolve(model);
  return model;
}

// Of the hub's files of DeepSeek-V3, 3,918,786,560 numbers in bf16 and 680,571,043,840 in fp8: the main model, one
// layer that predicts a second token, and copies of table and head beside it. Its README counts 671 billion without and
// 685 with them.
TEST(Mtp, DeepSeekV3HasTheNumbersOfItsFiles) {
  const std::int64_t tables = 2 * deepseek(0).vocab * deepseek(0).hidden;
  EXPECT_EQ(parameter_count(deepseek(1)) + tables, 3'918'786'560 + 680'571'043'840);
  EXPECT_NEAR(static_cast<double>(parameter_count(deepseek(0))), 671e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(deepseek(1)) + tables), 685e9, 0.6e9);
}

double gflops_of_token(const ModelSpec& model) {
  const double half_of_attention = 0.5 * palm_attention_flops(model, 1);
  return 1e-9 * (palm_flops(model, 1) - half_of_attention) / static_cast<double>(model.seq_len);
}

// TFLOP/s divided by tokens/s of runs that Megatron-Bridge publishes (docs/performance-summary.md, 25.11: 961 / 3848
// without, 557 / 2139 with; 26.06: 827 / 9728 of Nemotron 3 Super).
TEST(Mtp, FlopsAreThoseOfPublishedRuns) {
  EXPECT_NEAR(gflops_of_token(deepseek(0)) / (961e3 / 3848.0), 1.0, 0.005);
  EXPECT_NEAR(gflops_of_token(deepseek(1)) / (557e3 / 2139.0), 1.0, 0.005);
  ModelSpec super = workload::hub_model("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16")->sizes;
  super.seq_len = 8192;
  const double without = gflops_of_token(super);
  super.mtp = {2, true, {.attention = 1, .experts = 1}};
  EXPECT_NEAR(gflops_of_token(super) / (827e3 / 9728.0), 1.0, 0.01);
  EXPECT_NEAR(gflops_of_token(super) / without, 1.12, 0.01);
}

TEST(Mtp, BlocksAreOfTheLastKindUnlessSaid) {
  const ModelSpec model = read({{"preset", "gpt2-124m"}, {"mtp", {{"layers", 2}}}});
  EXPECT_EQ(model.mtp.blocks.attention_mlp, 1);
  EXPECT_EQ(read(to_json(model)), model);
  EXPECT_EQ(deepseek(1).mtp.blocks.attention_experts, 1);
  ModelSpec mixed = deepseek(1);
  mixed.mtp.blocks = {.attention_mlp = 1};
  EXPECT_EQ(parameter_count(deepseek(1)) - parameter_count(mixed), parameter_count(deepseek(0)) - parameter_count([] {
                                                                     ModelSpec dense = deepseek(0);
                                                                     ++dense.experts.dense_layers;
                                                                     return dense;
                                                                   }()));
}

TEST(Mtp, OneLayerForAllTokensHasItsParametersOnceAndComputesForEach) {
  ModelSpec apart = deepseek(3);
  ModelSpec one = deepseek(3);
  one.mtp.repeated = true;
  EXPECT_EQ(parameter_count(one), parameter_count(deepseek(1)));
  EXPECT_EQ(model_flops(one, 1), model_flops(apart, 1));
  EXPECT_NEAR(model_flops(apart, 1) - model_flops(deepseek(2), 1),
              model_flops(deepseek(1), 1) - model_flops(deepseek(0), 1), 1e-9 * model_flops(apart, 1));
}

// transformers drops these weights ("_keys_to_ignore_on_load_unexpected" in modeling_deepseek_v3.py), so that a
// config.json does not say that they are trained.
TEST(Mtp, AConfigJsonDoesNotSayThatTheyAreTrained) {
  const Json config = {{"model_type", "deepseek_v3"},
                       {"hidden_size", 64},
                       {"num_hidden_layers", 4},
                       {"num_attention_heads", 4},
                       {"num_key_value_heads", 4},
                       {"intermediate_size", 128},
                       {"vocab_size", 100},
                       {"q_lora_rank", 16},
                       {"kv_lora_rank", 16},
                       {"qk_nope_head_dim", 8},
                       {"qk_rope_head_dim", 8},
                       {"v_head_dim", 8},
                       {"n_routed_experts", 4},
                       {"num_experts_per_tok", 2},
                       {"moe_intermediate_size", 16},
                       {"first_k_dense_replace", 1},
                       {"n_shared_experts", 1},
                       {"max_position_embeddings", 128},
                       {"num_nextn_predict_layers", 1},
                       {"rms_norm_eps", 1e-6},
                       {"hidden_act", "silu"}};
  workload::Caveats caveats;
  EXPECT_EQ(read({{"hf_config", config}}, &caveats).mtp, workload::MtpSpec{});
  EXPECT_EQ(read({{"hf_config", config}, {"mtp", {{"layers", 1}}}}, &caveats).mtp.blocks.attention_experts, 1);
}

TEST(Mtp, WhatIsSaidOfAPublishedModelEndsWhereTheyAreAdded) {
  workload::Caveats without, with;
  const char* glm = "zai-org/GLM-4.5";
  read({{"preset", glm}}, &without);
  read({{"preset", glm}, {"mtp", {{"layers", 1}}}}, &with);
  EXPECT_EQ(without.also_not_modelled, std::vector<std::string>{workload::kFurtherTokens});
  EXPECT_TRUE(with.also_not_modelled.empty());
}

TEST(Mtp, BlocksMustBeDescribed) {
  for (const char* kind : {"mamba", "experts", "delta_mlp"}) {
    const Json mtp = {{"layers", 1}, {"blocks", {{kind, 1}}}};
    EXPECT_THROW(read({{"preset", "gpt2-124m"}, {"mtp", mtp}}), UserError) << kind;
  }
  EXPECT_THROW(read({{"preset", "gpt2-124m"}, {"mtp", {{"repeated", true}}}}), UserError);
  EXPECT_EQ(read({{"preset", "gpt2-124m"}, {"mtp", {{"layers", 0}}}}).mtp, workload::MtpSpec{});
}

}  // namespace
}  // namespace krigtune::mtp_test
