#include "memory/model_tensors.h"

#include <algorithm>

namespace krigtune {

ModelTensors::ModelTensors(const MemoryProfile& profile, const StageShape& stage, bool tied_head,
                           std::int64_t data_ranks, std::int64_t type_bytes)
    : tied(tied_head), has_embedding_(stage.has_embedding) {
  const std::int64_t granule = data_ranks * kAlignmentBytes / type_bytes;
  using Unit = ProfiledTensor::Unit;
  const auto count = [&](Unit unit) {
    return static_cast<int>(std::count_if(profile.tensors.begin(), profile.tensors.end(),
                                          [&](const ProfiledTensor& t) { return t.unit == unit; }));
  };
  embedding_ = count(Unit::kEmbedding);
  block_ = count(Unit::kBlock);
  units.resize(static_cast<std::size_t>(stage.layers) + 2);
  tensors.reserve(static_cast<std::size_t>(embedding_ + count(Unit::kHead)) +
                  units.size() * static_cast<std::size_t>(block_));
  const auto add = [&](std::size_t u, const ProfiledTensor& tensor) {
    const std::int64_t padded = (tensor.elems + granule - 1) / granule * granule;
    units[u].push_back(static_cast<int>(tensors.size()));
    tensors.push_back({tensor.elems, padded});
    elems += tensor.elems;
    padded_elems += padded;
  };
  for (std::size_t u = 0; u < units.size(); ++u) {
    if ((u == 0 && !stage.has_embedding) || (u == head() && !stage.has_head)) continue;
    const Unit unit = u == 0 ? Unit::kEmbedding : u == head() ? Unit::kHead : Unit::kBlock;
    for (const ProfiledTensor& tensor : profile.tensors) {
      if (tensor.unit == unit) add(u, tensor);
    }
  }
  set_ready_order(profile);
  if (!tied || !stage.has_head) return;
  if (stage.has_embedding) {
    units.back().push_back(units.front().front());
  } else {  // a copy of the table
    ready_order.push_back(static_cast<int>(tensors.size()));
    add(head(), profile.tensors.front());
  }
}

void ModelTensors::set_ready_order(const MemoryProfile& profile) {
  ready_order.resize(tensors.size());
  std::size_t before = 0;
  using Unit = ProfiledTensor::Unit;
  for (std::size_t u = units.size(); u > 0; --u) {
    if (units[u - 1].empty()) continue;
    const Unit unit = u == 1 ? Unit::kEmbedding : u == units.size() ? Unit::kHead : Unit::kBlock;
    std::size_t in_unit = 0;
    for (const ProfiledTensor& tensor : profile.tensors) {
      if (tensor.unit != unit) continue;
      ready_order[before + static_cast<std::size_t>(tensor.turn)] = units[u - 1][in_unit++];
    }
    before += in_unit;
  }
}

}  // namespace krigtune
