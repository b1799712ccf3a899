#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "workload/hf_keys.h"
#include "workload/model.h"

namespace krigtune::workload {

/// Returns the number of layers that a config.json lists one by one; 0 if it does not.
std::int64_t listed_layers(HfKeys& keys);

/// Sets the layers of a hybrid model whose state-space layers or linear attention are planned, and what these are.
/// `dense`: for each layer, whether it has an MLP even if the others have experts. Leaves other models as they are.
void set_hybrid(const std::string& type, HfKeys& keys, const std::vector<bool>& dense, ModelSpec& model);

}  // namespace krigtune::workload
