#include "workload/hf_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace krigtune::workload {
namespace {

// The words of a regular expression over the names of modules, as ".*(q_proj|v_proj)$".
std::vector<std::string> words_in(const std::string& expression) {
  const auto is_of_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  std::vector<std::string> words;
  for (auto at = expression.begin(); at != expression.end();) {
    const auto begin = std::find_if(at, expression.end(), is_of_word);
    at = std::find_if_not(begin, expression.end(), is_of_word);
    if (const std::string word(begin, at); !adapted_layers(word).empty()) words.push_back(word);
  }
  return words;
}

std::vector<std::string> targets_in(JsonObject& config, Caveats& caveats) {
  const Json* said = config.find("target_modules");
  if (said == nullptr) {
    caveats.assumed.emplace_back("adapters on q and v: those that PEFT adapts in most models if none are named");
    return {"q_proj", "v_proj"};
  }
  if (!said->is_string()) return config.texts("target_modules");
  const std::string text = said->get<std::string>();
  if (!adapted_layers(text).empty()) return {text};
  std::vector<std::string> words = words_in(text);
  if (!words.empty())
    caveats.assumed.push_back(fmt::format("adapters on {}: the layers that '{}' names", join(words, ", "), text));
  return words;
}

// Layers within experts have no adapters in a plan, and a layer's whole name ends with the name that is known.
std::vector<AdaptedLayer> layers_named(const std::string& name) {
  const std::vector<AdaptedLayer> layers = adapted_layers(name);
  return layers.empty() ? adapted_layers(name.substr(name.rfind('.') + 1)) : layers;
}

void note_what_else(JsonObject& config, Caveats& caveats) {
  if (config.find("use_dora") != nullptr && config.boolean("use_dora", false))
    caveats.not_modelled.emplace_back("DoRA: a little more memory, and more time");
  if (const Json* ranks = config.find("rank_pattern"); ranks != nullptr && !ranks->empty())
    caveats.not_modelled.emplace_back("ranks of single layers: another memory");
  if (const Json* whole = config.find("modules_to_save"); whole != nullptr && !whole->empty()) {
    caveats.not_modelled.push_back(
        fmt::format("{}, trained beside the adapters: more memory", join(config.texts("modules_to_save"), ", ")));
  }
}

}  // namespace

AdapterSpec read_adapter_config(const Json& json, const std::string& source, Caveats& caveats) {
  JsonObject config(json, source, "");
  const std::string kind = config.text("peft_type", "");
  if (kind.empty()) config.fail("peft_type", "is missing", "is this PEFT's adapter_config.json?");
  if (kind != "LORA") config.fail("peft_type", fmt::format("'{}' is not supported", kind), "only LORA is");
  AdapterSpec adapter;
  adapter.rank = config.integer("r", 8);  // PEFT's default
  if (adapter.rank < 1) config.fail("r", "must be at least 1", "");
  adapter.dropout = config.number("lora_dropout", 0.0);
  adapter.targets = {};
  for (const std::string& name : targets_in(config, caveats)) {
    const std::vector<AdaptedLayer> layers = layers_named(name);
    if (layers.empty())
      caveats.not_modelled.push_back(fmt::format("adapters on '{}', which is no layer of a block: more memory", name));
    for (const AdaptedLayer layer : layers) adapter.targets[static_cast<std::size_t>(layer)] = true;
  }
  if (adapter.targets == decltype(adapter.targets){}) {
    config.fail("target_modules", "names no layer that krigtune knows",
                "name layers, as in [\"q_proj\", \"v_proj\"], or \"all-linear\"");
  }
  note_what_else(config, caveats);
  return adapter;
}

}  // namespace krigtune::workload
