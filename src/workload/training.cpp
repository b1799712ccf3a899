#include "workload/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace krigtune::workload {
namespace {

constexpr EnumWords<AdaptedLayer, kAdaptedLayerCount> kLayerWords = {{{"q", AdaptedLayer::kQuery},
                                                                      {"k", AdaptedLayer::kKey},
                                                                      {"v", AdaptedLayer::kValue},
                                                                      {"o", AdaptedLayer::kOutput},
                                                                      {"gate", AdaptedLayer::kGate},
                                                                      {"up", AdaptedLayer::kUp},
                                                                      {"down", AdaptedLayer::kDown}}};

constexpr EnumWords<BaseFormat, 4> kBaseWords = {{{"model", BaseFormat::kAsModel},
                                                  {"int8", BaseFormat::kInt8},
                                                  {"nf4", BaseFormat::kNf4},
                                                  {"nf4-double", BaseFormat::kNf4Double}}};

constexpr EnumWords<Kernels, 2> kKernelWords = {{{"fused", Kernels::kFused}, {"eager", Kernels::kEager}}};
constexpr EnumWords<LossKind, 2> kLossWords = {{{"plain", LossKind::kPlain}, {"fused", LossKind::kFused}}};
constexpr EnumWords<OptimizerStates, 2> kStateWords = {
    {{"fp32", OptimizerStates::kFp32}, {"model", OptimizerStates::kAsModel}}};

constexpr EnumWords<StateType, 4> kStateTypeWords = {
    {{"fp32", StateType::kFp32}, {"bf16", StateType::kBf16}, {"fp16", StateType::kFp16}, {"fp8", StateType::kFp8}}};

constexpr const char* kAllLinear = "all-linear";

// Names of modules: transformers' (Llama, GPT-2, GPT-NeoX, Falcon, Phi, ChatGLM, Baichuan, InternLM), torchtune's,
// LitGPT's. Letters are those of kLayerWords: q k v o g(ate) u(p) d(own).
constexpr std::pair<std::string_view, std::string_view> kModules[] = {
    {"q_proj", "q"},
    {"k_proj", "k"},
    {"v_proj", "v"},
    {"o_proj", "o"},
    {"out_proj", "o"},
    {"output_proj", "o"},
    {"gate_proj", "g"},
    {"up_proj", "u"},
    {"down_proj", "d"},
    {"w1", "g"},
    {"w2", "d"},
    {"w3", "u"},
    {"fc1", "u"},
    {"fc2", "d"},
    {"qkv", "qkv"},
    {"qkv_proj", "qkv"},
    {"gate_up_proj", "gu"},
    {"c_attn", "qkv"},
    {"c_fc", "u"},
    {"query_key_value", "qkv"},
    {"wqkv", "qkv"},
    {"w_pack", "qkv"},
    {"attention.dense", "o"},
    {"dense_h_to_4h", "u"},
    {"dense_4h_to_h", "d"},
    {"attn", "qkvo"},
    {"mlp", "gud"},
    {"c_proj", "od"},
    {"all", "qkvogud"},
    {kAllLinear, "qkvogud"},
    {"all_linear", "qkvogud"},
};

AdaptedLayer layer_of(char letter) {
  constexpr std::string_view kLetters = "qkvogud";
  return static_cast<AdaptedLayer>(kLetters.find(letter));
}

// Takes one name or several, in a list or between commas, as frameworks write them.
std::vector<std::string> names_in(const Json& json) {
  std::vector<std::string> names;
  const auto add = [&names](const Json& item) {
    if (!item.is_string()) return;
    std::string text = item.get<std::string>();
    const auto separates = [](char c) { return std::string_view("[]'\",").find(c) != std::string_view::npos; };
    std::replace_if(text.begin(), text.end(), separates, ' ');
    std::istringstream words(text);
    for (std::string name; words >> name;) names.push_back(name);
  };
  if (json.is_array()) {
    for (const Json& item : json) add(item);
  } else {
    add(json);
  }
  return names;
}

void read_targets(JsonObject& object, AdapterSpec& adapter) {
  const Json* json = object.find("targets");
  if (json == nullptr) return;
  adapter.targets = {};
  for (const std::string& name : names_in(*json)) {
    const std::vector<AdaptedLayer> layers = adapted_layers(name);
    if (layers.empty()) {
      object.fail("targets", fmt::format("the layer '{}' is not known", name),
                  "name q, k, v, o, gate, up, down, or \"all-linear\"");
    }
    for (const AdaptedLayer layer : layers) adapter.targets[static_cast<std::size_t>(layer)] = true;
  }
  if (adapter.targets == decltype(adapter.targets){})
    object.fail("targets", "names no layer", "name q, k, v, o, gate, up, down, or \"all-linear\"");
}

Json write_targets(const AdapterSpec& adapter) {
  if (adapter.targets == AdapterSpec{}.targets) return kAllLinear;
  Json names = Json::array();
  for (const auto& [word, layer] : kLayerWords) {
    if (adapter.targets_layer(layer)) names.push_back(std::string(word));
  }
  return names;
}

Block<AdapterSpec> adapter_block() {
  Block<AdapterSpec> block("Low-rank adapters, beside which all weights are frozen: {\"rank\": 16}");
  block.key("rank", &AdapterSpec::rank, integer(from_to(1, 1e5)), "rank of each adapter").no_default();
  block.custom("targets",
               schema::either({schema::text("\"all-linear\", or names between commas"), schema::list(schema::text())}),
               "the layers of a block that have an adapter: q, k, v, o, gate, up, down, or names of modules as "
               "\"q_proj\"",
               read_targets, write_targets);
  block
      .key("joined", &AdapterSpec::joined, boolean(),
           "one adapter for q, k and v together, and one for gate and up, as Megatron-Bridge's \"linear_qkv\" and "
           "\"linear_fc1\" have")
      .written_where_changed();
  block.key("dropout", &AdapterSpec::dropout, number(from_to_below(0, 1)), "probability, on the adapters' inputs");
  return block;
}

Block<StateTypes> state_types_block() {
  Block<StateTypes> block(
      "Types of what the optimizer keeps of weights in 16 bits, where they are narrower than fp32, as with Megatron's "
      "--use-precision-aware-optimizer: {\"first_moment\": \"bf16\", \"second_moment\": \"bf16\"}");
  const auto add = [&block](const char* key, StateType StateTypes::*type, const char* meaning) {
    block.key(key, type, one_of(kStateTypeWords), meaning);
  };
  add("first_moment", &StateTypes::first_moment, "of the first moment, or of the only one");
  add("second_moment", &StateTypes::second_moment, "of the second moment");
  add("masters", &StateTypes::masters,
      "of the copy of the weights that is updated; fp16 too where it has only the bits that bf16 weights lack");
  block
      .key("gradients", &StateTypes::gradients, one_of(kStateTypeWords),
           "of the gradients that Megatron and nanotron sum, and send (default: fp32; fp16 where Megatron trains in "
           "fp16)")
      .no_default()
      .written_where_changed();
  return block;
}

Block<PreciseProducts> precise_block() {
  Block<PreciseProducts> block(
      "Products of the blocks that stay in the model's type where \"precision\" names fp8 or fp4: {\"attention\": "
      "true, "
      "\"last_layers\": 14}");
  block.key("attention", &PreciseProducts::attention, boolean(), "those before and after attention");
  block.key("latents", &PreciseProducts::latents, boolean(), "those to and from the latents of experts");
  block.key("mixer_outputs", &PreciseProducts::mixer_outputs, boolean(),
            "those after state-space layers and linear attention are in fp8 where the others are in fp4");
  block.key("last_layers", &PreciseProducts::last_layers, integer(from_to(0, 1e4)),
            "all products of so many last layers");
  return block;
}

}  // namespace

