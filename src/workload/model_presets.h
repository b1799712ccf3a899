#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workload/model.h"

namespace krigtune::workload {

/// The sizes as published: what is derived (kv_heads, ffn_hidden) is still 0, so that overrides can change its source.
/// Throws UserError with the nearest name; `where` says where the name stands.
ModelSpec published_sizes(const std::string& name, const std::string& where);

/// Fills in what was left out: kv_heads = heads, ffn_hidden = 4 hidden.
void resolve(ModelSpec& model);

/// What stands beside the configuration and counts more than it.
struct HfOverrides {
  bool dropout = false;
  std::optional<std::int64_t> seq_len;
};

/// Sizes of a model from the config.json of Hugging Face transformers: model_type gpt2, llama or mistral. What is
/// derived (ffn_hidden) may still be 0. Throws UserError for other architectures, and for variants of these that cost
/// something else than what is trained here.
ModelSpec read_hf_config(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                         const HfOverrides& overrides);

}  // namespace krigtune::workload
