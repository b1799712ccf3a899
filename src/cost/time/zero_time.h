#pragma once
#include <vector>

#include "cost/time/step_template.h"
#include "schedule/gathering.h"
#include "schedule/reduction.h"
#include "schedule/walk.h"

namespace krigtune::cost {

/// The time for gathering parameters: all-gathers in parallel with the compute stream, and the operations that wait for
/// them.
class GatheringTime final : public schedule::GatheringSink {
 public:
  explicit GatheringTime(CostContext& step) : step_(step), under_way_(step.setting.policy.gathers_under_way) {}

  void gather(std::span<const schedule::GatheredItem* const> items) override;
  void let_go(const schedule::GatheredItem&) override {}

  /// The current use reads these items.
  void use(std::span<const schedule::GatheredItem> items);
  /// What is appended next reads tensor `t` of the current use's unit.
  void read(int t);

 private:
  CostContext& step_;
  std::vector<std::int32_t> gathered_;  ///< for each slot: the number of gathers after which it is available
  std::int32_t current_ = 0;            ///< the same for the current unit, if whole units are gathered
  schedule::Window<Recorder::Behind> under_way_;
};

/// The time for gradients: their copies into buckets, their sums over the ranks, and their return. Several copies in
/// parallel with the compute stream are recorded as two.
class ReductionTime final : public schedule::ReductionSink {
 public:
  explicit ReductionTime(CostContext& step);

  void pack(const schedule::Reduction& by, int t, bool completes) override;
  void reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) override;
  void end_micro_step() override {}

  /// The next operation is the first that writes the gradient in this micro-step.
  void begin(int t);
  /// The gradient is complete, and is reduced after the backward pass of this micro-step.
  void complete(int t);
  /// Ends a unit's backward.
  void end_unit() { flush_packs(); }
  /// Returns the operations after which the optimizer finds the reduced gradient.
  Recorder::Behind reduced(int t) const;

 private:
  void pack_beside(double seconds);
  void flush_packs();
  void set_ready(std::span<const int> tensors, bool packed);
  /// `elems`: those that this rank's optimizer updates.
  Recorder::Behind keep(const schedule::Reduction& by, std::span<const int> tensors, std::int64_t elems, bool moves,
                        std::int32_t reduced);

  CostContext& step_;
  /// For each tensor: the number of compute operations after which it was complete.
  std::vector<std::int32_t> written_;
  std::vector<std::int32_t> reduced_;  ///< by tensor
  /// Copies into the packed bucket in parallel with the compute stream that are not recorded yet.
  struct Packs {
    int count = 0;
    double work_s = 0.0;
    /// Time that the copies still need when the last gradient is complete, unless something else delays them.
    double behind_s = 0.0;
    double last_at_s = 0.0;  ///< when the last gradient was complete, in seconds of the compute stream
  };
  Packs packs_;
  schedule::Window<Recorder::Behind> under_way_;
  std::int32_t ready_ = 0;         ///< number of compute operations after which the next bucket is complete
  bool open_is_complete_ = false;  ///< ready_ is known for the open bucket
  std::int32_t packed_free_ = 0;   ///< number of copies after which the packed bucket may be filled again
};

/// The time at the end of a step: clipping and loss scaling, the update, and the return of updated parameters.
class UpdateTime final : public schedule::UpdateSink {
 public:
  UpdateTime(CostContext& step, const ReductionTime& gradients) : step_(step), gradients_(gradients) {}

  void control() override;
  void update(std::span<const int> bucket) override;
  void deliver(schedule::Place to, std::span<const int> mastered) override;
  void gather(std::span<const int> whole) override;

 private:
  void wait_for_gradients(std::span<const int> bucket);
  void add_norm(std::int64_t elems);
  void update_matrix(int t);
  void compute(workload::OpClass on_device, double flops, double bytes);
  bool on_host() const { return step_.setting.policy.optimizer_place == schedule::Place::kHost; }
  Recorder::Behind done() const;

  CostContext& step_;
  const ReductionTime& gradients_;
  Recorder::Behind gradients_ready_{schedule::Stream::kCompute, 0};  ///< for the current bucket
  std::int32_t control_copied_ = 0;
  std::int32_t delivered_ = 0;  ///< number of copies
};

}  // namespace krigtune::cost
