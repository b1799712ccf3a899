#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/op_kind.h"
#include "schedule/parameters.h"
#include "workload/layer_kinds.h"

namespace krigtune::schedule {

/// The units of a model, each of which is gathered as a whole: the token table (and positions), a transformer block,
/// and the final norm with the head. Blocks are of the kinds that workload::ModelSpec::kinds returns: those of the last
/// one are kBlock, and those of the others have the units before it. In most models every block is kBlock.
enum class Unit : std::uint8_t { kEmbedding, kFirstKind, kSecondKind, kThirdKind, kBlock, kHead };
inline constexpr int kUnitCount = 6;
/// The units of blocks, in the order of a stage.
inline constexpr std::array<Unit, workload::kMostKinds> kBlocks = {Unit::kFirstKind, Unit::kSecondKind,
                                                                   Unit::kThirdKind, Unit::kBlock};
inline constexpr bool is_block(Unit unit) { return unit >= Unit::kFirstKind && unit <= Unit::kBlock; }
/// Returns the place of such a unit in kBlocks.
inline constexpr std::size_t kind_index(Unit block) {
  return static_cast<std::size_t>(block) - static_cast<std::size_t>(Unit::kFirstKind);
}
/// Returns the unit of kind `kind` of `kinds`.
inline constexpr Unit block_unit(std::size_t kind, std::size_t kinds) {
  return kind + 1 == kinds ? Unit::kBlock : kBlocks.at(kind);
}

/// One tensor of a unit, as one tensor-parallel rank holds it.
struct UnitTensor {
  std::int64_t elems = 0;
  Unit unit{};
  bool is_split = false;      ///< split over the tensor ranks
  bool is_partial = false;    ///< its gradient is summed over the tensor ranks before it is reduced over the data ranks
  std::int64_t matrices = 1;  ///< of equal size in it
  bool of_experts = false;
  bool trained = true;
  std::int64_t columns = 0;  ///< of each of its matrices, if it is one of a block; otherwise 0
  bool of_mtp = false;       ///< of layers that predict further tokens, which belong to the head
};

/// The tensors of a model whose blocks of a kind are all equal: those of the embedding, of one block of each kind and
/// of the head.
struct UnitTensors {
  std::vector<UnitTensor> tensors;  ///< in model order, that of Unit
  /// The trained ones, in the order in which backward completes their gradients: that of Unit backwards.
  std::vector<int> ready_order;
  bool tied = false;  ///< the head uses the token table, tensor 0: its weight, or what further tokens look up
};
/// Takes the table's first block of each kind.
UnitTensors unit_tensors(const ParameterTable& table);
/// For a model that is split according to the knobs.
UnitTensors unit_tensors(const workload::Workload& workload, const Knobs& knobs);

/// What one pipeline stage holds of the model. By default: one block and both ends.
struct StageParts {
  std::int64_t layers = 1;
  bool embedding = true;
  bool head = true;
  /// Of the layers, those before Unit::kBlock (workload::ModelSpec::other_layers_in). Layers of one kind come one after
  /// the other: their order within a stage changes next to nothing.
  workload::OtherLayers others{};

  std::int64_t layers_of(Unit block) const {
    if (block != Unit::kBlock) return others.at(kind_index(block));
    std::int64_t left = layers;
    for (const std::int64_t other : others) left -= other;
    return left;
  }
  /// Returns the first layer of a kind, or where it would be.
  std::int64_t first_of(Unit block) const {
    std::int64_t before = 0;
    for (std::size_t kind = 0; kind < kind_index(block); ++kind) before += others.at(kind);
    return before;
  }
  /// Returns how many of the layers [begin, end) are of a kind.
  std::int64_t layers_in(Unit block, std::int64_t begin, std::int64_t end) const {
    const std::int64_t first = first_of(block);
    return std::max<std::int64_t>(0, std::min(end, first + layers_of(block)) - std::max(begin, first));
  }
  Unit unit_of(std::int64_t layer) const {
    for (std::size_t kind = 0; kind < others.size(); ++kind) {
      if (layer < others.at(kind)) return kBlocks.at(kind);
      layer -= others.at(kind);
    }
    return Unit::kBlock;
  }
  friend auto operator<=>(const StageParts&, const StageParts&) = default;
};

/// All tensors of a stage, padded so that they divide over the data ranks. Tensors are numbered in model order; the
/// last stage's copy of a tied token table, if there are several stages, comes last. Units are numbered 0 (embedding),
/// 1 to layers, layers + 1 (head).
class StageTensors {
 public:
  /// Padded lengths are multiples of `granule_elems`.
  StageTensors(const UnitTensors& model, const StageParts& parts, std::int64_t granule_elems);

