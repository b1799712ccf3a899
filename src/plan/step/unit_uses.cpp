#include "step/unit_uses.h"

#include <algorithm>

namespace krigtune {
namespace {

void push(std::vector<int>& tensors, int tensor) {
  if (tensor != kNoTensor) tensors.push_back(tensor);
}

template <class Pair>
void push_both(std::vector<int>& tensors, const Pair& pair) {
  const auto& [first, second] = pair;
  push(tensors, first);
  push(tensors, second);
}

std::vector<int> unit_of(const BlockTensors& block) {
  std::vector<int> unit;
  push_both(unit, block.norm1);
  push_both(unit, block.qkv);
  push_both(unit, block.out);
  push_both(unit, block.norm2);
  push_both(unit, block.up);
  push_both(unit, block.down);
  return unit;
}

}  // namespace

std::vector<LayerGroup> layer_groups(std::int64_t layers, const Knobs& knobs) {
  const std::int64_t most = knobs.checkpointing == Checkpointing::kFull ? knobs.checkpoint_layers : 1;
  std::vector<LayerGroup> groups;
  for (std::int64_t begin = 0; begin < layers; begin += std::min(most, layers - begin)) {
    groups.push_back({begin, begin + std::min(most, layers - begin)});
  }
  return groups;
}

std::vector<std::vector<int>> unit_uses(const ParameterTable& table, const Knobs& knobs) {
  std::vector<int> embedding;
  push(embedding, table.table);
  push(embedding, table.positions);
  std::vector<int> head;
  push_both(head, table.final_norm);
  push(head, table.head);

  std::vector<std::vector<int>> uses = {embedding};
  for (const BlockTensors& block : table.blocks) uses.push_back(unit_of(block));
  uses.push_back(head);
  uses.push_back(head);
  const auto add = [&](std::int64_t layer) { uses.push_back(unit_of(table.blocks[static_cast<std::size_t>(layer)])); };
  const std::vector<LayerGroup> groups = layer_groups(static_cast<std::int64_t>(table.blocks.size()), knobs);
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    for (std::int64_t layer = group->begin; layer + 1 < group->end; ++layer) add(layer);
    for (std::int64_t layer = group->end; layer > group->begin; --layer) add(layer - 1);
  }
  uses.push_back(embedding);
  return uses;
}

std::vector<int> gradient_ready_order(const ParameterTable& table) {
  std::vector<int> order;
  if (table.head != table.table) push(order, table.head);
  push_both(order, table.final_norm);
  for (auto b = table.blocks.rbegin(); b != table.blocks.rend(); ++b) {
    push_both(order, b->down);
    push_both(order, b->up);
    push_both(order, b->norm2);
    push_both(order, b->out);
    push_both(order, b->qkv);
    push_both(order, b->norm1);
  }
  push(order, table.positions);
  push(order, table.table);
  return order;
}

}  // namespace krigtune
