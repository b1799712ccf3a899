#pragma once
#include <vector>

#include "zero/zero_state.h"

namespace krigtune {

/// Where gradients are written, and how they are summed over the ranks bucket by bucket.
class GradientReduction {
 public:
  /// `ready_order`: the tensors in the order in which backward completes their gradients.
  GradientReduction(PlanBuilder& builder, const ZeroState& state, const std::vector<int>& ready_order);

  /// As ZeroSchedule's.
  Operand gradient(int t);
  void gradient_done(int t);
  void end_micro_step();

 private:
  struct Piece {
    int tensor;
    Range whole;  ///< its gradient, with padding
  };

  bool reduces_now() const;
  bool is_transient() const { return policy_.shards_gradients; }
  Range whole(int t) const;
  void zero_padding(const Range& gradient, std::int64_t elems);
  void count(int t);
  void pack(int t);
  void send_packed();
  std::int64_t bucket_elems() const;
  BufferId make_packed_bucket();
  Range packed_range(int t);
  void reduce(const std::vector<Piece>& pieces);
  void sum_over_tensor_ranks(const std::vector<Piece>& pieces);
  OpId keep(const std::vector<Piece>& pieces);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const ZeroSetting& setting_;
  const ZeroPolicy& policy_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  ///< by tensor
  std::vector<std::size_t> missing_;    ///< by bucket: gradients not yet complete in this micro-step
  Window under_way_;

  std::vector<BufferId> buffer_;  ///< by tensor: of a transient gradient in this micro-step
  std::vector<bool> written_;     ///< by tensor: a gradient is there to add to
  std::vector<BufferId> packed_;  ///< buffers of packed buckets, used in turn; -1: not yet
  std::vector<Piece> open_;       ///< what is in the packed bucket that is being filled
  std::size_t turn_ = 0;
  std::int64_t micro_step_ = 0;
};

}  // namespace krigtune
