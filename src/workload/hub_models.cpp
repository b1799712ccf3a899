// Sizes of published models, by their names on the Hugging Face hub.
#include "workload/hub_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "workload/hf_config.h"
#include "workload/model_presets.h"
#include "workload/model_shapes.h"

namespace krigtune::workload {
namespace {

constexpr ModelSpec rotary_gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                               bool tied) {
  ModelSpec model = gpt_sizes(layers, hidden, heads, vocab, 2048);
  model.tied_embeddings = tied;
  model.positions = Positions::kRotary;
  return model;
}

constexpr ModelSpec with_heads_of(std::int64_t head_dim, ModelSpec model) {
  model.head_dim = head_dim;
  return model;
}

constexpr ModelSpec with_norms(NormPlaces places, QkNorm qk_norm, ModelSpec model) {
  model.norm_places = places;
  model.qk_norm = qk_norm;
  return model;
}

constexpr ModelSpec qwen3(const ModelSpec& model) { return with_norms(NormPlaces::kPre, QkNorm::kHead, model); }
constexpr ModelSpec gemma2(const ModelSpec& model) { return with_norms(NormPlaces::kSandwich, QkNorm::kNone, model); }
constexpr ModelSpec gemma3(const ModelSpec& model) { return with_norms(NormPlaces::kSandwich, QkNorm::kHead, model); }

constexpr ModelSpec with_experts(const ExpertSpec& experts, ModelSpec model) {
  model.experts = experts;
  return model;
}

constexpr ModelSpec with_latents(const LatentSpec& latent, ModelSpec model) {
  model.latent = latent;
  return model;
}

// Of DeepSeek-V3 and what follows it.
constexpr LatentSpec kDeepSeekLatents = {1536, 512, 128, 64, 128};

constexpr ModelSpec deepseek_v3() {
  return with_latents(kDeepSeekLatents,
                      with_experts({256, 8, 2048, 2048, 3}, llama_sizes(61, 7168, 128, 128, 18432, 129280, 163840)));
}

constexpr ModelSpec gpt_oss(std::int64_t layers, std::int64_t experts) {
  ModelSpec model = llama_sizes(layers, 2880, 64, 8, 2880, 201088, 131072);
  model.head_dim = 64;
  model.experts = {experts, 4, 2880, 0};
  model.qkv_bias = model.out_bias = model.mlp_bias = true;
  model.others = {64 + experts, 0};  // attention sinks, and biases of the router
  return model;
}

// The padding token's two positions of RoBERTa's 514 are no positions of a sequence.
constexpr std::int64_t kEncoderLength = 512;

constexpr ModelSpec encoder_sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  ModelSpec model = gpt_sizes(layers, hidden, heads, vocab, kEncoderLength);
  constexpr std::int64_t kTokenTypes = 2;
  model.others.of_model = encoder_head(hidden) + kTokenTypes * hidden + vocab;
  return model;
}

struct HubModel {
  std::string_view name;  ///< without the organisation, in lower case; "-instruct" and the like may follow
  ModelSpec sizes;
  std::string_view differs = "";  ///< what the planned model does not have, with its effect
};

