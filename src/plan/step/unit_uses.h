#pragma once
#include <cstdint>
#include <vector>

#include "krigtune/plan/knobs.h"
#include "step/parameters.h"

namespace krigtune {

/// Layers [begin, end) of which forward keeps the input only; with other checkpointing each layer is alone.
struct LayerGroup {
  std::int64_t begin = 0, end = 0;
};
std::vector<LayerGroup> layer_groups(std::int64_t layers, const Knobs& knobs);

/// The units of a model (embedding, blocks, head) in the order in which one micro-step uses them: forward, then
/// backward. Where a group of layers is computed again, that pass uses all of them but the last once more; the last
/// layer's is one use with its backward.
std::vector<std::vector<int>> unit_uses(const ParameterTable& table, const Knobs& knobs);

/// The tensors in the order in which backward completes their gradients.
std::vector<int> gradient_ready_order(const ParameterTable& table);

}  // namespace krigtune
