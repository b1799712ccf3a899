#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workload/model.h"

namespace krigtune::workload {

/// Returns the published sizes. Derived sizes (kv_heads, ffn_hidden) are still 0, so that overrides can change what
/// they are derived from. Throws UserError with the nearest name; `where` says where the name was given.
ModelSpec published_sizes(const std::string& name, const std::string& where);

/// Fills in missing sizes: kv_heads = heads, ffn_hidden = 4 hidden.
void resolve(ModelSpec& model);

/// Keys of the session that override the model's config.json.
struct HfOverrides {
  bool dropout = false;
  std::optional<std::int64_t> seq_len;
};

/// Reads the sizes of a model from the config.json of Hugging Face transformers: model_type gpt2, llama or mistral.
/// Derived sizes (ffn_hidden) may still be 0. Throws UserError for other architectures, and for variants of these whose
/// cost differs from that of the model trained here.
ModelSpec read_hf_config(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                         const HfOverrides& overrides);

}  // namespace krigtune::workload