// From the released config.json of each model (huggingface.co/ORG/NAME). Biases and norms of queries and keys, gates of
// shared experts and further norms are left out (below 0.1 % of the parameters), and so are the embeddings of token
// types and the layer before the head of encoders (0.5 to 1 %). ALiBi (BLOOM) has no parameters, as rotary positions
// have none.
constexpr std::array kHubModels = {
    HubModel{"llama-3.1-8b", llama_sizes(32, 4096, 32, 8, 14336, 128256, 131072)},
    HubModel{"llama-3.1-70b", llama_sizes(80, 8192, 64, 8, 28672, 128256, 131072)},
    HubModel{"llama-3.1-405b", llama_sizes(126, 16384, 128, 8, 53248, 128256, 131072)},
    HubModel{"llama-3.2-1b", llama_sizes(16, 2048, 32, 8, 8192, 128256, 131072, true)},
    HubModel{"llama-3.2-3b", llama_sizes(28, 3072, 24, 8, 8192, 128256, 131072, true)},
    HubModel{"llama-3.3-70b", llama_sizes(80, 8192, 64, 8, 28672, 128256, 131072)},
    HubModel{"tinyllama-1.1b", llama_sizes(22, 2048, 32, 4, 5632, 32000, 2048)},
    HubModel{"tinyllama_v1.1", llama_sizes(22, 2048, 32, 4, 5632, 32000, 2048)},
    HubModel{"vicuna-7b", llama_sizes(32, 4096, 32, 32, 11008, 32000, 4096)},
    HubModel{"vicuna-13b", llama_sizes(40, 5120, 40, 40, 13824, 32000, 4096)},
    HubModel{"mistral-7b", llama_sizes(32, 4096, 32, 8, 14336, 32000, 32768)},
    HubModel{"mistral-nemo", with_heads_of(128, llama_sizes(40, 5120, 32, 8, 14336, 131072, 131072))},
    HubModel{"mixtral-8x7b", with_experts({8, 2, 14336, 0}, llama_sizes(32, 4096, 32, 8, 14336, 32000, 32768))},
    HubModel{"mixtral-8x22b", with_experts({8, 2, 16384, 0}, llama_sizes(56, 6144, 48, 8, 16384, 32768, 65536))},
    HubModel{"qwen2.5-0.5b", llama_sizes(24, 896, 14, 2, 4864, 151936, 32768, true)},
    HubModel{"qwen2.5-1.5b", llama_sizes(28, 1536, 12, 2, 8960, 151936, 131072, true)},
    HubModel{"qwen2.5-3b", llama_sizes(36, 2048, 16, 2, 11008, 151936, 32768, true)},
    HubModel{"qwen2.5-7b", llama_sizes(28, 3584, 28, 4, 18944, 152064, 131072)},
    HubModel{"qwen2.5-14b", llama_sizes(48, 5120, 40, 8, 13824, 152064, 131072)},
    HubModel{"qwen2.5-32b", llama_sizes(64, 5120, 40, 8, 27648, 152064, 131072)},
    HubModel{"qwen2.5-72b", llama_sizes(80, 8192, 64, 8, 29568, 152064, 131072)},
    HubModel{"qwen2-7b", llama_sizes(28, 3584, 28, 4, 18944, 152064, 131072)},
    HubModel{"qwen3-0.6b", qwen3(with_heads_of(128, llama_sizes(28, 1024, 16, 8, 3072, 151936, 40960, true)))},
    HubModel{"qwen3-1.7b", qwen3(llama_sizes(28, 2048, 16, 8, 6144, 151936, 40960, true))},
    HubModel{"qwen3-4b", qwen3(with_heads_of(128, llama_sizes(36, 2560, 32, 8, 9728, 151936, 40960, true)))},
    HubModel{"qwen3-8b", qwen3(llama_sizes(36, 4096, 32, 8, 12288, 151936, 40960))},
    HubModel{"qwen3-14b", qwen3(llama_sizes(40, 5120, 40, 8, 17408, 151936, 40960))},
    HubModel{"qwen3-32b", qwen3(with_heads_of(128, llama_sizes(64, 5120, 64, 8, 25600, 151936, 40960)))},
    HubModel{
        "qwen3-30b-a3b",
        qwen3(with_experts({128, 8, 768, 0}, with_heads_of(128, llama_sizes(48, 2048, 32, 4, 6144, 151936, 40960))))},
    HubModel{
        "qwen3-235b-a22b",
        qwen3(with_experts({128, 8, 1536, 0}, with_heads_of(128, llama_sizes(94, 4096, 64, 4, 12288, 151936, 40960))))},
    HubModel{"olmoe-1b-7b-0924",
             with_norms(NormPlaces::kPre, QkNorm::kFull,
                        with_experts({64, 8, 1024, 0}, llama_sizes(16, 2048, 16, 16, 1024, 50304, 4096)))},
    HubModel{"phi-3.5-moe", with_experts({16, 2, 6400, 0}, llama_sizes(32, 4096, 32, 8, 6400, 32064, 131072))},
    HubModel{"deepseek-v2-lite",
             with_latents({0, 512, 128, 64, 128},
                          with_experts({64, 6, 1408, 2816, 1}, llama_sizes(27, 2048, 16, 16, 10944, 102400, 163840)))},
    HubModel{"deepseek-v2",
             with_latents(kDeepSeekLatents, with_experts({160, 6, 1536, 3072, 1},
                                                         llama_sizes(60, 5120, 128, 128, 12288, 102400, 163840)))},
    HubModel{"deepseek-v3", deepseek_v3()},
    HubModel{"deepseek-v3.1", deepseek_v3()},
    HubModel{"kimi-k2",
             with_latents(kDeepSeekLatents,
                          with_experts({384, 8, 2048, 2048, 1}, llama_sizes(61, 7168, 64, 64, 18432, 163840, 131072)))},
    HubModel{"glm-4.7-flash",
             with_latents({768, 512, 192, 64, 256},
                          with_experts({64, 4, 1536, 1536, 1}, llama_sizes(47, 2048, 20, 20, 10240, 154880, 202752)))},
    HubModel{"minicpm3-4b",
             with_latents({768, 256, 64, 32, 64}, llama_sizes(62, 2560, 40, 40, 6400, 73448, 32768, true))},
    HubModel{"deepseek-r1-distill-qwen-7b", llama_sizes(28, 3584, 28, 4, 18944, 152064, 131072)},
    HubModel{"gemma-2b", llama_sizes(18, 2048, 8, 1, 16384, 256000, 8192, true)},
    HubModel{"gemma-7b", with_heads_of(256, llama_sizes(28, 3072, 16, 16, 24576, 256000, 8192, true))},
    HubModel{"gemma-2-2b", gemma2(with_heads_of(256, llama_sizes(26, 2304, 8, 4, 9216, 256000, 8192, true)))},
    HubModel{"gemma-2-9b", gemma2(with_heads_of(256, llama_sizes(42, 3584, 16, 8, 14336, 256000, 8192, true)))},
    HubModel{"gemma-2-27b", gemma2(with_heads_of(128, llama_sizes(46, 4608, 32, 16, 36864, 256000, 8192, true)))},
    HubModel{"gemma-3-1b", gemma3(with_heads_of(256, llama_sizes(26, 1152, 4, 1, 6912, 262144, 32768, true))),
             "attention over a window in most layers: less time"},
    HubModel{"gemma-3-4b", gemma3(with_heads_of(256, llama_sizes(34, 2560, 8, 4, 10240, 262208, 131072, true))),
             "a tower for images, and attention over a window in most layers: less time"},
    HubModel{"gemma-3-12b", gemma3(with_heads_of(256, llama_sizes(48, 3840, 16, 8, 15360, 262208, 131072, true))),
             "a tower for images, and attention over a window in most layers: less time"},
    HubModel{"gemma-3-27b", gemma3(with_heads_of(128, llama_sizes(62, 5376, 32, 16, 21504, 262208, 131072, true))),
             "a tower for images, and attention over a window in most layers: less time"},
    HubModel{"phi-3-mini", llama_sizes(32, 3072, 32, 32, 8192, 32064, 4096)},
    HubModel{"phi-4", llama_sizes(40, 5120, 40, 10, 17920, 100352, 16384)},
    HubModel{"smollm2-135m", llama_sizes(30, 576, 9, 3, 1536, 49152, 8192, true)},
    HubModel{"smollm2-360m", llama_sizes(32, 960, 15, 5, 2560, 49152, 8192, true)},
    HubModel{"smollm2-1.7b", llama_sizes(24, 2048, 32, 32, 8192, 49152, 8192, true)},
    HubModel{"yi-6b", llama_sizes(32, 4096, 32, 4, 11008, 64000, 4096)},
    HubModel{"yi-34b", llama_sizes(60, 7168, 56, 8, 20480, 64000, 4096)},
    HubModel{"olmo-2-1124-7b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(32, 4096, 32, 32, 11008, 100352, 4096))},
    HubModel{"gpt-oss-20b", gpt_oss(24, 32)},
    HubModel{"gpt-oss-120b", gpt_oss(36, 128)},
    HubModel{"opt-125m", gpt_sizes(12, 768, 12, 50272, 2048)},
    HubModel{"opt-1.3b", gpt_sizes(24, 2048, 32, 50272, 2048)},
    HubModel{"opt-2.7b", gpt_sizes(32, 2560, 32, 50272, 2048)},
    HubModel{"opt-6.7b", gpt_sizes(32, 4096, 32, 50272, 2048)},
    HubModel{"opt-13b", gpt_sizes(40, 5120, 40, 50272, 2048)},
    HubModel{"opt-30b", gpt_sizes(48, 7168, 56, 50272, 2048)},
    HubModel{"opt-66b", gpt_sizes(64, 9216, 72, 50272, 2048)},
    HubModel{"bloom-560m", rotary_gpt(24, 1024, 16, 250880, true)},
    HubModel{"bloom-1b7", rotary_gpt(24, 2048, 16, 250880, true)},
    HubModel{"bloom-3b", rotary_gpt(30, 2560, 32, 250880, true)},
    HubModel{"bloom-7b1", rotary_gpt(30, 4096, 32, 250880, true)},
    HubModel{"pythia-160m", rotary_gpt(12, 768, 12, 50304, false)},
    HubModel{"pythia-410m", rotary_gpt(24, 1024, 16, 50304, false)},
    HubModel{"pythia-1b", rotary_gpt(16, 2048, 8, 50304, false)},
    HubModel{"pythia-1.4b", rotary_gpt(24, 2048, 16, 50304, false)},
    HubModel{"pythia-2.8b", rotary_gpt(32, 2560, 32, 50304, false)},
    HubModel{"pythia-6.9b", rotary_gpt(32, 4096, 32, 50432, false)},
    HubModel{"pythia-12b", rotary_gpt(36, 5120, 40, 50688, false)},
    HubModel{"gpt-neox-20b", rotary_gpt(44, 6144, 64, 50432, false)},
    HubModel{"gpt-j-6b", rotary_gpt(28, 4096, 16, 50400, false)},
    HubModel{"bert-base-uncased", encoder_sizes(12, 768, 12, 30522), kEncoderCaveat},
    HubModel{"bert-base-cased", encoder_sizes(12, 768, 12, 28996), kEncoderCaveat},
    HubModel{"bert-base-chinese", encoder_sizes(12, 768, 12, 21128), kEncoderCaveat},
    HubModel{"bert-base-multilingual-cased", encoder_sizes(12, 768, 12, 119547), kEncoderCaveat},
    HubModel{"bert-base-multilingual-uncased", encoder_sizes(12, 768, 12, 105879), kEncoderCaveat},
    HubModel{"bert-large-uncased", encoder_sizes(24, 1024, 16, 30522), kEncoderCaveat},
    HubModel{"bert-large-cased", encoder_sizes(24, 1024, 16, 28996), kEncoderCaveat},
    HubModel{"distilbert-base-uncased", encoder_sizes(6, 768, 12, 30522), kEncoderCaveat},
    HubModel{"distilbert-base-cased", encoder_sizes(6, 768, 12, 28996), kEncoderCaveat},
    HubModel{"roberta-base", encoder_sizes(12, 768, 12, 50265), kEncoderCaveat},
    HubModel{"roberta-large", encoder_sizes(24, 1024, 16, 50265), kEncoderCaveat},
    HubModel{"distilroberta-base", encoder_sizes(6, 768, 12, 50265), kEncoderCaveat},
    HubModel{"xlm-roberta-base", encoder_sizes(12, 768, 12, 250002), kEncoderCaveat},
    HubModel{"xlm-roberta-large", encoder_sizes(24, 1024, 16, 250002), kEncoderCaveat},
};

// Hub names of presets that have another name here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kAliases = {{{"gpt2", "gpt2-124m"},
                                                                                    {"gpt2-medium", "gpt2-350m"},
                                                                                    {"gpt2-large", "gpt2-774m"},
                                                                                    {"gpt2-xl", "gpt2-1.5b"},
                                                                                    {"open_llama_7b", "llama-7b"}}};

