// Which weights are trained: the block "training" of a workload.
#include "workload/training.h"

#include <gtest/gtest.h>

#include "user_error.h"
#include "workload/workload.h"

namespace krigtune::training_test {

using workload::AdaptedLayer;

workload::Workload read(const std::string& model, const std::string& training) {
  const std::string text = R"({"model": )" + model + R"(, "precision": "bf16", "training": )" + training + "}";
  return workload::read_workload(nlohmann::ordered_json::parse(text), "session.json", "/workload");
}

std::int64_t adapters(const std::string& model, const std::string& lora) {
  return workload::adapter_parameter_count(read(model, R"({"lora": )" + lora + "}"));
}

// "trainable params" as PEFT prints them (model.print_trainable_parameters(); PEFT's documentation and
// published logs of these models).
TEST(Training, AdaptersHaveTheParametersThatPeftPrints) {
  const std::string llama2 = R"({"preset": "meta-llama/Llama-2-7b-hf", "seq_len": 512})";
  EXPECT_EQ(adapters(llama2, R"({"rank": 8, "targets": ["q_proj", "v_proj"]})"), 4'194'304);
  EXPECT_EQ(adapters(llama2, R"({"rank": 16, "targets": "all-linear"})"), 39'976'960);
  const std::string llama3 = R"({"preset": "meta-llama/Llama-3.1-8B", "seq_len": 512})";
  EXPECT_EQ(adapters(llama3, R"({"rank": 16})"), 41'943'040);
  EXPECT_EQ(adapters(llama3, R"({"rank": 8, "targets": "q_proj,v_proj"})"), 3'407'872);
}

// Megatron-Bridge has one adapter for q, k and v and one for gate and up: they read their inputs by one matrix.
TEST(Training, JoinedAdaptersShareWhatReadsTheirInputs) {
  const std::string llama3 = R"({"preset": "meta-llama/Llama-3.1-8B", "seq_len": 512})";
  const std::int64_t of_a_layer =
      16 * (4096 + (4096 + 2 * 1024)) + 16 * (4096 + 4096) + 16 * (4096 + 2 * 14336) + 16 * (14336 + 4096);
  EXPECT_EQ(adapters(llama3, R"({"rank": 16, "joined": true})"), 32 * of_a_layer);
  EXPECT_EQ(adapters(llama3, R"({"rank": 8, "targets": "q_proj,v_proj", "joined": true})"), 3'407'872);
}

TEST(Training, LayersAreKnownByTheNamesOfTheirModules) {
  const std::vector<AdaptedLayer> qkv = {AdaptedLayer::kQuery, AdaptedLayer::kKey, AdaptedLayer::kValue};
  EXPECT_EQ(workload::adapted_layers("q_proj"), std::vector{AdaptedLayer::kQuery});
  EXPECT_EQ(workload::adapted_layers("model.layers.0.self_attn.q_proj"), std::vector{AdaptedLayer::kQuery});
  EXPECT_EQ(workload::adapted_layers("c_attn"), qkv);
  EXPECT_EQ(workload::adapted_layers("W_pack"), qkv);
  EXPECT_EQ(workload::adapted_layers("all-linear").size(), 7U);
  EXPECT_TRUE(workload::adapted_layers("lm_head").empty());
}

TEST(Training, WhatIsWrittenIsReadBack) {
  const std::string model = R"({"preset": "llama-7b"})";
  for (const char* training :
       {R"({"lora": {"rank": 4, "targets": ["q", "down"], "dropout": 0.1}, "base": "nf4-double"})",
        R"({"lora": {"rank": 64, "targets": "all-linear", "dropout": 0.0}, "base": "model"})"}) {
    const workload::Workload first = read(model, training);
    const nlohmann::ordered_json written = workload::to_json(first);
    EXPECT_EQ(written["training"], nlohmann::ordered_json::parse(training)) << written.dump();
    EXPECT_EQ(workload::read_workload(written, "again", "").training, first.training);
  }
  EXPECT_FALSE(workload::to_json(read(model, "{}")).contains("training"));
}

TEST(Training, RefusesWhatCannotBe) {
  const auto message = [](const char* training) {
    return user_error_of([&] { read(R"({"preset": "llama-7b"})", training); });
  };
  EXPECT_NE(message(R"({"base": "nf4"})").find("/workload/training/base: quantised weights cannot be trained"),
            std::string::npos);
  EXPECT_NE(message(R"({"lora": {"rank": 8, "targets": ["lm_head"]}})").find("the layer 'lm_head' is not known"),
            std::string::npos);
  EXPECT_NE(message(R"({"lora": {"rank": 0}})").find("/workload/training/lora/rank"), std::string::npos);
  const std::string of_gpt2 =
      user_error_of([] { read(R"({"preset": "gpt2-124m"})", R"({"lora": {"rank": 8, "targets": ["gate"]}})"); });
  EXPECT_NE(of_gpt2.find("/workload/training/lora/targets: names no layer that this model has"), std::string::npos)
      << of_gpt2;
  EXPECT_NE(message(R"({"lora": {"targets": ["q"]}})").find("\"rank\" is missing"), std::string::npos);
  // In bf16 there is nothing narrower.
  EXPECT_NE(message(R"({"precise": {"attention": true}})").find("/workload/training/precise: no product is in fp8"),
            std::string::npos);
  EXPECT_NE(message(R"({"fp8_attention": true})").find("/workload/training/fp8_attention: belongs to a model whose"),
            std::string::npos);
}

// Dettmers et al. 2023, section 3: the constants of 64 weights take 0.5 bits a weight, quantised themselves 0.127.
TEST(Training, QuantisedWeightsTakeTheBitsOfTheQLoraPaper) {
  const auto bits = [](const char* base) {
    return *read(R"({"preset": "llama-7b"})", std::string(R"({"lora": {"rank": 8}, "base": ")") + base + "\"}")
                .training.base_bits();
  };
  EXPECT_DOUBLE_EQ(bits("nf4"), 4.5);
  EXPECT_NEAR(bits("nf4-double"), 4.127, 5e-4);
  EXPECT_DOUBLE_EQ(bits("int8"), 8.0);
}

// A token takes 4 FLOPs of a frozen weight of a matrix (forward, and the gradient of its input) and 6 of one of an
// adapter.
TEST(Training, FrozenWeightsSpareTheirGradients) {
  const std::string model = R"({"preset": "meta-llama/Llama-3.1-8B", "seq_len": 1024})";
  const workload::Workload all = read(model, "{}");
  const workload::Workload frozen = read(model, R"({"lora": {"rank": 16}})");
  EXPECT_EQ(workload::spared_flops(all, 3), 0.0);
  const double matrices = static_cast<double>(workload::parameter_count(all.model)) - 128256.0 * 4096.0 -
                          65.0 * 4096.0;  // without the token table and the norms
  EXPECT_NEAR(workload::spared_flops(frozen, 3) / (3.0 * 1024.0), 2.0 * matrices - 6.0 * 41'943'040.0, 1e3);
}

}  // namespace krigtune::training_test
