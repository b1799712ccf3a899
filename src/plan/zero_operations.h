#pragma once
#include <cstddef>
#include <vector>

#include "plan/plan_builder.h"
#include "schedule/gathering.h"
#include "schedule/reduction.h"
#include "schedule/setting.h"
#include "schedule/walk.h"

namespace krigtune::plan {

/// The buffer of a schedule::Store, and where each tensor lies in it.
class TensorStore {
 public:
  /// Without a tensor to hold there is no buffer.
  TensorStore(PlanBuilder& builder, const schedule::Setting& setting, const schedule::Store& kind);

  bool empty() const { return buffer_ < 0; }
  bool has(int t) const { return !empty() && ranges_[static_cast<std::size_t>(t)].buffer >= 0; }
  bool sharded() const { return kind_.parts; }
  schedule::Place place() const { return kind_.place; }
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

/// Gathered parameters: their buffers, and the all-gathers that fill them.
class ParameterOperations final : public schedule::GatheringSink {
 public:
  ParameterOperations(PlanBuilder& builder, const ZeroState& state, const schedule::ParameterTable& table);

  void gather(std::span<const schedule::GatheredItem* const> items) override;
  void let_go(const schedule::GatheredItem& item) override;

  /// The current use reads these.
  void use(std::span<const schedule::GatheredItem> items);
  /// Where tensor `t` is to be read, within the current use.
  Operand parameter(int t) const;

 private:
  BufferId& buffer_of(const schedule::GatheredItem& item);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const schedule::ParameterTable& table_;
  std::vector<BufferId> buffer_;  ///< by slot; -1: nothing is there
  std::vector<Range> current_;    ///< by tensor: where it is in the current use
  std::vector<int> used_;         ///< tensors of the current use
  schedule::Window<OpId> under_way_;
};

/// Gradients: where they are written, the copies into buckets, and the collectives that sum them.
class GradientOperations final : public schedule::ReductionSink {
 public:
  GradientOperations(PlanBuilder& builder, const ZeroState& state, const schedule::ParameterTable& table);
  void pack(const schedule::Reduction& by, int t, bool completes) override;
  void reduce(const schedule::Reduction& by, std::span<const int> tensors, bool packed) override;
  void end_micro_step() override;

  /// Where the gradient of `t` is to be written, or added to where it is not the first one.
  Operand gradient(int t, bool is_first);

 private:
  struct Piece {
    int tensor;
    Range whole;  ///< its gradient, with padding
  };

  bool is_transient() const { return state_.setting.policy.shards_gradients; }
  Range whole(int t) const;
  void zero_padding(const Range& gradient, std::int64_t elems);
  BufferId make_packed_bucket(std::int64_t elems);
  void sum_over_tensor_ranks(const std::vector<Piece>& pieces);
  OpId keep(const std::vector<Piece>& pieces, bool adds);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const schedule::ZeroPolicy& policy_;
  const schedule::ParameterTable& table_;
  schedule::Window<OpId> under_way_;
  std::vector<BufferId> buffer_;  ///< by tensor: of a transient gradient in this micro-step
  std::vector<BufferId> packed_;  ///< buffers of packed buckets; -1: not yet
  std::vector<Piece> open_;       ///< what is in the packed bucket that is being filled
};

/// The update of the parameters.
class UpdateOperations final : public schedule::UpdateSink {
 public:
  UpdateOperations(PlanBuilder& builder, const ZeroState& state)
      : builder_(builder), state_(state), policy_(state.setting.policy) {}

  void control() override;
  void update(std::span<const int> bucket) override;
  void deliver(schedule::Place to, std::span<const int> mastered) override;
  void gather(std::span<const int> whole) override;

 private:
  void add_norms(const Operand& sum, schedule::Stream stream);
  BufferId scalar(schedule::Place place);
  std::vector<Operand> round(std::vector<Operand> pairs);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const schedule::ZeroPolicy& policy_;
  BufferId control_ = -1;  ///< where the optimizer reads it
};

/// ZeRO in a plan: the only part of it that knows where parameters, gradients and the optimizer's state live, and when
/// they travel (schedule::Walk decides). The model asks where a tensor is.
class ZeroOperations {
 public:
  ZeroOperations(PlanBuilder& builder, const schedule::Setting& setting, const schedule::ParameterTable& table);
  ZeroOperations(const ZeroOperations&) = delete;
  ZeroOperations& operator=(const ZeroOperations&) = delete;

  /// Forward, backward, and the reductions of a micro-step.
  void micro_step(schedule::PartSink& model) { walk_.micro_step(model); }
  /// Updates the parameters (and gathers them again where every rank holds them).
  void update();

  // For the operations of a part:
  /// Its parameters are there.
  void begin_use() { parameters_.use(walk_.gathering().current()); }
  Operand parameter(int t) const { return parameters_.parameter(t); }
  /// Where the gradient of `t` is to be written (kWrite), or added to if it was written before (kReadWrite).
  Operand gradient(int t) { return gradients_.gradient(t, walk_.reduction().begin(t)); }
  /// The gradient of `t` is complete in this micro-step: its bucket travels once it is full.
  void gradient_done(int t) { walk_.reduction().done(t); }

  /// The buffer of ControlElements, -1 where neither clipping nor loss scaling needs one.
  BufferId control() const { return state_.control; }
  /// Where the parameters live from step to step, and further ranges that start with their values.
  std::vector<TensorHome> homes() const { return state_.homes(); }
  std::vector<TensorHome> copies() const { return state_.copies(); }
  /// What may be under way at once.
  Windows windows() const;
  bool sharded_parameters() const { return walk_.gathering().active(); }

 private:
  const schedule::Setting& setting_;
  PlanBuilder& builder_;
  ZeroState state_;
  ParameterOperations parameters_;
  GradientOperations gradients_;
  schedule::Walk walk_;
};

}  // namespace krigtune::plan