// "meta-llama/Meta-Llama-3-8B" becomes "llama-3-8b".
std::string plain_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  std::string plain = lower_case(slash == std::string::npos ? name : name.substr(slash + 1));
  constexpr std::string_view kMaker = "meta-";
  if (plain.starts_with(kMaker)) plain.erase(0, kMaker.size());
  return plain;
}

// "qwen2.5-7b-instruct" is the model "qwen2.5-7b".
bool is_named(std::string_view name, std::string_view model) {
  return name == model || (name.starts_with(model) && (name[model.size()] == '-' || name[model.size()] == '_'));
}

// Words in a name that mean other weights than the published ones.
std::string_view storage_in(std::string_view name) {
  for (const std::string_view word : {"awq", "gptq", "bnb", "fp8", "int4", "int8", "4bit", "8bit", "mxfp4"}) {
    if (name.find(word) != std::string_view::npos) return word;
  }
  return "";
}

}  // namespace

std::optional<HubSizes> hub_model(const std::string& name) {
  const std::string plain = plain_name(name);
  const bool is_of_hub = name.find('/') != std::string::npos;  // other names are too easily mistyped
  std::optional<HubSizes> found;
  std::size_t longest = 0;
  const auto consider = [&](std::string_view known, const ModelSpec& sizes, std::string_view differs = "") {
    const bool is_it = is_of_hub ? is_named(plain, known) : plain == known;
    if (!is_it || known.size() <= longest) return;
    longest = known.size();
    found = HubSizes{sizes, {}};
    resolve(found->sizes);
    found->caveats.assumed.push_back(fmt::format("the sizes of {}: it is named {}", known, name));
    if (!differs.empty()) found->caveats.not_modelled.emplace_back(differs);
    note_layers_without_experts(found->sizes, found->caveats);
  };
  for (const std::string& preset : model_preset_names()) consider(preset, model_preset(preset));
  for (const HubModel& model : kHubModels) consider(model.name, model.sizes, model.differs);
  for (const auto& [alias, preset] : kAliases) {
    if (plain == alias) consider(alias, model_preset(std::string(preset)));
  }
  if (!found) return found;
  if (const std::string_view word = storage_in(plain); !word.empty())
    found->caveats.not_modelled.push_back(fmt::format("weights that are quantised ({}): less memory", word));
  return found;
}

std::vector<std::string> hub_model_names() {
  std::vector<std::string> names;
  for (const HubModel& model : kHubModels) names.emplace_back(model.name);
  return names;
}

}  // namespace krigtune::workload
