#include "krigtune/schedule/parts.h"

#include <algorithm>

namespace krigtune::schedule {

std::int64_t layers_of_group(const StageParts& stage, const Knobs& knobs) {
  if (knobs.checkpointing != Checkpointing::kFull) return 1;
  return std::clamp<std::int64_t>(knobs.checkpoint_layers, 1, std::max<std::int64_t>(1, stage.layers));
}

std::vector<Part> parts_of(const StageParts& stage, const Knobs& knobs) {
  const std::int64_t layers = stage.layers;
  const std::int64_t size = layers_of_group(stage, knobs);
  const bool again = knobs.checkpointing == Checkpointing::kFull;
  std::vector<Part> parts;
  parts.reserve(3 * static_cast<std::size_t>(layers) + 4);
  const auto add_end = [&](Unit unit, Phase phase) {
    parts.push_back({unit, phase, unit == Unit::kHead ? static_cast<std::size_t>(layers) + 1 : 0});
  };
  const auto add_block = [&](Phase phase, std::int64_t layer) -> Part& {
    const bool closes = (layer + 1) % size == 0 || layer + 1 == layers;
    return parts.emplace_back(
        Part{Unit::kBlock, phase, static_cast<std::size_t>(layer) + 1, layer, layer / size, layer % size, closes});
  };
  if (stage.embedding) add_end(Unit::kEmbedding, Phase::kForward);
  for (std::int64_t layer = 0; layer < layers; ++layer) add_block(Phase::kForward, layer);
  if (stage.head) add_end(Unit::kHead, Phase::kForward);
  if (stage.head) add_end(Unit::kHead, Phase::kBackward);
  for (std::int64_t group = (layers + size - 1) / size; group > 0; --group) {
    const std::int64_t begin = (group - 1) * size;
    const std::int64_t end = std::min(begin + size, layers);
    // The last layer's parameters are still there from its second forward: they are one use.
    for (std::int64_t layer = begin; again && layer < end; ++layer) {
      add_block(Phase::kRecompute, layer).ends_use = layer + 1 < end;
    }
    for (std::int64_t layer = end - 1; layer >= begin; --layer) {
      add_block(Phase::kBackward, layer).begins_use = !again || layer + 1 < end;
    }
  }
  if (stage.embedding) add_end(Unit::kEmbedding, Phase::kBackward);
  return parts;
}

}  // namespace krigtune::schedule
