#pragma once
#include <vector>

#include "knobs.h"
#include "parameters.h"
#include "plan_builder.h"

namespace krigtune {

/// Where parameters and gradients live and when they travel: ZeRO stages 0 to 3 (Rajbhandari et al. 2020) with
/// reduce-scatter, the only part of the schedule that knows of them. The model asks where a tensor is; this answers and
/// issues the collectives.
///
/// stage 0: all-reduce in the last micro-step.          1: reduce-scatter there, all-gather after the update.
/// stage 2: reduce-scatter in every micro-step.          3: likewise; each use of a unit gathers its parameters,
/// forward and
///                                                       again backward, one unit ahead with overlap.
class ZeroSchedule {
 public:
  /// `uses`: the units' tensors in the order in which a micro-step uses them (forward, then backward).
  /// `ready_order`: the tensors in the order in which backward finishes their gradients.
  ZeroSchedule(PlanBuilder& builder, const ParameterTable& table, const Knobs& knobs, std::int64_t ranks,
               std::vector<std::vector<int>> uses, const std::vector<int>& ready_order);

  /// The next use in order begins: its parameters are gathered where they are sharded.
  void begin_use();
  /// Where tensor `t` is to be read, within the current use.
  Operand parameter(int t) const;
  /// Where the gradient of `t` is to be written (kWrite), or added to if it was written before (kReadWrite).
  Operand gradient(int t);
  /// The gradient of `t` is complete in this micro-step: its bucket travels once it is full.
  void gradient_done(int t);
  void end_micro_step();
  /// Updates the parameters (and gathers them again in stages 1 and 2).
  void optimizer_step();

  /// The buffer of ControlElements, -1 where neither clipping nor loss scaling needs one.
  BufferId control() const { return control_; }
  /// Where the parameters live from step to step.
  std::vector<TensorHome> homes() const;
  bool sharded_parameters() const { return knobs_.zero_stage == 3; }

 private:
  using Bucket = std::vector<int>;  ///< tensors

  bool transient_gradients() const { return knobs_.zero_stage >= 2; }
  const ParameterTensor& tensor(int t) const { return table_.tensors[static_cast<std::size_t>(t)]; }
  std::vector<Bucket> make_buckets(const std::vector<int>& order, std::int64_t most_elems) const;
  void issue_gather(std::size_t use);
  void zero_padding(int t);
  void reduce(const Bucket& bucket);
  void update(const Bucket& bucket);
  void gather_updated(const Bucket& bucket);

  Range whole(BufferId buffer, int t) const;         ///< tensor t in a buffer of Psi elements, with its padding
  Range whole_gradient(int t) const;                 ///< where its gradient is before it is reduced
  Range own_shard(const Range& whole) const;         ///< this rank's part of it
  Range packed_shard(BufferId buffer, int t) const;  ///< this rank's part in a buffer of Psi / N elements

  PlanBuilder& builder_;
  const ParameterTable& table_;
  Knobs knobs_;
  std::int64_t ranks_;
  std::vector<std::vector<int>> uses_;
  std::vector<Bucket> reduce_buckets_;
  std::vector<Bucket> update_buckets_;
  std::vector<std::size_t> bucket_of_;  ///< by tensor
  std::vector<std::size_t> missing_;    ///< by reduce bucket: gradients not yet complete in this micro-step

  BufferId parameters_ = -1;
  BufferId gradients_ = -1;  ///< whole (stages 0, 1) or shard
  BufferId first_moments_ = -1;
  BufferId second_moments_ = -1;

  BufferId control_ = -1;

  std::size_t next_use_ = 0;               ///< over all micro-steps
  std::vector<BufferId> gathered_;         ///< by use, -1: not yet issued
  OpId before_use_ = -1;                   ///< last compute operation before the current use
  OpId last_reduced_ = -1;                 ///< end of the last reduction issued
  std::vector<BufferId> gradient_buffer_;  ///< by tensor: stages 2, 3, in this micro-step
  std::vector<bool> written_;              ///< by tensor: a gradient is there to add to
  std::int64_t micro_step_ = 0;
};

}  // namespace krigtune
