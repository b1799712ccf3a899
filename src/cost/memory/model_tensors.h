#pragma once
#include <cstdint>
#include <vector>

#include "memory/memory_profile.h"

namespace krigtune {

/// One tensor of the whole model, as one tensor rank holds it.
struct ModelTensor {
  std::int64_t elems = 0;
  std::int64_t padded_elems = 0;  ///< so that the data ranks share it in pieces of 64 bytes
};

/// A pipeline stage, or the whole model.
struct StageShape {
  std::int64_t layers = 1;
  bool has_embedding = true;
  bool has_head = true;
  std::int64_t in_flight = 1;  ///< micro-batches whose activations it keeps at once
};

/// All tensors of a stage: unit 0 is the embedding, then come the layers, then the head.
struct ModelTensors {
  ModelTensors(const MemoryProfile& profile, const StageShape& stage, bool tied_head, std::int64_t data_ranks,
               std::int64_t type_bytes);

  std::vector<ModelTensor> tensors;     ///< in model order
  std::vector<std::vector<int>> units;  ///< what a use of the unit reads; a tied table is in the first and the last
  std::vector<int> ready_order;         ///< tensors as backward is done with their gradients
  bool tied = false;
  std::int64_t elems = 0;
  std::int64_t padded_elems = 0;

  const ModelTensor& operator[](int tensor) const { return tensors[static_cast<std::size_t>(tensor)]; }
  std::size_t head() const { return units.size() - 1; }
  /// Of a tensor of the profile, where it is used in `unit`.
  int tensor_of(std::size_t unit, int profiled) const;  // in the innermost loop

 private:
  void set_ready_order(const MemoryProfile& profile);

  int embedding_ = 0;  ///< tensors of it in the profile
  int block_ = 0;      ///< of a layer
  bool has_embedding_ = true;
};

inline int ModelTensors::tensor_of(std::size_t unit, int profiled) const {
  if (profiled < embedding_) return has_embedding_ ? profiled : static_cast<int>(tensors.size()) - 1;
  const int before_blocks = has_embedding_ ? embedding_ : 0;
  if (profiled < embedding_ + block_)
    return profiled - embedding_ + before_blocks + (static_cast<int>(unit) - 1) * block_;
  return profiled - embedding_ - block_ + before_blocks + (static_cast<int>(units.size()) - 2) * block_;
}

}  // namespace krigtune
