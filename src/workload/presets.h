#pragma once
#include <string>
#include <vector>

#include "krigtune/workload/model.h"

namespace krigtune {

/// The sizes as published: what is derived (kv_heads, ffn_hidden) is still 0, so that overrides can change its source.
/// Throws UserError with the nearest name; `where` says where the name stands.
ModelSpec published_sizes(const std::string& name, const std::string& where);

/// Fills in what was left out: kv_heads = heads, ffn_hidden = 4 hidden.
void resolve(ModelSpec& model);

}  // namespace krigtune
