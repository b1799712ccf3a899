#include "workload/hf_adapter.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"

namespace krigtune::workload::hf_adapter_test {
namespace {

AdapterSpec read(const std::string& text, Caveats* caveats = nullptr) {
  Caveats ignored;
  return read_adapter_config(parse_json(text, "adapter_config.json"), "adapter_config.json",
                             caveats != nullptr ? *caveats : ignored);
}

AdapterSpec adapters(std::int64_t rank, const std::vector<AdaptedLayer>& layers) {
  AdapterSpec spec{.rank = rank, .targets = {}};
  for (const AdaptedLayer layer : layers) spec.targets[static_cast<std::size_t>(layer)] = true;
  return spec;
}

using enum AdaptedLayer;

TEST(HfAdapter, ReadsWhatPeftSaves) {
  Caveats caveats;
  const AdapterSpec read_spec = read(R"({"peft_type": "LORA", "r": 16, "lora_dropout": 0.05, "modules_to_save": null,
      "rank_pattern": {}, "use_dora": false, "target_modules": ["q_proj", "model.layers.3.mlp.down_proj"]})",
                                     &caveats);
  AdapterSpec expected = adapters(16, {kQuery, kDown});
  expected.dropout = 0.05;
  EXPECT_EQ(read_spec, expected);
  EXPECT_TRUE(caveats.not_modelled.empty());
  EXPECT_TRUE(caveats.assumed.empty());
  EXPECT_EQ(read(R"({"peft_type": "LORA", "r": 4, "target_modules": "all-linear"})").targets, AdapterSpec{}.targets);
}

TEST(HfAdapter, TheLayersOfAnExpressionAreThoseThatItNames) {
  Caveats caveats;
  EXPECT_EQ(read(R"({"peft_type": "LORA", "r": 8, "target_modules": ".*(q_proj|v_proj)$"})", &caveats),
            adapters(8, {kQuery, kValue}));
  ASSERT_EQ(caveats.assumed.size(), 1U);
  EXPECT_EQ(caveats.assumed[0], "adapters on q_proj, v_proj: the layers that '.*(q_proj|v_proj)$' names");
}

TEST(HfAdapter, WhatNobodySaidIsAssumed) {
  Caveats caveats;
  EXPECT_EQ(read(R"({"peft_type": "LORA"})", &caveats), adapters(8, {kQuery, kValue}));
  EXPECT_EQ(caveats.assumed.size(), 1U);
}

TEST(HfAdapter, WhatIsNotPlannedIsSaid) {
  Caveats caveats;
  read(R"({"peft_type": "LORA", "r": 8, "target_modules": ["q_proj", "embed_tokens"], "use_dora": true,
       "rank_pattern": {"q_proj": 64}, "modules_to_save": ["lm_head"]})",
       &caveats);
  ASSERT_EQ(caveats.not_modelled.size(), 4U);
  EXPECT_EQ(caveats.not_modelled[0], "adapters on 'embed_tokens', which is no layer of a block: more memory");
  EXPECT_EQ(caveats.not_modelled[3], "lm_head, trained beside the adapters: more memory");
}

TEST(HfAdapter, OtherAdaptersAndUnknownLayersAreRefused) {
  EXPECT_THROW(read(R"({"peft_type": "IA3", "target_modules": ["k_proj"]})"), UserError);
  EXPECT_THROW(read(R"({"r": 8})"), UserError);
  EXPECT_THROW(read(R"({"peft_type": "LORA", "r": 0})"), UserError);
  EXPECT_THROW(read(R"({"peft_type": "LORA", "r": 8, "target_modules": "\\w+_projection"})"), UserError);
}

}  // namespace
}  // namespace krigtune::workload::hf_adapter_test
