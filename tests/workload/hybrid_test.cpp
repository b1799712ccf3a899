// Hybrids of attention, state-space layers and linear attention: how they are read, and their published parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/json.h"
#include "krigtune/rng.h"
#include "workload/hub_models.h"
#include "workload/model.h"

namespace krigtune::hybrid_test {
namespace {

using workload::FeedForward;
using workload::Mixer;
using workload::ModelSpec;

ModelSpec read(const Json& model) { return workload::read_model(model, "s.json", "/model"); }

// config.json of nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, the keys that are read.
Json nano() {
  return {{"model_type", "nemotron_h"},
          {"hybrid_override_pattern", "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"},
          {"hidden_size", 2688},
          {"num_hidden_layers", 52},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 2},
          {"head_dim", 128},
          {"intermediate_size", 1856},
          {"mamba_num_heads", 64},
          {"mamba_head_dim", 64},
          {"ssm_state_size", 128},
          {"n_groups", 8},
          {"conv_kernel", 4},
          {"chunk_size", 128},
          {"n_routed_experts", 128},
          {"num_experts_per_tok", 6},
          {"n_shared_experts", 1},
          {"moe_intermediate_size", 1856},
          {"moe_shared_expert_intermediate_size", 3712},
          {"mlp_hidden_act", "relu2"},
          {"vocab_size", 131072},
          {"max_position_embeddings", 262144},
          {"tie_word_embeddings", false},
          {"layer_norm_epsilon", 1e-5}};
}

workload::Caveats caveats_of(const Json& config, ModelSpec& model) {
  workload::Caveats caveats;
  model = workload::read_model({{"hf_config", config}}, "s.json", "/model", {}, &caveats);
  return caveats;
}

// The model's card: 31.6 billion parameters, of which a token uses 3.6 with the embeddings, 3.2 without the table.
TEST(Hybrid, Nemotron3NanoHasItsPublishedParameters) {
  ModelSpec model;
  EXPECT_TRUE(caveats_of(nano(), model).not_modelled.empty());
  EXPECT_EQ(model.layers_with(Mixer::kMamba), 23);
  EXPECT_EQ(model.layers_with(Mixer::kAttention), 6);
  EXPECT_EQ(model.layers_with(FeedForward::kExperts), 23);
  EXPECT_EQ(model.kinds().size(), 3U);
  EXPECT_EQ(parameter_count(model), 31'577'937'344);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model)), 3.6e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model) - model.vocab * model.hidden), 3.2e9, 0.05e9);
  EXPECT_EQ(workload::hub_model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")->sizes, model);
}

// With the layer that predicts further tokens, one layer of attention and one of experts.
std::int64_t with_further_tokens(ModelSpec model) {
  model.mtp = {2, true, {.attention = 1, .experts = 1}};
  return parameter_count(model);
}

// A checkpoint of 32,913,266,240 numbers (Megatron-Bridge, model card of Nemotron 3.5 Lightning), 24 * 128 of which
// are corrections of routers. Ultra has 550 billion parameters, of which a token uses 55.
TEST(Hybrid, OtherNemotronsHaveTheirPublishedParameters) {
  EXPECT_EQ(
      with_further_tokens(workload::hub_model("nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16")->sizes) + 24 * 128,
      32'913'266'240);
  const ModelSpec ultra = workload::hub_model("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16")->sizes;
  EXPECT_NEAR(static_cast<double>(parameter_count(ultra)), 550e9, 2e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(ultra)), 55e9, 1.5e9);
}

// The checkpoint has 123,611,033,088 numbers (Megatron-Bridge, model card of Nemotron 3 Super), with 41 corrections of
// routers that are not trained. 120 billion, of which a token uses 12, without the embedding table.
TEST(Hybrid, Nemotron3SuperHasTheNumbersOfItsCheckpoint) {
  Json config = nano();
  config["hybrid_override_pattern"] = [] {
    std::string pattern;
    for (int i = 0; i < 8; ++i) pattern += "MEMEMEMEME*";
    return pattern;
  }();
  config["num_hidden_layers"] = 88;
  config["hidden_size"] = 4096;
  config["intermediate_size"] = 2688;
  config["mamba_num_heads"] = 128;
  config["n_routed_experts"] = 512;
  config["num_experts_per_tok"] = 22;
  config["moe_latent_size"] = 1024;
  config["moe_intermediate_size"] = 2688;
  config["moe_shared_expert_intermediate_size"] = 5376;
  ModelSpec model;
  caveats_of(config, model);
  EXPECT_EQ(model.experts.latent, 1024);
  EXPECT_EQ(with_further_tokens(model) + 41 * 512, 123'611'033'088);
  EXPECT_EQ(workload::hub_model("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16")->sizes, model);
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 120e9, 1e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model) - model.vocab * model.hidden), 12e9, 0.5e9);
}

// Qwen3-Next-80B-A3B: 80 billion parameters, of which a token uses 3, without the embeddings.
TEST(Hybrid, Qwen3NextHasItsPublishedParameters) {
  Json layers = Json::array();
  for (int i = 0; i < 48; ++i) layers.push_back(i % 4 == 3 ? "full_attention" : "linear_attention");
  const Json config = {{"model_type", "qwen3_next"},
                       {"layer_types", layers},
                       {"hidden_size", 2048},
                       {"num_hidden_layers", 48},
                       {"num_attention_heads", 16},
                       {"num_key_value_heads", 2},
                       {"head_dim", 256},
                       {"intermediate_size", 5120},
                       {"linear_num_value_heads", 32},
                       {"linear_num_key_heads", 16},
                       {"linear_key_head_dim", 128},
                       {"linear_value_head_dim", 128},
                       {"linear_conv_kernel_dim", 4},
                       {"num_experts", 512},
                       {"num_experts_per_tok", 10},
                       {"moe_intermediate_size", 512},
                       {"shared_expert_intermediate_size", 512},
                       {"hidden_act", "silu"},
                       {"vocab_size", 151936},
                       {"max_position_embeddings", 262144},
                       {"rms_norm_eps", 1e-6},
                       {"tie_word_embeddings", false}};
  ModelSpec model;
  EXPECT_TRUE(caveats_of(config, model).not_modelled.empty());
  EXPECT_EQ(model.layers_with(Mixer::kDelta), 36);
  EXPECT_EQ(model.delta.in_width(), 2 * 2048 + 2 * 4096 + 64);
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 80e9, 0.5e9);
  EXPECT_EQ(workload::hub_model("Qwen/Qwen3-Next-80B-A3B-Instruct")->sizes, model);
  const std::int64_t embeddings = 2 * model.vocab * model.hidden;
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model) - embeddings), 3.2e9, 0.2e9);
}

