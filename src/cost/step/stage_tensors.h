#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "step/step_template.h"

namespace krigtune {

/// What one pipeline stage holds of the model.
struct StageParts {
  std::int64_t layers = 1;
  bool embedding = true;
  bool head = true;

  friend bool operator==(const StageParts&, const StageParts&) = default;
};

/// The tensors of all its units, each padded as the data ranks share it.
class StageTensors {
 public:
  /// `granule_elems`: of which padded lengths are multiples.
  StageTensors(const StepTemplate& model, const StageParts& parts, std::int64_t granule_elems);

  int count() const { return static_cast<int>(elems_.size()); }
  std::int64_t elems(int t) const { return elems_[static_cast<std::size_t>(t)]; }
  std::int64_t padded(int t) const { return padded_[static_cast<std::size_t>(t)]; }
  const TemplateTensor& tensor(int t) const { return *tensor_[static_cast<std::size_t>(t)]; }
  bool any_partial() const { return any_partial_; }
  std::int64_t padded_elems() const { return padded_elems_; }
  /// In which backward completes gradients.
  const std::vector<int>& ready_order() const { return ready_order_; }
  /// Of the model's tensor `t`, a block's in `layer`.
  int index(int t, std::int64_t layer) const {
    const auto unit = static_cast<std::size_t>(unit_[static_cast<std::size_t>(t)]);
    return first_[unit] + t - template_first_[unit] + (unit == 1 ? static_cast<int>(layer) * block_tensors_ : 0);
  }
  const StageParts& parts() const { return parts_; }
  /// The head has a copy of the token table of its own: the embedding is in another stage.
  bool copies_table() const { return copies_table_; }

 private:
  void add(const StepTemplate& model, int t, std::int64_t granule_elems);

  StageParts parts_;
  std::vector<std::int64_t> elems_, padded_;
  std::vector<const TemplateTensor*> tensor_;
  std::vector<Unit> unit_;  ///< by the model's tensor
  std::vector<int> ready_order_;
  std::array<int, kUnitCount> first_{}, template_first_{};
  int block_tensors_ = 0;
  std::int64_t padded_elems_ = 0;
  bool any_partial_ = false;
  bool copies_table_ = false;
};

}  // namespace krigtune
