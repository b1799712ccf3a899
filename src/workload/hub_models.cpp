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

// Nemotron 3 (arXiv:2512.20856): every layer is one of Mamba-2, attention and experts, without gates in the MLPs. The
// layers that predict further tokens are not counted.
constexpr ModelSpec nemotron_3(std::int64_t hidden, std::int64_t heads, const LayerCounts& layers,
                               std::int64_t mamba_heads, const ExpertSpec& experts) {
  ModelSpec model = llama_sizes(layers.mamba + layers.attention + layers.experts, hidden, heads, 2, experts.ffn_hidden,
                                131072, 262144);
  if (constexpr std::int64_t kHead = 128; heads * kHead != hidden) model.head_dim = kHead;
  model.gated_mlp = false;
  model.layer_kinds = layers;
  model.mamba.heads = mamba_heads;
  model.experts = experts;
  return model;
}

// Gated delta rules in three of four layers. Attention has a gate of its output's width, which is planned as other
// parameters, spread over all layers; so is the gate of the shared expert.
constexpr ModelSpec qwen3_next() {
  ModelSpec model = llama_sizes(48, 2048, 16, 2, 5120, 151936, 262144);
  model.head_dim = 256;
  model.qk_norm = QkNorm::kHead;
  model.experts = {512, 10, 512, 512};
  model.layer_kinds = {.delta_experts = 36, .attention_experts = 12};
  model.delta.key_heads = 16;
  model.delta.value_heads = 32;
  model.others.of_block = 2048 + 2048 * 4096 * 12 / 48;
  return model;
}

// The tower for images and what joins it to the language model: their parameters count, and what they compute does not.
constexpr ModelSpec with_tower(std::int64_t parameters, ModelSpec model) {
  model.others.of_model += parameters;
  return model;
}

constexpr ModelSpec with_biases(bool qkv, bool out, bool mlp, ModelSpec model) {
  model.qkv_bias = qkv;
  model.out_bias = out;
  model.mlp_bias = mlp;
  return model;
}

// Falcon and MPT: no biases in the products.
constexpr ModelSpec without_biases(ModelSpec model) { return with_biases(false, false, false, model); }

constexpr ModelSpec starcoder2(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                               bool tied) {
  ModelSpec model = rotary_gpt(layers, hidden, heads, 49152, tied);
  model.kv_heads = kv_heads;
  model.seq_len = 16384;
  return model;
}

constexpr ModelSpec cohere(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                           std::int64_t ffn_hidden) {
  ModelSpec model = llama_sizes(layers, hidden, heads, kv_heads, ffn_hidden, 256000, 8192, true);
  model.norm_places = NormPlaces::kShared;
  return model;
}

// The padding token's two positions of RoBERTa's 514 are no positions of a sequence.
constexpr std::int64_t kEncoderLength = 512;

constexpr ModelSpec encoder_sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                                  std::int64_t length = kEncoderLength) {
  ModelSpec model = gpt_sizes(layers, hidden, heads, vocab, length);
  constexpr std::int64_t kTokenTypes = 2;
  model.others.of_model = encoder_head(hidden) + kTokenTypes * hidden + vocab;
  return model;
}

constexpr std::string_view kImages = "a tower for images, of which only the parameters count: more memory and time";
constexpr std::string_view kImagesAndWindow =
    "a tower for images, of which only the parameters count, and attention over a window in most layers: another time";
constexpr std::string_view kWindow = "attention over a window in most layers: less time";

