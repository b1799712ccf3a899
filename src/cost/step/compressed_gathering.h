#pragma once
#include <vector>

#include "step/step_context.h"

namespace krigtune {

/// How sharded parameters are brought together for each use: plan/zero's ParameterGathering, without buffers.
class CompressedGathering {
 public:
  /// For `micro_steps` of them.
  CompressedGathering(CostContext& step, std::int64_t micro_steps);

  bool active() const { return active_; }
  /// The next use in order begins.
  void begin_use();
  /// What is appended next reads tensor `t` of the current use's unit.
  void read(int t);
  bool is_sharded(int t) const { return active_ && sharded_[static_cast<std::size_t>(t)]; }

 private:
  struct Item {
    std::size_t use = 0;
    std::size_t begin = 0, end = 0;  ///< in tensors_
    std::int64_t elems = 0;          ///< padded
    std::size_t next_use = 0;
  };
  struct Slot {
    std::int32_t gathered = 0;  ///< count of gathers behind which it is there; 0: it is not
    bool is_ahead = false;
  };
  /// The sharded tensors of one unit.
  struct UnitTensors {
    std::size_t begin = 0, end = 0;  ///< in tensors_
    std::int64_t elems = 0;          ///< of all its tensors
  };

  void add_units();
  std::size_t add_unit(Unit unit, std::int64_t layer);
  void add_uses();
  void add_items(std::size_t use);
  void find_next_uses();
  std::size_t slot_of(std::size_t item) const;
  bool is_used_soon(const Item& item) const;
  void let_go(std::size_t item);
  void gather_ahead(std::size_t use);
  bool is_here(std::size_t item) const;
  void claim(std::size_t item);
  void gather(std::size_t first, std::size_t last);

  CostContext& step_;
  bool active_ = false;
  std::vector<char> sharded_;  ///< by tensor
  std::vector<int> tensors_;   ///< sharded, unit by unit
  std::vector<UnitTensors> units_;
  std::vector<std::size_t> uses_;  ///< of one micro-step: units
  std::size_t all_uses_ = 0;
  std::vector<Item> items_;
  std::vector<std::size_t> first_item_;
  std::vector<std::int64_t> elems_before_;
  std::vector<Slot> slots_;
  std::vector<int> held_;
  std::vector<std::size_t> claimed_;  ///< to be gathered next
  std::int32_t current_ = 0;          ///< whole units: gathers behind which the current one is there
  std::size_t next_use_ = 0;
  std::size_t next_item_ = 0;
  std::int64_t live_elems_ = 0;
  std::int64_t ahead_elems_ = 0;
  UnderWay under_way_;
};

/// Units in the order in which one micro-step of a stage uses them: forward, then backward (plan/step/unit_uses.h).
struct UnitUse {
  Unit unit{};
  std::int64_t layer = 0;
};
std::vector<UnitUse> unit_uses(const StageParts& parts, const Knobs& knobs);
/// Layers between two checkpoints.
std::int64_t checkpoint_layers(const Knobs& knobs);

}  // namespace krigtune