const char* to_string(AdaptedLayer layer) { return kLayerWords[static_cast<std::size_t>(layer)].first.data(); }

bool AdapterSpec::joins(const std::vector<AdaptedLayer>& layers) const {
  return joined && std::ranges::all_of(layers, [this](AdaptedLayer layer) { return targets_layer(layer); });
}

std::optional<double> TrainingSpec::base_bits() const {
  switch (base) {
    case BaseFormat::kAsModel:
      return std::nullopt;
    case BaseFormat::kInt8:
      return 8.0;
    case BaseFormat::kNf4:
      return 4.0 + 32.0 / 64.0;
    case BaseFormat::kNf4Double:
      return 4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0);
  }
  return std::nullopt;
}

std::vector<AdaptedLayer> adapted_layers(std::string_view name) {
  for (const auto& [word, layer] : kLayerWords) {
    if (word == name) return {layer};
  }
  const std::string lower = lower_case(std::string(name));
  // "model.layers.0.self_attn.q_proj" names a module by its path.
  for (const auto& [module, letters] : kModules) {
    if (lower != module && !lower.ends_with("." + std::string(module))) continue;
    std::vector<AdaptedLayer> layers;
    for (const char letter : letters) layers.push_back(layer_of(letter));
    return layers;
  }
  return {};
}