Json sizes() {
  return {{"layers", 7},
          {"hidden", 64},
          {"heads", 4},
          {"vocab", 100},
          {"seq_len", 16},
          {"norm", "rmsnorm"},
          {"positions", "rotary"},
          {"layer_kinds", {{"mamba", 3}, {"attention", 1}, {"experts", 3}}},
          {"mamba", {{"heads", 8}, {"head_dim", 16}, {"state", 8}, {"groups", 2}}},
          {"experts", {{"count", 4}, {"per_token", 2}, {"ffn_hidden", 24}, {"latent", 16}}}};
}

TEST(Hybrid, IsReadAndWritten) {
  const ModelSpec model = read(sizes());
  EXPECT_EQ(read(workload::to_json(model)), model);
  EXPECT_EQ(model.mamba.in_width(), 2 * 128 + 2 * 16 + 8);
  EXPECT_STREQ(model.predicted_only(), "experts");
}

TEST(Hybrid, IsRefusedWhereItDoesNotFit) {
  const auto refusal = [](const char* key, const Json& value) -> std::string {
    Json model = sizes();
    if (value.is_null())
      model.erase(key);
    else
      model[key] = value;
    try {
      read(model);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
  EXPECT_TRUE(says(refusal("layers", 8), "7 layers are counted, and there are 8"));
  EXPECT_TRUE(says(refusal("mamba", nullptr), "is missing, for the layers of this kind"));
  EXPECT_TRUE(says(refusal("experts", nullptr), "some layers have experts, of which nothing is said"));
  EXPECT_TRUE(says(refusal("delta", {{"key_heads", 2}, {"value_heads", 4}}), "no layers are of this kind"));
  EXPECT_TRUE(says(refusal("mamba", {{"heads", 9}, {"groups", 2}}), "9 heads are not a multiple of 2 groups"));
  EXPECT_TRUE(says(refusal("norm_places", "shared"), "hybrid layers do not share their norms"));
  EXPECT_TRUE(says(refusal("layer_kinds", {{"mamba", 3}, {"attention", 1}, {"experts", 1}, {"mlp", 1}, {"delta", 1}}),
                   "layers of 4 kinds are planned at most"));
}

// Whatever the stages are, their layers of each kind are those of the model, and each stage has its share of each kind,
// or one more or less for each kind that is dealt out before it.
TEST(Hybrid, StagesHaveTheLayersOfTheModelAndTheirShares) {
  Rng rng(3, 0);
  const auto number = [&](std::int64_t most) {
    return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most + 1)));
  };
  for (int i = 0; i < 2000; ++i) {
    ModelSpec model;
    model.layer_kinds.mamba = 1 + number(20);
    model.layer_kinds.mlp = number(9);
    model.layer_kinds.attention = number(9);
    model.layer_kinds.experts = number(20);
    model.layers = model.layer_kinds.sum();
    const auto kinds = model.kinds();
    workload::OtherLayers sums{};
    for (std::int64_t begin = 0; begin < model.layers;) {
      const std::int64_t end = std::min(model.layers, begin + 1 + number(8));
      const workload::OtherLayers others = model.other_layers_in(begin, end);
      std::int64_t all = 0;
      for (std::size_t kind = 0; kind < others.size(); ++kind) {
        EXPECT_GE(others[kind], 0);
        sums[kind] += others[kind];
        all += others[kind];
        const std::int64_t of_kind = kind + 1 < kinds.size() ? kinds[kind].layers : 0;
        const double share = static_cast<double>(of_kind * (end - begin)) / static_cast<double>(model.layers);
        EXPECT_NEAR(static_cast<double>(others[kind]), share, 1.0 + static_cast<double>(kind));
      }
      EXPECT_LE(all, end - begin);
      begin = end;
    }
    for (std::size_t kind = 0; kind + 1 < kinds.size(); ++kind) EXPECT_EQ(sums[kind], kinds[kind].layers);
  }
}