  const StageParts& parts() const { return parts_; }
  int count() const { return static_cast<int>(elems_.size()); }
  std::int64_t elems(int t) const { return elems_[static_cast<std::size_t>(t)]; }
  std::int64_t padded(int t) const { return padded_[static_cast<std::size_t>(t)]; }
  bool is_split(int t) const { return kind_[static_cast<std::size_t>(t)].is_split; }
  bool is_partial(int t) const { return kind_[static_cast<std::size_t>(t)].is_partial; }
  bool is_of_experts(int t) const { return kind_[static_cast<std::size_t>(t)].of_experts; }
  /// Returns whether it is a matrix of a block, or several: what Muon orthogonalises.
  bool is_matrix(int t) const { return kind_[static_cast<std::size_t>(t)].columns > 0; }
  const UnitTensor& kind(int t) const { return kind_[static_cast<std::size_t>(t)]; }
  bool is_trained(int t) const { return kind_[static_cast<std::size_t>(t)].trained; }
  // Of the trained tensors:
  std::int64_t trained_elems() const { return trained_elems_; }
  std::int64_t trained_padded() const { return trained_padded_; }
  std::int64_t trained_expert_elems() const { return trained_expert_elems_; }  ///< of trained_elems
  std::int64_t trained_matrix_elems() const { return trained_matrix_elems_; }  ///< of trained_elems
  /// Of the others, in elements of the model's type.
  std::int64_t frozen_padded() const { return frozen_padded_; }
  /// Returns whether a unit has trained tensors.
  bool trains_unit(std::size_t u) const {
    return std::ranges::any_of(unit(u), [this](int t) { return is_trained(t); });
  }
  /// Returns the trained tensors in the order in which backward completes their gradients.
  const std::vector<int>& ready_order() const { return ready_order_; }

  std::size_t units() const { return unit_ends_.size(); }
  /// Returns the tensors that a use of the unit reads; a tied table is in the first and in the last unit.
  std::span<const int> unit(std::size_t u) const {
    const std::size_t begin = u == 0 ? 0 : unit_ends_[u - 1];
    return std::span(in_units_).subspan(begin, unit_ends_[u] - begin);
  }
  /// Returns the number in this stage of tensor `t` of UnitTensors; for a block's tensor, that of `layer`.
  int index(int t, std::int64_t layer) const {
    const Unit of = unit_of_[static_cast<std::size_t>(t)];
    const auto unit = static_cast<std::size_t>(of);
    const std::int64_t before = is_block(of) ? layer - parts_.first_of(of) : 0;
    return first_[unit] + t - unit_first_[unit] + static_cast<int>(before) * unit_counts_[unit];
  }
  bool tied() const { return tied_; }
  /// Returns whether the head has its own copy of the token table, because the embedding is in another stage.
  bool copies_table() const { return copies_table_; }

 private:
  void add(const UnitTensor& tensor, std::int64_t granule_elems);
  void set_units();
  void set_ready_order(const UnitTensors& model);

  StageParts parts_;
  bool tied_, copies_table_;
  std::vector<std::int64_t> elems_, padded_;
  std::vector<UnitTensor> kind_;
  std::vector<Unit> unit_of_;  ///< for each tensor of UnitTensors
  std::vector<int> ready_order_;
  std::vector<int> in_units_;
  std::vector<std::size_t> unit_ends_;
  // By unit: the first of its tensors here, the first of UnitTensors, and how many one such unit has.
  std::array<int, kUnitCount> first_{}, unit_first_{}, unit_counts_{};
  std::int64_t trained_elems_ = 0, trained_padded_ = 0, trained_expert_elems_ = 0, trained_matrix_elems_ = 0,
               frozen_padded_ = 0;
};

/// Padded lengths are multiples of this, so that each data rank's part of a tensor begins at a multiple of
/// kAlignmentBytes.
std::int64_t granule_elems(std::int64_t data_ranks, DType type);

/// The forward, the recomputation or the backward of one unit.
struct Part {
  Unit unit{};
  Phase phase{};
  std::size_t unit_index = 0;  ///< index in StageTensors
  std::int64_t layer = -1;     ///< of a block; otherwise -1
  // For blocks: with full checkpointing, groups of layers are recomputed together; otherwise each layer is a group.
  std::int64_t group = 0;
  std::int64_t in_group = 0;  ///< number of earlier layers in its group
  bool closes_group = true;   ///< it is the last layer of its group
  // For sharded parameters:
  bool begins_use = true;  ///< its unit is gathered for it; otherwise it is still there
  bool ends_use = true;    ///< its unit is released after it

  bool is(Unit of, Phase in) const { return unit == of && phase == in; }
};

/// Returns the parts of one micro-step in order: forward, then backward. With checkpointing, the recomputation of a
/// group precedes its backward (Chen et al. 2016, "Training deep nets with sublinear memory cost"). A frozen embedding
/// has no backward.
std::vector<Part> parts_of(const StageTensors& tensors, const Knobs& knobs);
/// Returns the number of layers between two checkpoints.
std::int64_t layers_of_group(const StageParts& stage, const Knobs& knobs);

}  // namespace krigtune::schedule
