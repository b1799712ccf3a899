#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "workload/model.h"

namespace krigtune::workload {

/// Keys of the session that override the model's config.json.
struct HfOverrides {
  bool dropout = false;
  std::optional<std::int64_t> seq_len;
};

/// Reads the sizes of a model from the config.json of Hugging Face transformers. Derived sizes (ffn_hidden) may still
/// be 0. With `caveats` any decoder is read, and what differs from the planned model is said there. Without, throws
/// UserError for architectures other than gpt2, llama and mistral, and for variants of these whose cost differs from
/// that of the model trained here.
ModelSpec read_hf_config(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                         const HfOverrides& overrides, Caveats* caveats);

}  // namespace krigtune::workload
