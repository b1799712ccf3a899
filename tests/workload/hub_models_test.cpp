#include "workload/hub_models.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/json.h"
#include "workload/workload.h"

namespace krigtune {
namespace {

using workload::hub_model;

struct Published {
  const char* name;
  double parameters;  ///< as the model's page on huggingface.co states them (safetensors), without towers for images
};

// Within one per cent: biases and norms of queries and keys are left out.
TEST(HubModels, HaveThePublishedNumberOfParameters) {
  constexpr Published kPublished[] = {
      {"meta-llama/Llama-3.1-8B", 8030261248.0},
      {"meta-llama/Meta-Llama-3-8B-Instruct", 8030261248.0},
      {"meta-llama/Llama-3.2-1B-Instruct", 1235814400.0},
      {"meta-llama/Llama-3.2-3B", 3212749824.0},
      {"meta-llama/Llama-3.1-70B", 70553706496.0},
      {"meta-llama/Llama-3.1-405B", 405853388800.0},
      {"meta-llama/Llama-2-7b-hf", 6738415616.0},
      {"mistralai/Mistral-7B-v0.1", 7241732096.0},
      {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1100048384.0},
      {"Qwen/Qwen2.5-0.5B", 494032768.0},
      {"Qwen/Qwen2.5-1.5B-Instruct", 1543714304.0},
      {"Qwen/Qwen2.5-3B", 3085938688.0},
      {"Qwen/Qwen2.5-7B-Instruct", 7615616512.0},
      {"Qwen/Qwen2.5-14B", 14770033664.0},
      {"Qwen/Qwen2.5-32B", 32763876352.0},
      {"Qwen/Qwen2.5-72B", 72706203648.0},
      {"Qwen/Qwen3-8B", 8190735360.0},
      {"Qwen/Qwen3-14B", 14768307200.0},
      {"google/gemma-2b", 2506172416.0},
      {"microsoft/phi-4", 14659507200.0},
      {"HuggingFaceTB/SmolLM2-135M", 134515008.0},
      {"HuggingFaceTB/SmolLM2-1.7B", 1711376384.0},
      {"01-ai/Yi-6B", 6061035520.0},
      {"facebook/opt-1.3b", 1315758080.0},
      {"facebook/opt-6.7b", 6658473984.0},
      {"bigscience/bloom-560m", 559214592.0},
      {"bigscience/bloom-7b1", 7069016064.0},
      {"EleutherAI/pythia-6.9b", 6857302016.0},
      {"openai-community/gpt2", 124439808.0},
      {"openai-community/gpt2-xl", 1557611200.0},
  };
  for (const Published& one : kPublished) {
    const auto found = hub_model(one.name);
    ASSERT_TRUE(found) << one.name;
    const auto counted = static_cast<double>(workload::parameter_count(found->sizes));
    EXPECT_NEAR(counted / one.parameters, 1.0, 0.01) << one.name;
    EXPECT_TRUE(found->caveats.not_modelled.empty()) << one.name;
  }
}

// The same for models that were added later, with towers for images. What the models do not have is said.
TEST(HubModels, HaveThePublishedNumberOfParametersWhateverTheyDiffer) {
  constexpr Published kPublished[] = {
      {"Qwen/Qwen-7B-Chat", 7721324544.0},
      {"Qwen/Qwen-14B", 14167290880.0},
      {"trl-lib/qwen1.5-1.8b-sft", 1836828672.0},
      {"Qwen/Qwen1.5-4B", 3950369280.0},
      {"Qwen/Qwen1.5-32B", 32512218112.0},
      {"Qwen/Qwen1.5-72B-Chat", 72287920128.0},
      {"Qwen/Qwen1.5-MoE-A2.7B", 14315784192.0},
      {"Qwen/Qwen2-0.5B", 494032768.0},
      {"Qwen/Qwen2-1.5B-Instruct", 1543714304.0},
      {"Qwen/Qwen2-57B-A14B", 57409089024.0},
      {"Qwen/Qwen2.5-Coder-32B-Instruct", 32763876352.0},
      {"open-r1/Qwen2.5-Math-7B-RoPE-300k", 7615616512.0},
      {"Qwen/Qwen3-Coder-30B-A3B-Instruct", 30532122624.0},
      {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480154875392.0},
      {"Qwen/Qwen2-VL-2B-Instruct", 2208985600.0},
      {"Qwen/Qwen2-VL-7B-Instruct", 8291375616.0},
      {"Qwen/Qwen2.5-VL-3B-Instruct", 3754622976.0},
      {"Qwen/Qwen2.5-VL-7B-Instruct", 8292166656.0},
      {"Qwen/Qwen2.5-VL-32B-Instruct", 33452718336.0},
      {"Qwen/Qwen2.5-VL-72B-Instruct", 73410777344.0},
      {"Qwen/Qwen3-VL-2B-Instruct", 2127532032.0},
      {"Qwen/Qwen3-VL-4B-Instruct", 4437815808.0},
      {"Qwen/Qwen3-VL-8B-Instruct", 8767123696.0},
      {"Qwen/Qwen3-VL-32B-Instruct", 33357217520.0},
      {"Qwen/Qwen3-VL-30B-A3B-Instruct", 31070754032.0},
      {"llava-hf/llava-1.5-7b-hf", 7063427072.0},
      {"llava-hf/llava-1.5-13b-hf", 13350839296.0},
      {"llava-hf/llava-v1.6-mistral-7b-hf", 7566747648.0},
      {"OpenGVLab/InternVL2_5-1B", 938193024.0},
      {"OpenGVLab/InternVL3-2B", 2088957440.0},
      {"OpenGVLab/InternVL3-8B", 7944373760.0},
      {"google/gemma-3-270m", 268098176.0},
      {"google/gemma-3-4b-it", 4300079472.0},
      {"google/gemma-3-12b-pt", 12187325040.0},
      {"google/gemma-3-27b-it", 27432406640.0},
      {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1777088000.0},
      {"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", 8190735360.0},
      {"deepseek-ai/deepseek-coder-1.3b-base", 1346471936.0},
      {"deepseek-ai/deepseek-coder-6.7b-instruct", 6740512768.0},
      {"deepseek-ai/deepseek-coder-33b-base", 33342991360.0},
      {"deepseek-ai/deepseek-llm-7b-base", 6910365696.0},
      {"deepseek-ai/deepseek-moe-16b-base", 16375728128.0},
      {"codellama/CodeLlama-34b-hf", 33743970304.0},
      {"huggyllama/llama-65b", 65285660672.0},
      {"meta-llama/Llama-4-Scout-17B-16E-Instruct", 108641793536.0},
      {"meta-llama/Llama-4-Maverick-17B-128E", 401583781376.0},
      {"mistralai/Ministral-8B-Instruct-2410", 8019808256.0},
      {"mistralai/Codestral-22B-v0.1", 22247282688.0},
      {"mistralai/Mistral-Small-24B-Base-2501", 23572403200.0},
      {"mistralai/Mistral-Small-3.1-24B-Instruct-2503", 24011361280.0},
      {"mistralai/Magistral-Small-2506", 23572403200.0},
      {"mistralai/Mistral-Large-Instruct-2407", 122610069504.0},
      {"MiniMaxAI/MiniMax-M2", 228.7e9},
      {"zai-org/GLM-4-9B-0414", 9400279040.0},
      {"zai-org/GLM-4-32B-0414", 32566081536.0},
      {"zai-org/GLM-4.5-Air", 106.85e9},
      {"zai-org/GLM-4.5", 352.8e9},
      {"microsoft/Phi-3.5-mini-instruct", 3821079552.0},
      {"microsoft/Phi-3-medium-4k-instruct", 13960238080.0},
      {"microsoft/Phi-4-mini-instruct", 3836021760.0},
      {"microsoft/phi-2", 2779683840.0},
      {"microsoft/phi-1_5", 1418270720.0},
      {"HuggingFaceTB/SmolLM3-3B", 3075098624.0},
      {"01-ai/Yi-1.5-9B", 8829407232.0},
      {"allenai/OLMo-1B-hf", 1176764416.0},
      {"allenai/OLMo-7B-hf", 6888095744.0},
      {"allenai/OLMo-2-0425-1B", 1484916736.0},
      {"allenai/OLMo-2-1124-13B", 13716198400.0},
      {"allenai/OLMo-2-0325-32B", 32234279936.0},
      {"allenai/Olmo-3-7B-Instruct-SFT", 7298011136.0},
      {"internlm/internlm2-1_8b", 1889110016.0},
      {"internlm/internlm2_5-7b-chat", 7737708544.0},
      {"internlm/internlm2-20b", 19861149696.0},
      {"internlm/internlm3-8b-instruct", 8804241408.0},
      {"baichuan-inc/Baichuan2-7B-Base", 7505973248.0},
      {"baichuan-inc/Baichuan2-13B-Base", 13896668160.0},
      {"tiiuae/Falcon3-1B-Base", 1669408768.0},
      {"tiiuae/Falcon3-7B-Base", 7455550464.0},
      {"tiiuae/Falcon3-10B-Base", 10305653760.0},
      {"ibm-granite/granite-3.1-2b-base", 2533531648.0},
      {"ibm-granite/granite-3.3-8b-instruct", 8170848256.0},
      {"LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct", 2405327360.0},
      {"LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", 7818448896.0},
      {"stabilityai/stablelm-3b-4e1t", 2795443200.0},
      {"stabilityai/stablelm-2-1_6b", 1644515328.0},
      {"CohereForAI/c4ai-command-r7b-12-2024", 8028033024.0},
      {"CohereForAI/c4ai-command-r-v01", 34980831232.0},
      {"bigcode/starcoder2-3b", 3030371328.0},
      {"bigcode/starcoder2-7b", 7173923840.0},
      {"bigcode/starcoder2-15b", 15957889024.0},
      {"mosaicml/mpt-7b", 6649286656.0},
      {"EleutherAI/gpt-neo-1.3B", 1315575808.0},
      {"EleutherAI/gpt-neo-2.7B", 2651307520.0},
      {"EleutherAI/pythia-70m", 70426624.0},
      {"bigscience/bloomz-1b1", 1065314304.0},
      {"BAAI/bge-small-en-v1.5", 33360000.0},
      {"BAAI/bge-large-en-v1.5", 335141888.0},
      {"BAAI/bge-m3", 567754752.0},
      {"sentence-transformers/all-MiniLM-L6-v2", 22713216.0},
  };
  for (const Published& one : kPublished) {
    const auto found = hub_model(one.name);
    ASSERT_TRUE(found) << one.name;
    const auto counted = static_cast<double>(workload::parameter_count(found->sizes));
    EXPECT_NEAR(counted / one.parameters, 1.0, 0.015) << one.name;
  }
}

struct Mixture {
  const char* name;
  double parameters;  ///< as above
  double active;      ///< as its makers state them, rounded
};

TEST(HubModels, HaveThePublishedParametersOfExperts) {
  constexpr Mixture kPublished[] = {
      {"mistralai/Mixtral-8x7B-Instruct-v0.1", 46702792704.0, 12.9e9},
      {"mistralai/Mixtral-8x22B-v0.1", 140620634112.0, 39e9},
      {"Qwen/Qwen3-30B-A3B", 30532122624.0, 3.3e9},
      {"Qwen/Qwen3-235B-A22B", 235093634560.0, 22e9},
      {"allenai/OLMoE-1B-7B-0924", 6919161856.0, 1.3e9},
      {"microsoft/Phi-3.5-MoE-instruct", 41873153344.0, 6.6e9},
      {"openai/gpt-oss-20b", 20914757184.0, 3.6e9},
      {"openai/gpt-oss-120b", 116829156672.0, 5.1e9},
  };
  for (const Mixture& one : kPublished) {
    const auto found = hub_model(one.name);
    ASSERT_TRUE(found) << one.name;
    EXPECT_NEAR(static_cast<double>(workload::parameter_count(found->sizes)) / one.parameters, 1.0, 0.001) << one.name;
    // OpenAI counts its embedding once, which has 0.6 billion.
    const double tables = std::string_view(one.name).starts_with("openai") ? 0.6e9 : 0.0;
    const auto active = static_cast<double>(workload::active_parameter_count(found->sizes)) - tables;
    EXPECT_NEAR(active / one.active, 1.0, 0.03) << one.name;
    EXPECT_TRUE(found->caveats.not_modelled.empty()) << one.name;
  }
}

// Latent attention: the pages' numbers of parameters (safetensors, of DeepSeek-V3 without the layer that predicts a
// second token), and the active ones of the reports: arXiv:2405.04434, arXiv:2412.19437 and arXiv:2507.20534. These are
// met without the token table, of which a token uses one row.
TEST(HubModels, HaveThePublishedParametersOfLatentAttention) {
  constexpr Mixture kPublished[] = {
      {"deepseek-ai/DeepSeek-V2-Lite", 15706484224.0, 2.4e9},
      {"deepseek-ai/DeepSeek-V2", 235741434880.0, 21e9},
      {"deepseek-ai/DeepSeek-V3-Base", 671026419200.0, 37e9},
      {"moonshotai/Kimi-K2-Instruct", 1026.5e9, 32e9},
  };
  for (const Mixture& one : kPublished) {
    const auto found = hub_model(one.name);
    ASSERT_TRUE(found) << one.name;
    EXPECT_NEAR(static_cast<double>(workload::parameter_count(found->sizes)) / one.parameters, 1.0, 1e-4) << one.name;
    const auto table = static_cast<double>(found->sizes.vocab * found->sizes.hidden);
    const double active = static_cast<double>(workload::active_parameter_count(found->sizes)) - table;
    EXPECT_NEAR(active / one.active, 1.0, 0.03) << one.name;
    EXPECT_TRUE(found->caveats.not_modelled.empty()) << one.name;
  }
}

// The encoder alone, as transformers' BertModel and its like have it, within one per cent: the embeddings of token
// types and the pooler are left out.
TEST(HubModels, EncodersHaveTheirParametersAndSayWhatTheyAre) {
  constexpr Published kPublished[] = {
      {"google-bert/bert-base-uncased", 109482240.0},
      {"google-bert/bert-base-cased", 108310272.0},
      {"bert-large-uncased", 335141888.0},
      {"google-bert/bert-large-uncased-whole-word-masking", 335141888.0},
      {"google-bert/bert-base-multilingual-cased", 177853440.0},
      {"distilbert/distilbert-base-uncased", 66362880.0},
      {"FacebookAI/roberta-base", 124645632.0},
      {"FacebookAI/roberta-large", 355359744.0},
      {"FacebookAI/xlm-roberta-base", 278043648.0},
  };
  for (const Published& one : kPublished) {
    const auto found = hub_model(one.name);
    ASSERT_TRUE(found) << one.name;
    EXPECT_NEAR(static_cast<double>(workload::parameter_count(found->sizes)) / one.parameters, 1.0, 0.01) << one.name;
    ASSERT_EQ(found->caveats.not_modelled.size(), 1U) << one.name;
    EXPECT_EQ(found->caveats.not_modelled.front().rfind("an encoder: ", 0), 0U) << one.name;
  }
  EXPECT_FALSE(hub_model("dslim/bert-base-NER")) << "which vocabulary it has, its name does not say";
}

// The same model by its config.json (google-bert/bert-base-uncased).
TEST(HubModels, TheConfigFileOfAnEncoderIsReadAsItsName) {
  const Json config = {{"model_type", "bert"},      {"num_hidden_layers", 12},        {"hidden_size", 768},
                       {"num_attention_heads", 12}, {"intermediate_size", 3072},      {"vocab_size", 30522},
                       {"hidden_act", "gelu"},      {"max_position_embeddings", 512}, {"layer_norm_eps", 1e-12}};
  const Json json = {{"model", {{"hf_config", config}}}};
  const workload::Workload read = workload::read_workload(json, "s.json", "/workload");
  const auto named = hub_model("bert-base-uncased");
  EXPECT_EQ(workload::parameter_count(read.model), workload::parameter_count(named->sizes));
  EXPECT_EQ(read.caveats.not_modelled, named->caveats.not_modelled);
}

TEST(HubModels, SayWhatThePlannedModelDoesNotHave) {
  EXPECT_EQ(
      hub_model("google/gemma-3-4b-it")->caveats.not_modelled.front(),
      "a tower for images, of which only the parameters count, and attention over a window in most layers: another "
      "time");
  EXPECT_EQ(hub_model("Qwen/Qwen3-VL-8B-Instruct")->caveats.not_modelled.front(),
            "a tower for images, of which only the parameters count: more memory and time");
  EXPECT_EQ(hub_model("meta-llama/Llama-4-Maverick-17B-128E")->sizes.experts.dense_layers, 24);
  EXPECT_TRUE(hub_model("deepseek-ai/DeepSeek-V2-Lite")->caveats.not_modelled.empty());
  EXPECT_TRUE(hub_model("deepseek-ai/DeepSeek-V2-Lite")->caveats.also_not_modelled.empty());
  EXPECT_EQ(hub_model("TheBloke/Llama-2-7B-GPTQ")->caveats.not_modelled.front(),
            "weights that are quantised (gptq): less memory");
  EXPECT_EQ(hub_model("Qwen/Qwen3-8B")->caveats.assumed.front(), "the sizes of qwen3-8b: it is named Qwen/Qwen3-8B");
  EXPECT_EQ(hub_model("Qwen/Qwen2.5-72B")->sizes.layers, 80);  // and not those of a shorter name
}

TEST(HubModels, KnowNoOthers) {
  for (const char* name :
       {"Qwen/Qwen2.5-Omni-7B", "Qwen/Qwen3-Coder-Next", "me/my-model", "", "meta-llama/Llama-3.1-8", "Qwen/Qwen3-80B"})
    EXPECT_FALSE(hub_model(name)) << name;
}

TEST(HubModels, AreReadByASessionUnderTheirWholeName) {
  const Json json = {{"model", {{"preset", "Qwen/Qwen2.5-7B-Instruct"}, {"seq_len", 2048}}}};
  const workload::Workload read = workload::read_workload(json, "s.json", "/workload");
  EXPECT_EQ(read.model.layers, 28);
  EXPECT_EQ(read.model.seq_len, 2048);
  EXPECT_EQ(read.caveats.assumed.size(), 1U);
}

// Qwen/Qwen3-30B-A3B, whose heads are wider than hidden / heads: 30,532,122,624 parameters on its page.
TEST(HubModels, AConfigFileWithExpertsIsReadExactly) {
  const Json config = {{"model_type", "qwen3_moe"},        {"num_hidden_layers", 48},     {"hidden_size", 2048},
                       {"num_attention_heads", 32},        {"num_key_value_heads", 4},    {"intermediate_size", 6144},
                       {"moe_intermediate_size", 768},     {"num_experts", 128},          {"vocab_size", 151936},
                       {"max_position_embeddings", 40960}, {"rms_norm_eps", 1e-6},        {"head_dim", 128},
                       {"num_experts_per_tok", 8},         {"tie_word_embeddings", false}};
  const Json json = {{"model", {{"hf_config", config}, {"seq_len", 4096}}}};
  const workload::Workload read = workload::read_workload(json, "s.json", "/workload");
  EXPECT_EQ(read.model.layers, 48);
  EXPECT_EQ(read.model.head_dim, 128);
  EXPECT_EQ(read.model.experts, (workload::ExpertSpec{128, 8, 768, 0}));
  EXPECT_EQ(read.model.qk_norm, workload::QkNorm::kHead);
  EXPECT_EQ(parameter_count(read.model), 30'532'122'624);
  EXPECT_TRUE(read.caveats.not_modelled.empty());
}

// Layers without experts are planned as the first ones or as spread among the others; other places are said.
TEST(HubModels, AConfigFileSaysWhichLayersHaveNoExperts) {
  Json config = {
      {"model_type", "qwen2_moe"}, {"num_hidden_layers", 24},         {"hidden_size", 2048},
      {"num_attention_heads", 16}, {"intermediate_size", 5632},       {"moe_intermediate_size", 1408},
      {"num_experts", 60},         {"num_experts_per_tok", 4},        {"shared_expert_intermediate_size", 5632},
      {"vocab_size", 151936},      {"max_position_embeddings", 8192}, {"rms_norm_eps", 1e-6}};
  const auto read = [&config] {
    return workload::read_workload(Json{{"model", {{"hf_config", config}}}}, "s.json", "/workload");
  };
  EXPECT_TRUE(read().caveats.not_modelled.empty());
  EXPECT_EQ(read().model.experts.shared_ffn_hidden, 5632);
  EXPECT_TRUE(read().model.has_qkv_bias());
  EXPECT_FALSE(read().model.has_out_bias());
  const auto expect = [&](std::int64_t dense, workload::DensePlaces places, const char* caveat = "") {
    const workload::Workload workload = read();
    EXPECT_EQ(workload.model.experts.dense_layers, dense);
    EXPECT_EQ(workload.model.experts.dense_places, places);
    EXPECT_TRUE(workload.caveats.not_modelled.empty());
    const std::vector<std::string>& said = workload.caveats.also_not_modelled;
    EXPECT_EQ(said, *caveat == 0 ? std::vector<std::string>{} : std::vector<std::string>{caveat});
  };
  using workload::DensePlaces;
  expect(0, DensePlaces::kFirst);
  config["mlp_only_layers"] = {0};
  expect(1, DensePlaces::kFirst);
  config["decoder_sparse_step"] = 2;
  expect(12, DensePlaces::kSpread);
  config["decoder_sparse_step"] = 5;  // experts in layers 4, 9, 14 and 19, from 0
  expect(20, DensePlaces::kSpread);
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = {21, 22, 23};
  expect(3, DensePlaces::kSpread,
         "3 of 24 layers have an MLP instead of experts, and are planned as if they were spread evenly: more or less "
         "memory and time of a pipeline stage");
  config["mlp_only_layers"] = Json::array();
  config["first_k_dense_replace"] = 24;
  expect(24, DensePlaces::kFirst);
}

TEST(HubModels, ACaveatIsWrittenAndReadAgainOnce) {
  Json json = {{"model", {{"preset", "google/gemma-3-4b-it"}, {"seq_len", 4096}}},
               {"not_modelled", {"FP8: less time"}}};
  const workload::Workload read = workload::read_workload(json, "s.json", "/workload");
  ASSERT_EQ(read.caveats.not_modelled.size(), 2U);
  const workload::Workload again = workload::read_workload(workload::to_json(read), "s.json", "/workload");
  EXPECT_EQ(again.caveats.not_modelled, read.caveats.not_modelled);
  json["not_modelled"] = again.caveats.not_modelled;
  EXPECT_EQ(workload::read_workload(json, "s.json", "/workload").caveats.not_modelled.size(), 2U);
}

}  // namespace
}  // namespace krigtune
