#pragma once
#include "memory/model_tensors.h"

namespace krigtune {

/// What frameworks do otherwise than the plan.
struct ReductionHabits {
  bool gradients_grow = false;  ///< below stage 2: there is memory for gradients only once backward has made them
  bool whole_buckets = false;   ///< packed buckets are made all at once, as large as the knob says
};

/// Bytes of gradients until their bucket was reduced, and of the buckets that they are packed into: what the plan's
/// GradientReduction decides, without its operations.
class ReductionMemory {
 public:
  /// Of the last `micro_steps` micro-steps of a step.
  ReductionMemory(const ModelTensors& model, const Workload& workload, const Knobs& knobs, std::int64_t micro_steps,
                  const ReductionHabits& habits);

  bool idle() const { return !transient_ && !packs_ && !grows_; }  ///< no bytes beyond the gradients that are kept
  /// Whether any bytes come or go within this micro-step.
  bool acts() const { return transient_ || grows_ || (packs_ && knobs_.zero_stage > 0 && reduces_now()); }
  void first_gradient(int tensor);
  /// Returns the bytes while the gradient is copied into its bucket, 0 where it is not.
  std::int64_t gradient_done(int tensor);
  /// Likewise of gradients that are reduced behind backward.
  std::int64_t end_micro_step();
  std::int64_t bytes() const { return bytes_; }
  std::int64_t grown_bytes() const { return grown_bytes_; }  ///< of them: gradients that are there until the update
  /// Likewise before the compute stream has waited for what the last operation sent.
  std::int64_t bytes_before_wait() const { return bytes_ + just_released_bytes_; }
  void next_operation() { just_released_bytes_ = 0; }
  std::size_t sent() const { return entered_.size(); }
  /// The first `count` reductions are over.
  void release(std::size_t count);

 private:
  void make_buckets();
  std::int64_t bucket_elems() const;
  bool reduces_now() const { return transient_ || micro_step_ + 1 == micro_steps_; }
  void count(int tensor);
  std::int64_t pack(int tensor);
  void send();
  void enter(std::int64_t held_bytes);
  void release_packed();
  std::int64_t gradient_bytes(int tensor) const { return transient_ ? model_[tensor].padded_elems * type_bytes_ : 0; }
  bool goes_alone(int tensor) const { return model_[tensor].elems > knobs_.reduce_bucket_elems; }

  const ModelTensors& model_;
  const Knobs& knobs_;
  std::int64_t micro_steps_;
  std::int64_t type_bytes_;
  bool transient_, packs_, grows_, whole_buckets_;
  bool keeps_buckets_ = false;  ///< and copies into them beside the compute stream
  std::size_t packed_buckets_ = 1, width_ = 0;
  struct Bucket {
    int first = 0;  ///< tensor
    std::size_t tensors = 0, missing = 0;
    std::int64_t padded_elems = 0;
  };
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;
  std::int64_t bucket_bytes_ = 0;

  std::vector<bool> written_;
  std::vector<std::int64_t> entered_;  ///< bytes that each reduction holds until somebody has waited for it
  std::size_t released_ = 0;           ///< so many of them are over
  struct Packed {
    bool here = false;
    std::size_t entry = 0;  ///< its last reduction
  };
  std::vector<Packed> packed_;
  std::vector<int> open_;
  std::size_t turn_ = 0;
  std::size_t sends_ = 0;         ///< of packed buckets in this micro-step
  std::size_t packed_sends_ = 0;  ///< in each
  std::int64_t micro_step_ = 0;
  std::int64_t bytes_ = 0, grown_bytes_ = 0;
  std::int64_t just_released_bytes_ = 0;
};

}  // namespace krigtune
