#pragma once
#include <cstddef>
#include <vector>

#include "plan/plan_builder.h"
#include "schedule/gathering.h"
#include "schedule/reduction.h"
#include "schedule/setting.h"
#include "schedule/walk.h"

namespace krigtune::plan {

/// The buffer of a schedule::Store, and the range of each tensor in it.
class TensorStore {
 public:
  /// Creates no buffer if there is no tensor to hold.
  TensorStore(PlanBuilder& builder, const schedule::Setting& setting, const schedule::Store& kind);

  bool empty() const { return buffer_ < 0; }
  bool has(int t) const { return !empty() && ranges_[static_cast<std::size_t>(t)].buffer >= 0; }
  bool sharded() const { return kind_.parts; }
  schedule::Place place() const { return kind_.place; }
  /// Returns the range of the whole tensor in the store, including padding.
  const Range& all(int t) const { return ranges_[static_cast<std::size_t>(t)]; }

 private:
  schedule::Store kind_;
  BufferId buffer_ = -1;
  std::vector<Range> ranges_;  ///< for each tensor
};

/// Where parameters, gradients and the optimizer's state are stored between steps: schedule::Stores with their buffers.
struct ZeroState {
  ZeroState(PlanBuilder& builder, const schedule::Setting& setting);

  const schedule::Setting& setting;
  TensorStore parameters, parameter_shards, gradients, host_gradients, masters;
  std::vector<TensorStore> moments;
  BufferId control = -1;  ///< ControlElements; -1 if there is neither clipping nor loss scaling

  const TensorStore& home(int t) const { return parameters.has(t) ? parameters : parameter_shards; }
  /// Returns the store of reduced gradients until the optimizer reads them.
  const TensorStore& reduced_gradients() const { return host_gradients.empty() ? gradients : host_gradients; }
  /// Return this rank's 1/N of a whole tensor, and the part that its optimizer updates.
  Range own_part(const Range& whole) const;
  Range updated_part(const Range& whole) const;
  /// Return the same for a tensor in a store; if the store holds parts, this is everything in it.
  Range own_part(const TensorStore& store, int t) const;
  Range updated_part(const TensorStore& store, int t) const;
  /// Returns the ranges of the parameters, and those of the masters.
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

  /// The current use reads these items.
  void use(std::span<const schedule::GatheredItem> items);
  /// Returns where to read tensor `t` within the current use.
  Operand parameter(int t) const;

 private:
  BufferId& buffer_of(const schedule::GatheredItem& item);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const schedule::ParameterTable& table_;
  std::vector<BufferId> buffer_;  ///< for each slot; -1: empty
  std::vector<Range> current_;    ///< for each tensor: where it is in the current use
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

  /// Returns where to write the gradient of `t` or, if it is not the first one, where to add it.
  Operand gradient(int t, bool is_first);

 private:
  struct Piece {
    int tensor;
    Range whole;  ///< its gradient, including padding
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
  std::vector<BufferId> buffer_;  ///< for each tensor: its transient gradient in this micro-step
  std::vector<BufferId> packed_;  ///< buffers of packed buckets; -1: not allocated yet
  std::vector<Piece> open_;       ///< contents of the packed bucket that is being filled
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
  void update_matrix(int t);
  Operand updated(int t) const;   ///< what this rank's optimizer updates of it
  Operand gradient(int t) const;  ///< the gradient of that part
  BufferId scalar(schedule::Place place);
  std::vector<Operand> round(std::vector<Operand> pairs);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const schedule::ZeroPolicy& policy_;
  BufferId control_ = -1;  ///< where the optimizer reads it
};

/// ZeRO in a plan. Only this part knows where parameters, gradients and the optimizer's state are stored, and when they
/// travel (schedule::Walk decides). The model asks it for the location of a tensor.
class ZeroOperations {
 public:
  ZeroOperations(PlanBuilder& builder, const schedule::Setting& setting, const schedule::ParameterTable& table);
  ZeroOperations(const ZeroOperations&) = delete;
  ZeroOperations& operator=(const ZeroOperations&) = delete;

  /// Adds forward, backward, and the reductions of a micro-step.
  void micro_step(schedule::PartSink& model) { walk_.micro_step(model); }
  /// Updates the parameters, and gathers them again if every rank holds them whole.
  void update();

  // Used by the operations of a part:
  /// Makes the part's parameters available.
  void begin_use() { parameters_.use(walk_.gathering().current()); }
  Operand parameter(int t) const { return parameters_.parameter(t); }
  bool trains(int t) const { return setting_.tensors.is_trained(t); }
  /// Returns where to write the gradient of `t` (kWrite), or where to add to it if it was written before (kReadWrite).
  Operand gradient(int t) { return gradients_.gradient(t, walk_.reduction().begin(t)); }
  /// The gradient of `t` is complete in this micro-step: its bucket is sent once it is full.
  void gradient_done(int t) {
    if (!adds_more_) walk_.reduction().done(t);
  }
  /// Until it is set to false, later operations add more to all gradients.
  void expect_more(bool adds_more) { adds_more_ = adds_more; }

  /// Returns the buffer of ControlElements, or -1 if there is neither clipping nor loss scaling.
  BufferId control() const { return state_.control; }
  /// Return where the parameters are stored between steps, and further ranges that start with their values.
  std::vector<TensorHome> homes() const { return state_.homes(); }
  std::vector<TensorHome> copies() const { return state_.copies(); }
  /// Returns the limits on what may be in flight.
  Windows windows() const;
  bool sharded_parameters() const { return walk_.gathering().active(); }

 private:
  const schedule::Setting& setting_;
  PlanBuilder& builder_;
  ZeroState state_;
  ParameterOperations parameters_;
  GradientOperations gradients_;
  schedule::Walk walk_;
  bool adds_more_ = false;
};

}  // namespace krigtune::plan