std::int64_t fused_loss_parts(std::int64_t vocab, std::int64_t hidden) { return (vocab + hidden - 1) / hidden; }

namespace {

// How products are computed.
void add_products(Block<TrainingSpec>& block) {
  block.block("precise", &TrainingSpec::precise, precise_block()).written_where_changed();
  block
      .key("fp8_attention", &TrainingSpec::fp8_attention, boolean(),
           "the products of attention itself are in fp8, as with fp8_dot_product_attention of Megatron Core")
      .written_where_changed();
  block
      .key("fused_experts", &TrainingSpec::fused_experts, boolean(),
           "one kernel computes the products of all experts of a rank, as with Megatron's "
           "--use-transformer-engine-op-fuser; otherwise Megatron calls a product for each expert")
      .written_where_changed();
}

}  // namespace

Block<TrainingSpec> training_block() {
  Block<TrainingSpec> block(
      "How the model is trained. By default all weights are; for adapters: {\"lora\": {\"rank\": 16}, \"base\": "
      "\"nf4\"}");
  block.block("lora", &TrainingSpec::lora, adapter_block()).written_where_changed();
  block.key("base", &TrainingSpec::base, one_of(kBaseWords),
            "how the frozen matrices of the blocks are stored: in the model's type, or quantised to 8 bits, to 4 bits, "
            "or to 4 bits with quantised constants");
  block
      .key("kernels", &TrainingSpec::kernels, one_of(kKernelWords),
           "norms and gated activations: fused kernels (Megatron, Liger), or eager ones as in Hugging Face's models, "
           "which keep more for the backward pass (default: eager with the frameworks deepspeed and fsdp)")
      .no_default()
      .written_where_changed();
  block.key("compile", &TrainingSpec::compile, boolean(), "the model is compiled (torch.compile): kernels are fused")
      .written_where_changed();
  block
      .key("loss", &TrainingSpec::loss, one_of(kLossWords),
           "fused: head and loss are computed for some tokens after the other, so that the logits never exist whole")
      .written_where_changed();
  block
      .key("states", &TrainingSpec::states, one_of(kStateWords),
           "what the optimizer keeps of weights in 16 bits: an fp32 copy and moments in fp32, or no copy and moments "
           "in the model's type")
      .written_where_changed();
  block.block("state_types", &TrainingSpec::state_types, state_types_block()).written_where_changed();
  add_products(block);
  block.check([](JsonObject& object, const TrainingSpec& training) {
    if (training.states == OptimizerStates::kAsModel && training.state_types != StateTypes{})
      object.fail("state_types", "states of the model's type have no others", "leave one of the two keys out");
    if (object.has("lora") && training.lora.rank == 0)
      object.fail("lora", "\"rank\" is missing", "say the rank of the adapters, for example 16");
    if (training.base != BaseFormat::kAsModel && !training.freezes())
      object.fail("base", "quantised weights cannot be trained", "add adapters: \"lora\": {\"rank\": 16}");
  });
  return block;
}

}  // namespace krigtune::workload
