#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "krigtune/workload/model.h"

namespace krigtune {

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

}  // namespace krigtune
