#include "workload/model_presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "workload/model_shapes.h"

namespace krigtune::workload {

// Sizes of published models.
// GPT-2: Radford et al. 2019, table 2, and the released hparams (vocabulary 50257, context 1024).
// Llama: Touvron et al. 2023 (arXiv:2302.13971), table 2; Llama 2: arXiv:2307.09288, table 1 and the released
// params.json; Llama 3: arXiv:2407.21783, table 3. Widths of the MLP: the released config.json.

namespace {

struct Preset {
  std::string_view name;
  std::string_view alias;  ///< may be empty
  ModelSpec sizes;
};

constexpr ModelSpec gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return gpt_sizes(layers, hidden, heads, 50257, 1024);
}

constexpr std::array kPresets = {
    Preset{"gpt2-124m", "gpt2", gpt2(12, 768, 12)},
    Preset{"gpt2-350m", "gpt2-medium", gpt2(24, 1024, 16)},
    Preset{"gpt2-774m", "gpt2-large", gpt2(36, 1280, 20)},
    Preset{"gpt2-1.5b", "gpt2-xl", gpt2(48, 1600, 25)},
    Preset{"llama-7b", "", llama_sizes(32, 4096, 32, 32, 11008, 32000, 2048)},
    Preset{"llama-13b", "", llama_sizes(40, 5120, 40, 40, 13824, 32000, 2048)},
    Preset{"llama-2-7b", "", llama_sizes(32, 4096, 32, 32, 11008, 32000, 4096)},
    Preset{"llama-2-13b", "", llama_sizes(40, 5120, 40, 40, 13824, 32000, 4096)},
    Preset{"llama-2-70b", "", llama_sizes(80, 8192, 64, 8, 28672, 32000, 4096)},
    Preset{"llama-3-8b", "", llama_sizes(32, 4096, 32, 8, 14336, 128256, 8192)},
    Preset{"llama-3-70b", "", llama_sizes(80, 8192, 64, 8, 28672, 128256, 8192)},
};

}  // namespace

namespace {

const Preset* find_preset(const std::string& name) {
  const std::string wanted = lower_case(name);
  const auto found = std::find_if(kPresets.begin(), kPresets.end(), [&](const Preset& preset) {
    return preset.name == wanted || (!preset.alias.empty() && preset.alias == wanted);
  });
  return found == kPresets.end() ? nullptr : &*found;
}

}  // namespace

bool is_preset(const std::string& name) { return find_preset(name) != nullptr; }

ModelSpec published_sizes(const std::string& name, const std::string& where) {
  if (const Preset* found = find_preset(name)) return found->sizes;
  throw UserError(fmt::format("{}unknown model preset '{}'", where, name),
                  suggestion(lower_case(name), model_preset_names()));
}

void resolve(ModelSpec& model) {
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.ffn_hidden == 0) model.ffn_hidden = 4 * model.hidden;
  if (model.has_experts() && model.experts.ffn_hidden == 0) model.experts.ffn_hidden = model.ffn_hidden;
  if (model.mtp.layers > 0 && model.mtp.blocks == LayerCounts{} && !model.kinds().empty())
    model.mtp.blocks.of(model.kinds().back().kind) = 1;
}

ModelSpec model_preset(const std::string& name) {
  ModelSpec model = published_sizes(name, "");
  resolve(model);
  return model;
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace krigtune::workload
