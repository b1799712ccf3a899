#pragma once
#include <vector>

#include "krigtune/schedule/setting.h"
#include "plan_builder.h"

namespace krigtune {

/// The buffer of a schedule::Store, and where each tensor lies in it.
class TensorStore {
 public:
  /// Without a tensor to hold there is no buffer.
  TensorStore(PlanBuilder& builder, const schedule::Setting& setting, const schedule::Store& kind);

  bool empty() const { return buffer_ < 0; }
  bool has(int t) const { return !empty() && ranges_[static_cast<std::size_t>(t)].buffer >= 0; }
  bool sharded() const { return kind_.parts; }
  Place place() const { return kind_.place; }
  /// All that it holds of the tensor, padding included.
  const Range& all(int t) const { return ranges_[static_cast<std::size_t>(t)]; }

 private:
  schedule::Store kind_;
  BufferId buffer_ = -1;
  std::vector<Range> ranges_;  ///< by tensor
};

/// Where parameters, gradients and the optimizer's state live from step to step: schedule::Stores with their buffers.
struct ZeroState {
  ZeroState(PlanBuilder& builder, const schedule::Setting& setting);

  const schedule::Setting& setting;
  TensorStore parameters, parameter_shards, gradients, host_gradients, masters;
  std::vector<TensorStore> moments;
  BufferId control = -1;  ///< ControlElements; -1 where neither clipping nor loss scaling needs them

  const TensorStore& home(int t) const { return parameters.has(t) ? parameters : parameter_shards; }
  /// Reduced gradients, until the optimizer reads them.
  const TensorStore& reduced_gradients() const { return host_gradients.empty() ? gradients : host_gradients; }
  /// This rank's part, of 1/N, of a whole tensor; and what its optimizer updates of it.
  Range own_part(const Range& whole) const;
  Range updated_part(const Range& whole) const;
  /// The same of a tensor in a store: all of it where the store holds parts.
  Range own_part(const TensorStore& store, int t) const;
  Range updated_part(const TensorStore& store, int t) const;
  /// Of the parameters, and of the masters.
  std::vector<TensorHome> homes() const;
  std::vector<TensorHome> copies() const;

 private:
  ZeroState(PlanBuilder& builder, const schedule::Setting& setting, const schedule::Stores& stores);
};

}  // namespace krigtune