struct HubModel {
  std::string_view name;  ///< without the organisation, in lower case; "-instruct" and the like may follow
  ModelSpec sizes;
  std::string_view differs = "";       ///< what the planned model does not have, with its effect
  std::string_view also_differs = "";  ///< the same for Caveats::also_not_modelled
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
    HubModel{"qwen3-next-80b-a3b", qwen3_next(), "", kOutputGateCaveat},
    HubModel{"nvidia-nemotron-3-nano-30b-a3b",
             nemotron_3(2688, 32, {.mamba = 23, .attention = 6, .experts = 23}, 64, {128, 6, 1856, 3712})},
    HubModel{"nvidia-nemotron-3-super-120b-a12b",
             nemotron_3(4096, 32, {.mamba = 40, .attention = 8, .experts = 40}, 128,
                        {512, 22, 2688, 5376, 0, DensePlaces::kFirst, 1024}),
             "", kFurtherTokens},
    HubModel{"nvidia-nemotron-3-ultra-550b-a55b",
             nemotron_3(8192, 64, {.mamba = 48, .attention = 12, .experts = 48}, 256,
                        {512, 22, 5120, 10240, 0, DensePlaces::kFirst, 2048}),
             "", kFurtherTokens},
    HubModel{"nvidia-nemotron-3.5-lightning-30b-a3b",
             nemotron_3(2688, 32, {.mamba = 23, .attention = 6, .experts = 23}, 64, {128, 6, 1856, 3712}), "",
             kFurtherTokens},
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
    HubModel{"moonlight-16b-a3b",
             with_latents({0, 512, 128, 64, 128},
                          with_experts({64, 6, 1408, 2816, 1}, llama_sizes(27, 2048, 16, 16, 11264, 163840, 8192)))},
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
    HubModel{"gemma-3-1b", gemma3(with_heads_of(256, llama_sizes(26, 1152, 4, 1, 6912, 262144, 32768, true))), kWindow},
    HubModel{"gemma-3-270m", gemma3(with_heads_of(256, llama_sizes(18, 640, 4, 1, 2048, 262144, 32768, true))),
             kWindow},
    HubModel{
        "gemma-3-4b",
        with_tower(419'816'304, gemma3(with_heads_of(256, llama_sizes(34, 2560, 8, 4, 10240, 262208, 131072, true)))),
        kImagesAndWindow},
    HubModel{
        "gemma-3-12b",
        with_tower(421'290'864, gemma3(with_heads_of(256, llama_sizes(48, 3840, 16, 8, 15360, 262208, 131072, true)))),
        kImagesAndWindow},
    HubModel{
        "gemma-3-27b",
        with_tower(423'059'952, gemma3(with_heads_of(128, llama_sizes(62, 5376, 32, 16, 21504, 262208, 131072, true)))),
        kImagesAndWindow},
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

// Published later, or fine-tuned from others.
constexpr std::array kFurtherModels = {
    HubModel{"qwen-1_8b", llama_sizes(24, 2048, 16, 16, 5504, 151936, 8192)},
    HubModel{"qwen-7b", llama_sizes(32, 4096, 32, 32, 11008, 151936, 8192)},
    HubModel{"qwen-14b", llama_sizes(40, 5120, 40, 40, 13696, 152064, 8192)},
    HubModel{"qwen-72b", llama_sizes(80, 8192, 64, 64, 24576, 152064, 32768)},
    HubModel{"qwen1.5-1.8b", llama_sizes(24, 2048, 16, 16, 5504, 151936, 32768)},
    HubModel{"qwen1.5-4b", llama_sizes(40, 2560, 20, 20, 6912, 151936, 32768)},
    HubModel{"qwen1.5-7b", llama_sizes(32, 4096, 32, 32, 11008, 151936, 32768)},
    HubModel{"qwen1.5-14b", llama_sizes(40, 5120, 40, 40, 13696, 152064, 32768)},
    HubModel{"qwen1.5-32b", llama_sizes(64, 5120, 40, 8, 27392, 152064, 32768)},
    HubModel{"qwen1.5-72b", llama_sizes(80, 8192, 64, 64, 24576, 152064, 32768)},
    HubModel{"qwen1.5-moe-a2.7b", with_experts({60, 4, 1408, 5632}, llama_sizes(24, 2048, 16, 16, 5632, 151936, 8192))},
    HubModel{"qwen2-0.5b", llama_sizes(24, 896, 14, 2, 4864, 151936, 131072, true)},
    HubModel{"qwen2-1.5b", llama_sizes(28, 1536, 12, 2, 8960, 151936, 131072, true)},
    HubModel{"qwen2-72b", llama_sizes(80, 8192, 64, 8, 29568, 152064, 131072)},
    HubModel{"qwen2-57b-a14b", with_experts({64, 8, 2560, 20480}, llama_sizes(28, 3584, 28, 4, 18944, 151936, 131072))},
    HubModel{
        "qwen3-480b-a35b",
        qwen3(with_experts({160, 8, 2560, 0}, with_heads_of(128, llama_sizes(62, 6144, 96, 8, 8192, 151936, 262144))))},
    HubModel{"qwen2-vl-2b", with_tower(665'272'000, llama_sizes(28, 1536, 12, 2, 8960, 151936, 32768, true)), kImages},
    HubModel{"qwen2-vl-7b", with_tower(675'760'000, llama_sizes(28, 3584, 28, 4, 18944, 152064, 32768)), kImages},
    HubModel{"qwen2-vl-72b", with_tower(699'880'000, llama_sizes(80, 8192, 64, 8, 29568, 152064, 32768)), kImages},
    HubModel{"qwen2.5-vl-3b", with_tower(668'684'000, llama_sizes(36, 2048, 16, 2, 11008, 151936, 128000, true)),
             kImages},
    HubModel{"qwen2.5-vl-7b", with_tower(676'550'000, llama_sizes(28, 3584, 28, 4, 18944, 152064, 128000)), kImages},
    HubModel{"qwen2.5-vl-32b", with_tower(689'000'000, llama_sizes(64, 5120, 40, 8, 27648, 152064, 128000)), kImages},
    HubModel{"qwen2.5-vl-72b", with_tower(704'600'000, llama_sizes(80, 8192, 64, 8, 29568, 152064, 128000)), kImages},
    HubModel{"qwen3-vl-2b", with_tower(406'958'000, qwen3(llama_sizes(28, 2048, 16, 8, 6144, 151936, 262144, true))),
             kImages},
    HubModel{
        "qwen3-vl-4b",
        with_tower(415'347'000, qwen3(with_heads_of(128, llama_sizes(36, 2560, 32, 8, 9728, 151936, 262144, true)))),
        kImages},
    HubModel{"qwen3-vl-8b", with_tower(576'389'000, qwen3(llama_sizes(36, 4096, 32, 8, 12288, 151936, 262144))),
             kImages},
    HubModel{"qwen3-vl-32b",
             with_tower(596'000'000, qwen3(with_heads_of(128, llama_sizes(64, 5120, 64, 8, 25600, 151936, 262144)))),
             kImages},
    HubModel{"qwen3-vl-30b-a3b",
             with_tower(538'600'000,
                        qwen3(with_experts({128, 8, 768, 0},
                                           with_heads_of(128, llama_sizes(48, 2048, 32, 4, 6144, 151936, 262144))))),
             kImages},
    HubModel{"llava-1.5-7b", with_tower(324'749'000, llama_sizes(32, 4096, 32, 32, 11008, 32064, 4096)), kImages},
    HubModel{"llava-1.5-13b", with_tower(334'700'000, llama_sizes(40, 5120, 40, 40, 13824, 32064, 4096)), kImages},
    HubModel{"llava-v1.6-mistral-7b", with_tower(324'500'000, llama_sizes(32, 4096, 32, 8, 14336, 32064, 32768)),
             kImages},
    HubModel{"internvl2_5-1b", with_tower(308'400'000, llama_sizes(24, 896, 14, 2, 4864, 151674, 32768)), kImages},
    HubModel{"internvl3-1b", with_tower(308'400'000, llama_sizes(24, 896, 14, 2, 4864, 151674, 32768)), kImages},
    HubModel{"internvl3-2b", with_tower(312'000'000, llama_sizes(28, 1536, 12, 2, 8960, 151674, 32768)), kImages},
    HubModel{"internvl3-8b", with_tower(331'000'000, llama_sizes(28, 3584, 28, 4, 18944, 151674, 32768)), kImages},
    HubModel{"deepseek-r1-distill-qwen-1.5b", llama_sizes(28, 1536, 12, 2, 8960, 151936, 131072)},
    HubModel{"deepseek-r1-distill-qwen-14b", llama_sizes(48, 5120, 40, 8, 13824, 152064, 131072)},
    HubModel{"deepseek-r1-distill-qwen-32b", llama_sizes(64, 5120, 40, 8, 27648, 152064, 131072)},
    HubModel{"deepseek-r1-distill-llama-8b", llama_sizes(32, 4096, 32, 8, 14336, 128256, 131072)},
    HubModel{"deepseek-r1-distill-llama-70b", llama_sizes(80, 8192, 64, 8, 28672, 128256, 131072)},
    HubModel{"deepseek-r1-0528-qwen3-8b", qwen3(llama_sizes(36, 4096, 32, 8, 12288, 151936, 131072))},
    HubModel{"deepseek-coder-1.3b", llama_sizes(24, 2048, 16, 16, 5504, 32256, 16384)},
    HubModel{"deepseek-coder-6.7b", llama_sizes(32, 4096, 32, 32, 11008, 32256, 16384)},
    HubModel{"deepseek-coder-33b", llama_sizes(62, 7168, 56, 8, 19200, 32256, 16384)},
    HubModel{"deepseek-llm-7b", llama_sizes(30, 4096, 32, 32, 11008, 102400, 4096)},
    HubModel{"deepseek-math-7b", llama_sizes(30, 4096, 32, 32, 11008, 102400, 4096)},
    HubModel{"deepseek-llm-67b", llama_sizes(95, 8192, 64, 8, 22016, 102400, 4096)},
    HubModel{"deepseek-moe-16b",
             with_experts({64, 6, 1408, 2816, 1}, llama_sizes(28, 2048, 16, 16, 10944, 102400, 4096))},
    HubModel{"llama-30b", llama_sizes(60, 6656, 52, 52, 17920, 32000, 2048)},
    HubModel{"llama-65b", llama_sizes(80, 8192, 64, 64, 22016, 32000, 2048)},
    HubModel{"codellama-7b", llama_sizes(32, 4096, 32, 32, 11008, 32016, 16384)},
    HubModel{"codellama-13b", llama_sizes(40, 5120, 40, 40, 13824, 32016, 16384)},
    HubModel{"codellama-34b", llama_sizes(48, 8192, 64, 8, 22016, 32000, 16384)},
    HubModel{"codellama-70b", llama_sizes(80, 8192, 64, 8, 28672, 32016, 16384)},
    HubModel{"llama-4-scout-17b-16e",
             with_tower(874'000'000,
                        with_experts({16, 1, 8192, 8192},
                                     with_heads_of(128, llama_sizes(48, 5120, 40, 8, 16384, 202048, 10485760)))),
             kImages},
    HubModel{
        "llama-4-maverick-17b-128e",
        with_tower(874'000'000, with_experts({128, 1, 8192, 8192, 24, DensePlaces::kSpread},
                                             with_heads_of(128, llama_sizes(48, 5120, 40, 8, 16384, 202048, 1048576)))),
        kImages},
    HubModel{"llama-3.1-tulu-3-8b", llama_sizes(32, 4096, 32, 8, 14336, 128264, 131072)},
    HubModel{"llama-3.1-tulu-3-70b", llama_sizes(80, 8192, 64, 8, 28672, 128264, 131072)},
    HubModel{"llama-3.1-nemotron-nano-8b", llama_sizes(32, 4096, 32, 8, 14336, 128256, 131072)},
    HubModel{"llama-3.1-nemotron-70b", llama_sizes(80, 8192, 64, 8, 28672, 128256, 131072)},
    HubModel{"tiny-llama-1.1b", llama_sizes(22, 2048, 32, 4, 5632, 32000, 2048)},
    HubModel{"zephyr-7b", llama_sizes(32, 4096, 32, 8, 14336, 32000, 32768)},
    HubModel{"ministral-8b-instruct-2410", llama_sizes(36, 4096, 32, 8, 12288, 131072, 32768)},
    HubModel{"codestral-22b", llama_sizes(56, 6144, 48, 8, 16384, 32768, 32768)},
    HubModel{"mistral-small-instruct-2409", llama_sizes(56, 6144, 48, 8, 16384, 32768, 32768)},
    HubModel{"mistral-small-24b", with_heads_of(128, llama_sizes(40, 5120, 32, 8, 32768, 131072, 32768))},
    HubModel{"mistral-small-3.1-24b",
             with_tower(439'000'000, with_heads_of(128, llama_sizes(40, 5120, 32, 8, 32768, 131072, 131072))), kImages},
    HubModel{"mistral-small-3.2-24b",
             with_tower(439'000'000, with_heads_of(128, llama_sizes(40, 5120, 32, 8, 32768, 131072, 131072))), kImages},
    HubModel{"magistral-small-2506", with_heads_of(128, llama_sizes(40, 5120, 32, 8, 32768, 131072, 40960))},
    HubModel{"devstral-small-2505", with_heads_of(128, llama_sizes(40, 5120, 32, 8, 32768, 131072, 131072))},
    HubModel{"devstral-small-2507", with_heads_of(128, llama_sizes(40, 5120, 32, 8, 32768, 131072, 131072))},
    HubModel{"mistral-large-instruct-2407", llama_sizes(88, 12288, 96, 8, 28672, 32768, 131072)},
    HubModel{"minimax-m2",
             with_norms(NormPlaces::kPre, QkNorm::kFull,
                        with_experts({256, 8, 1536, 0},
                                     with_heads_of(128, llama_sizes(62, 3072, 48, 8, 1536, 200064, 196608))))},
    HubModel{"glm-4-9b", with_biases(true, false, false, llama_sizes(40, 4096, 32, 2, 13696, 151552, 131072))},
    HubModel{"glm-4-32b", with_norms(NormPlaces::kSandwich, QkNorm::kNone,
                                     with_heads_of(128, llama_sizes(61, 6144, 48, 2, 23040, 151552, 32768)))},
    HubModel{"glm-4.5-air",
             with_biases(true, false, false,
                         with_experts({128, 8, 1408, 1408, 1},
                                      with_heads_of(128, llama_sizes(46, 4096, 96, 8, 10944, 151552, 131072)))),
             "", kFurtherTokens},
    HubModel{
        "glm-4.5",
        with_norms(NormPlaces::kPre, QkNorm::kHead,
                   with_biases(true, false, false,
                               with_experts({160, 8, 1536, 1536, 3},
                                            with_heads_of(128, llama_sizes(92, 5120, 96, 8, 12288, 151552, 131072))))),
        "", kFurtherTokens},
    HubModel{
        "glm-4.6",
        with_norms(NormPlaces::kPre, QkNorm::kHead,
                   with_biases(true, false, false,
                               with_experts({160, 8, 1536, 1536, 3},
                                            with_heads_of(128, llama_sizes(92, 5120, 96, 8, 12288, 151552, 202752))))),
        "", kFurtherTokens},
    HubModel{"gemma-1.1-2b", llama_sizes(18, 2048, 8, 1, 16384, 256000, 8192, true)},
    HubModel{"gemma-1.1-7b", with_heads_of(256, llama_sizes(28, 3072, 16, 16, 24576, 256000, 8192, true))},
    HubModel{"codegemma-2b", llama_sizes(18, 2048, 8, 1, 16384, 256000, 8192, true)},
    HubModel{"codegemma-7b", with_heads_of(256, llama_sizes(28, 3072, 16, 16, 24576, 256000, 8192, true))},
    HubModel{"phi-3-medium", llama_sizes(40, 5120, 40, 10, 17920, 32064, 4096)},
    HubModel{"phi-3.5-mini", llama_sizes(32, 3072, 32, 32, 8192, 32064, 131072)},
    HubModel{"phi-4-mini", llama_sizes(32, 3072, 24, 8, 8192, 200064, 131072, true)},
    HubModel{"phi-2", with_norms(NormPlaces::kShared, QkNorm::kNone, rotary_gpt(32, 2560, 32, 51200, false))},
    HubModel{"phi-1_5", with_norms(NormPlaces::kShared, QkNorm::kNone, rotary_gpt(24, 2048, 32, 51200, false))},
    HubModel{"smollm-135m", llama_sizes(30, 576, 9, 3, 1536, 49152, 2048, true)},
    HubModel{"smollm-360m", llama_sizes(32, 960, 15, 5, 2560, 49152, 2048, true)},
    HubModel{"smollm-1.7b", llama_sizes(24, 2048, 32, 32, 8192, 49152, 2048, true)},
    HubModel{"smollm3-3b", llama_sizes(36, 2048, 16, 4, 11008, 128256, 65536, true)},
    HubModel{"yi-9b", llama_sizes(48, 4096, 32, 4, 11008, 64000, 4096)},
    HubModel{"yi-1.5-6b", llama_sizes(32, 4096, 32, 4, 11008, 64000, 4096)},
    HubModel{"yi-1.5-9b", llama_sizes(48, 4096, 32, 4, 11008, 64000, 4096)},
    HubModel{"yi-1.5-34b", llama_sizes(60, 7168, 56, 8, 20480, 64000, 4096)},
    HubModel{"olmo-1b", llama_sizes(16, 2048, 16, 16, 8192, 50304, 2048, true)},
    HubModel{"olmo-7b", llama_sizes(32, 4096, 32, 32, 11008, 50304, 2048)},
    HubModel{"olmo-2-0425-1b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(16, 2048, 16, 16, 8192, 100352, 4096))},
    HubModel{"olmo-2-1124-13b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(40, 5120, 40, 40, 13824, 100352, 4096))},
    HubModel{"olmo-2-0325-32b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(64, 5120, 40, 8, 27648, 100352, 4096))},
    HubModel{"olmo-3-7b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(32, 4096, 32, 32, 11008, 100278, 65536)), "",
             kWindow},
    HubModel{"olmo-3-1025-7b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(32, 4096, 32, 32, 11008, 100278, 65536)), "",
             kWindow},
    HubModel{"olmo-3-32b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(64, 5120, 40, 8, 27648, 100278, 65536)), "",
             kWindow},
    HubModel{"olmo-3-1125-32b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(64, 5120, 40, 8, 27648, 100278, 65536)), "",
             kWindow},
    HubModel{"olmo-3.1-32b",
             with_norms(NormPlaces::kPost, QkNorm::kFull, llama_sizes(64, 5120, 40, 8, 27648, 100278, 65536)), "",
             kWindow},
    HubModel{"internlm2-1_8b", llama_sizes(24, 2048, 16, 8, 8192, 92544, 32768)},
    HubModel{"internlm2-7b", llama_sizes(32, 4096, 32, 8, 14336, 92544, 32768)},
    HubModel{"internlm2-20b", llama_sizes(48, 6144, 48, 8, 16384, 92544, 32768)},
    HubModel{"internlm2_5-7b", llama_sizes(32, 4096, 32, 8, 14336, 92544, 32768)},
    HubModel{"internlm3-8b", with_heads_of(128, llama_sizes(48, 4096, 32, 2, 10240, 128512, 32768))},
    HubModel{"baichuan2-7b", llama_sizes(32, 4096, 32, 32, 11008, 125696, 4096)},
    HubModel{"baichuan2-13b", llama_sizes(40, 5120, 40, 40, 13696, 125696, 4096)},
    HubModel{"falcon3-1b", with_heads_of(256, llama_sizes(18, 2048, 8, 4, 8192, 131072, 4096))},
    HubModel{"falcon3-3b", with_heads_of(256, llama_sizes(22, 3072, 12, 4, 9216, 131072, 32768))},
    HubModel{"falcon3-7b", with_heads_of(256, llama_sizes(28, 3072, 12, 4, 23040, 131072, 32768))},
    HubModel{"falcon3-10b", with_heads_of(256, llama_sizes(40, 3072, 12, 4, 23040, 131072, 32768))},
    HubModel{"granite-3.0-2b", llama_sizes(40, 2048, 32, 8, 8192, 49155, 4096, true)},
    HubModel{"granite-3.1-2b", llama_sizes(40, 2048, 32, 8, 8192, 49155, 131072, true)},
    HubModel{"granite-3.3-2b", llama_sizes(40, 2048, 32, 8, 8192, 49159, 131072, true)},
    HubModel{"granite-3.0-8b", llama_sizes(40, 4096, 32, 8, 12800, 49155, 4096, true)},
    HubModel{"granite-3.1-8b", llama_sizes(40, 4096, 32, 8, 12800, 49155, 131072, true)},
    HubModel{"granite-3.3-8b", llama_sizes(40, 4096, 32, 8, 12800, 49159, 131072, true)},
    HubModel{"exaone-3.5-2.4b", llama_sizes(30, 2560, 32, 8, 7168, 102400, 32768, true)},
    HubModel{"exaone-3.5-7.8b", llama_sizes(32, 4096, 32, 8, 14336, 102400, 32768)},
    HubModel{"stablelm-3b-4e1t", llama_sizes(32, 2560, 32, 32, 6912, 50304, 4096)},
    HubModel{"stablelm-2-1_6b", llama_sizes(24, 2048, 32, 32, 5632, 100352, 4096)},
    HubModel{"c4ai-command-r7b-12-2024", cohere(32, 4096, 32, 8, 14336)},
    HubModel{"aya-expanse-8b", cohere(32, 4096, 32, 8, 14336)},
    HubModel{"c4ai-command-r-v01", cohere(40, 8192, 64, 64, 22528)},
    HubModel{"starcoder2-3b", starcoder2(30, 3072, 24, 2, true)},
    HubModel{"starcoder2-7b", starcoder2(32, 4608, 36, 4, true)},
    HubModel{"starcoder2-15b", starcoder2(40, 6144, 48, 4, false)},
    HubModel{"mpt-7b", without_biases(rotary_gpt(32, 4096, 32, 50432, true))},
    HubModel{"gpt-neo-125m", gpt_sizes(12, 768, 12, 50257, 2048)},
    HubModel{"gpt-neo-1.3b", gpt_sizes(24, 2048, 16, 50257, 2048)},
    HubModel{"gpt-neo-2.7b", gpt_sizes(32, 2560, 20, 50257, 2048)},
    HubModel{"pythia-14m", rotary_gpt(6, 128, 4, 50304, false)},
    HubModel{"pythia-70m", rotary_gpt(6, 512, 8, 50304, false)},
    HubModel{"bloom-1b1", rotary_gpt(24, 1536, 16, 250880, true)},
    HubModel{"bloomz-560m", rotary_gpt(24, 1024, 16, 250880, true)},
    HubModel{"bloomz-1b1", rotary_gpt(24, 1536, 16, 250880, true)},
    HubModel{"bloomz-1b7", rotary_gpt(24, 2048, 16, 250880, true)},
    HubModel{"bloomz-3b", rotary_gpt(30, 2560, 32, 250880, true)},
    HubModel{"bloomz-7b1", rotary_gpt(30, 4096, 32, 250880, true)},
    HubModel{"bge-small-en", encoder_sizes(12, 384, 12, 30522), kEncoderCaveat},
    HubModel{"bge-base-en", encoder_sizes(12, 768, 12, 30522), kEncoderCaveat},
    HubModel{"bge-large-en", encoder_sizes(24, 1024, 16, 30522), kEncoderCaveat},
    HubModel{"bge-large-zh", encoder_sizes(24, 1024, 16, 21128), kEncoderCaveat},
    HubModel{"bge-m3", encoder_sizes(24, 1024, 16, 250002, 8192), kEncoderCaveat},
    HubModel{"e5-base-v2", encoder_sizes(12, 768, 12, 30522), kEncoderCaveat},
    HubModel{"e5-large-v2", encoder_sizes(24, 1024, 16, 30522), kEncoderCaveat},
    HubModel{"all-minilm-l6-v2", encoder_sizes(6, 384, 12, 30522), kEncoderCaveat},
};

// Hub names of presets that have another name here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kAliases = {{{"gpt2", "gpt2-124m"},
                                                                                    {"gpt2-medium", "gpt2-350m"},
                                                                                    {"gpt2-large", "gpt2-774m"},
                                                                                    {"gpt2-xl", "gpt2-1.5b"},
                                                                                    {"open_llama_7b", "llama-7b"}}};

// "meta-llama/Meta-Llama-3-8B" becomes "llama-3-8b", and "Qwen/Qwen2.5-Coder-7B", which has the sizes of Qwen2.5-7B,
// "qwen2.5-7b".
std::string plain_name(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  std::string plain = lower_case(slash == std::string::npos ? name : name.substr(slash + 1));
  constexpr std::string_view kMaker = "meta-";
  if (plain.starts_with(kMaker)) plain.erase(0, kMaker.size());
  if (!plain.starts_with("qwen")) return plain;
  for (const std::string_view purpose : {"-coder-", "-math-"}) {
    if (const std::size_t at = plain.find(purpose); at != std::string::npos) plain.erase(at, purpose.size() - 1);
  }
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
  const auto consider = [&](std::string_view known, const ModelSpec& sizes, std::string_view differs = "",
                            std::string_view also_differs = "") {
    const bool is_it = is_of_hub ? is_named(plain, known) : plain == known;
    if (!is_it || known.size() <= longest) return;
    longest = known.size();
    found = HubSizes{sizes, {}};
    resolve(found->sizes);
    found->caveats.assumed.push_back(fmt::format("the sizes of {}: it is named {}", known, name));
    if (!differs.empty()) found->caveats.not_modelled.emplace_back(differs);
    if (!also_differs.empty()) found->caveats.also_not_modelled.emplace_back(also_differs);
  };
  for (const std::string& preset : model_preset_names()) consider(preset, model_preset(preset));
  for (const HubModel& model : kHubModels) consider(model.name, model.sizes, model.differs, model.also_differs);
  for (const HubModel& model : kFurtherModels) consider(model.name, model.sizes, model.differs, model.also_differs);
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
  for (const HubModel& model : kFurtherModels) names.emplace_back(model.name);
  return names;
}

}  // namespace krigtune::workload
