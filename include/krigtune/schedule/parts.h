#pragma once
#include <cstdint>
#include <vector>

#include "krigtune/schedule/streams.h"
#include "krigtune/schedule/tensors.h"

namespace krigtune::schedule {

/// One unit's forward, its second forward, or its backward.
struct Part {
  Unit unit{};
  Phase phase{};
  std::size_t unit_index = 0;  ///< of StageTensors
  std::int64_t layer = -1;     ///< of a block
  // Of a block: with full checkpointing groups of layers are computed again together; else each layer is a group.
  std::int64_t group = 0;
  std::int64_t in_group = 0;  ///< layers of its group before it
  bool closes_group = true;   ///< it is the last layer of its group
  // Sharded parameters.
  bool begins_use = true;  ///< its unit is gathered for it; else it is still there
  bool ends_use = true;    ///< behind it its unit is let go

  bool is(Unit of, Phase in) const { return unit == of && phase == in; }
};

/// The parts of one micro-step in order: forward, then backward; before a group's backward its second forward, where it
/// is checkpointed (Chen et al. 2016, "Training deep nets with sublinear memory cost").
std::vector<Part> parts_of(const StageParts& stage, const Knobs& knobs);
/// Layers between two checkpoints.
std::int64_t layers_of_group(const StageParts& stage, const Knobs& knobs);

}  // namespace krigtune::schedule
