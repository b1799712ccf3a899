#pragma once
#include <string>
#include <vector>

#include "zero/zero_setting.h"

namespace krigtune {

/// Values of tensors side by side in one persistent buffer: whole, or of each the part that this rank owns.
class TensorStore {
 public:
  struct Kind {
    std::string name;
    Term term{};
    DType type = DType::kFp32;
    Place place = Place::kDevice;
    bool sharded = false;
  };

  TensorStore() = default;  ///< of no tensor
  /// Of the tensors in `of`; without any there is no buffer.
  TensorStore(PlanBuilder& builder, const ZeroSetting& setting, Kind kind, const std::vector<int>& of);

  bool empty() const { return buffer_ < 0; }
  bool has(int t) const { return !empty() && ranges_[static_cast<std::size_t>(t)].buffer >= 0; }
  bool sharded() const { return kind_.sharded; }
  Place place() const { return kind_.place; }
  /// All that it holds of the tensor, padding included.
  const Range& all(int t) const { return ranges_[static_cast<std::size_t>(t)]; }

 private:
  Kind kind_;
  BufferId buffer_ = -1;
  std::vector<Range> ranges_;  ///< by tensor
};

/// Where parameters, gradients and the optimizer's state live from step to step.
struct ZeroState {
  ZeroState(PlanBuilder& builder, const ZeroSetting& setting);

  const ZeroSetting& setting;
  TensorStore parameters;        ///< whole: computed with as they are
  TensorStore parameter_shards;  ///< the others: gathered for every use
  TensorStore gradients;         ///< on the device: whole until they are reduced, or the reduced shards
  TensorStore host_gradients;    ///< reduced, of an offloaded optimizer
  TensorStore masters;           ///< fp32 values that the optimizer updates, where it cannot update the parameters
  std::vector<TensorStore> moments;
  BufferId control = -1;

  const TensorStore& home(int t) const { return parameters.has(t) ? parameters : parameter_shards; }
  /// Reduced gradients, until the optimizer reads them.
  const TensorStore& reduced_gradients() const { return host_gradients.empty() ? gradients : host_gradients; }
  /// Of a store's tensor: this rank's part, of 1/N.
  Range own_part(const TensorStore& store, int t) const;
  /// Likewise what this rank's optimizer updates.
  Range updated_part(const TensorStore& store, int t) const;
  /// Of the parameters, and of the masters.
  std::vector<TensorHome> homes() const;
  std::vector<TensorHome> copies() const;
};

}  // namespace krigtune