TEST(Hybrid, OneLayerOfEachKindIsAsManyAsThereAreKinds) {
  const ModelSpec model = read(sizes());
  const ModelSpec small = with_a_layer_of_each_kind(model);
  EXPECT_EQ(small.layers, 3);
  EXPECT_EQ(small.layer_kinds.sum(), 3);
  const ModelSpec experts = with_layers_of(model, {Mixer::kNone, FeedForward::kExperts}, 5);
  EXPECT_EQ(experts.layers_with(Mixer::kMamba), 0);
  EXPECT_EQ(experts.layers_with(FeedForward::kExperts), 5);
  // A layer has one norm, and what it is made of: 3 * 64 numbers for three layers, counted in one model.
  const std::int64_t ends = 2 * 100 * 64 + 64;
  EXPECT_EQ(parameter_count(experts) - ends + (model.tied_embeddings ? 100 * 64 : 0),
            5 * (64 + 4 * 64 + 2 * 64 * 16 + 4 * 2 * 16 * 24));
}

// Per token and layer: 6 for each number of a matrix, 21 for each of a state, and attention's products.
TEST(Hybrid, ModelFlopsCountStatesInPlaceOfPairsOfTokens) {
  const ModelSpec model = read(sizes());
  const double mamba = 6.0 * 64.0 * (2.0 * 128.0 + 2.0 * 16.0 + 8.0 + 128.0) + 21.0 * 128.0 * 8.0;
  const double attention = 6.0 * 4.0 * 64.0 * 64.0 + 12.0 * 16.0 * 64.0 * 17.0 / 32.0;
  const double experts = 6.0 * (64.0 * 4.0 + 2.0 * 64.0 * 16.0 + 2.0 * 2.0 * 16.0 * 24.0);
  EXPECT_DOUBLE_EQ(model_flops(model, 1), 16.0 * (3.0 * mamba + attention + 3.0 * experts + 6.0 * 100.0 * 64.0));
}

}  // namespace
}  // namespace krigtune::hybrid_test
