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
bool is_preset(const std::string& name);  ///< whether `published_sizes` knows the name

/// Fills in missing sizes: kv_heads = heads, ffn_hidden = 4 hidden, that of an expert = ffn_hidden.
void resolve(ModelSpec& model);

}  // namespace krigtune::workload
