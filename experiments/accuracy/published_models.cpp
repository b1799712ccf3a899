// Sizes that published_runs.csv leaves to its sources.
#include "published_models.h"

#include <map>

#include "table_rows.h"
#include "workload/hub_models.h"
#include "workload/model_presets.h"

namespace krigtune::accuracy {
namespace {

// Names of the table, and of the release whose sizes they have.
const std::map<std::string, std::string>& released() {
  static const std::map<std::string, std::string> kNames = {
      {"DeepSeekV3", "deepseek-v3"},
      {"DeepSeek-V3", "deepseek-v3"},
      {"DeepSeekV3 (w/o MTP)", "deepseek-v3"},
      {"DeepSeekV3 (w/ MTP)", "deepseek-v3"},
      {"DeepSeekV3 (tokendrop)", "deepseek-v3"},
      {"DeepSeekV3 (dropless)", "deepseek-v3"},
      {"GPT OSS 120B", "gpt-oss-120b"},
      {"GPT OSS 20B", "gpt-oss-20b"},
      {"Kimi_K2", "kimi-k2"},
      {"LLAMA2-7B", "llama-2-7b"},
      {"Llama2 7B", "llama-2-7b"},
      {"LLAMA2-13B", "llama-2-13b"},
      {"LLAMA2-70B", "llama-2-70b"},
      {"LLAMA3-8B", "llama-3.1-8b"},
      {"LLAMA3_8B", "llama-3.1-8b"},
      {"Llama 3.1 8B", "llama-3.1-8b"},
      {"LLAMA3-70B", "llama-3.1-70b"},
      {"LLAMA3_70B", "llama-3.1-70b"},
      {"Llama 3.1 70B", "llama-3.1-70b"},
      {"LLAMA3.1_405B", "llama-3.1-405b"},
      {"Llama 3.1 405B", "llama-3.1-405b"},
      {"Mixtral-8x22B", "mixtral-8x22b"},
      {"Mixtral 8x22B", "mixtral-8x22b"},
      {"Moonlight 16B A3B", "moonlight-16b-a3b"},
      {"Qwen2-57B-A14B", "qwen2-57b-a14b"},
      {"Nemotron_3_Nano", "nvidia-nemotron-3-nano-30b-a3b"},
      {"Nemotron_3_Nano (hybrid Mamba MoE)", "nvidia-nemotron-3-nano-30b-a3b"},
      {"Nemotron_3_5_Lightning", "nvidia-nemotron-3.5-lightning-30b-a3b"},
      {"Nemotron_3_Super", "nvidia-nemotron-3-super-120b-a12b"},
      {"Nemotron_3_Super (hybrid Mamba MoE)", "nvidia-nemotron-3-super-120b-a12b"},
      {"Nemotron_3_Ultra", "nvidia-nemotron-3-ultra-550b-a55b"},
      {"Qwen3-Next-80B-A3B", "qwen3-next-80b-a3b"},
      {"Qwen3_8B", "qwen3-8b"},
      {"Qwen3_30B_a3B", "qwen3-30b-a3b"},
      {"Qwen3_30B_a3B (tokendrop)", "qwen3-30b-a3b"},
      {"Qwen3_235B_a22B", "qwen3-235b-a22b"},
      {"Qwen3-235B-A22B", "qwen3-235b-a22b"},
      {"Qwen3_235B_a22B (tokendrop)", "qwen3-235b-a22b"},
  };
  return kNames;
}

// Names of the table that are trained with layers that predict further tokens, as their FLOP per token say:
// Megatron-Bridge's recipes have mtp_num_layers = 1 for DeepSeek-V3, and for these Nemotrons 2, "*E" and
// mtp_use_repeated_layer.
const std::map<std::string, workload::MtpSpec>& further_tokens() {
  static const workload::MtpSpec kDeepSeek = {1, false, {.attention_experts = 1}};
  static const workload::MtpSpec kNemotron = {2, true, {.attention = 1, .experts = 1}};
  static const std::map<std::string, workload::MtpSpec> kTrained = {
      {"DeepSeekV3", kDeepSeek},
      {"DeepSeek-V3", kDeepSeek},
      {"DeepSeekV3 (w/ MTP)", kDeepSeek},
      {"DeepSeekV3 (tokendrop)", kDeepSeek},
      {"DeepSeekV3 (dropless)", kDeepSeek},
      {"Nemotron_3_Super", kNemotron},
      {"Nemotron_3_Super (hybrid Mamba MoE)", kNemotron},
      {"Nemotron_3_5_Lightning", kNemotron},
      {"Nemotron_3_Ultra", kNemotron},
  };
  return kTrained;
}

struct GptSizes {
  std::int64_t layers, hidden, heads;
};

// Narayanan et al. 2021, table 1; Zero Bubble (arXiv:2401.10241), table 3; MegaScale (arXiv:2402.15627), section 6; the
// configurations of NVIDIA NeMo 24.07 (examples/nlp/language_modeling/conf).
const std::map<std::string, GptSizes>& gpts() {
  static const std::map<std::string, GptSizes> kSizes = {
      {"GPT 1.5B", {22, 2304, 24}},      {"GPT 6.2B", {30, 4096, 32}},     {"GPT 14.6B", {46, 5120, 40}},
      {"GPT 28.3B", {62, 6144, 48}},     {"GPT 1.7B", {24, 2304, 24}},     {"GPT 3.6B", {30, 3072, 32}},
      {"GPT 7.5B", {36, 4096, 32}},      {"GPT 18.4B", {40, 6144, 48}},    {"GPT 39.1B", {48, 8192, 64}},
      {"GPT 76.1B", {60, 10240, 80}},    {"GPT 145.6B", {80, 12288, 96}},  {"GPT 310.1B", {96, 16384, 128}},
      {"GPT 529.6B", {105, 20480, 128}}, {"GPT 1008B", {128, 25600, 160}}, {"GPT 174.6B", {96, 12288, 96}},
      {"GPT 175B", {96, 12288, 128}},    {"GPT3-5B", {24, 4096, 32}},      {"GPT3-20B", {44, 6144, 48}},
      {"GPT3-175B", {96, 12288, 96}},
  };
  return kSizes;
}

// NVIDIA NeMo's Nemotrons have no gate in their MLPs, rotary positions and untied embeddings (Parmar et al. 2024,
// "Nemotron-4 15B Technical Report"; NVIDIA 2024, "Nemotron-4 340B Technical Report", table 1).
workload::ModelSpec nemotron(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads) {
  workload::ModelSpec model = gpt(layers, hidden, heads, 4096);
  model.kv_heads = kv_heads;
  model.vocab = 256000;
  model.tied_embeddings = false;
  model.positions = workload::Positions::kRotary;
  return model;
}

workload::ModelSpec with_experts(workload::ModelSpec model, workload::ExpertSpec experts) {
  model.experts = experts;
  return model;
}

}  // namespace

std::optional<workload::ModelSpec> published_model(const std::string& name) {
  const auto of_hub = [](const std::string& release) {
    return workload::is_preset(release) ? workload::published_sizes(release, "table")
                                        : workload::hub_model(release)->sizes;
  };
  if (const auto known = released().find(name); known != released().end()) {
    workload::ModelSpec model = of_hub(known->second);
    if (const auto mtp = further_tokens().find(name); mtp != further_tokens().end()) model.mtp = mtp->second;
    return model;
  }
  if (const auto known = gpts().find(name); known != gpts().end())
    return gpt(known->second.layers, known->second.hidden, known->second.heads, 2048);
  if (name == "Nemotron-8B") return nemotron(32, 4096, 32, 32);
  if (name == "Nemotron-22B") return nemotron(40, 6144, 48, 48);
  if (name == "Nemotron-340B") return nemotron(96, 18432, 96, 8);
  // arXiv:2504.14960, section 4.1: experts of an eighth of the width, eight times as many; Llama 3 70B upcycled.
  if (name == "Mixtral-8x22B-G8T8") return with_experts(of_hub("mixtral-8x22b"), {64, 8, 2048, 0});
  if (name == "Llama3-8x70B") return with_experts(of_hub("llama-3.1-70b"), {8, 2, 28672, 0});
  // arXiv:2505.11432, table 2; eight heads for keys and values are assumed.
  if (name.rfind("MoE 352B", 0) == 0) {
    workload::ModelSpec model = llama(gpt(60, 4096, 32, 8192));
    model.kv_heads = 8;
    model.vocab = 65536;
    model.tied_embeddings = false;
    return with_experts(model, {32, 3, 14336, 0});
  }
  return std::nullopt;
}

}  // namespace krigtune::accuracy
