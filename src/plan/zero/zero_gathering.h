#pragma once
#include <vector>

#include "zero/zero_state.h"

namespace krigtune {

/// Brings sharded parameters together for each use: the current unit's where they are missing, and what comes next as
/// far as the windows allow. Gathered values are let go behind their use.
class ParameterGathering {
 public:
  /// `uses`: the units' tensors in the order in which a micro-step uses them.
  ParameterGathering(PlanBuilder& builder, const ZeroState& state, std::vector<std::vector<int>> uses);

  void begin_use();
  /// Where tensor `t` is to be read, within the current use.
  Operand parameter(int t) const;
  /// That may be there at once; -1: bounded by the distances between uses only.
  std::int64_t most_gathered_elems() const;

 private:
  /// What is gathered and let go together, in one use.
  struct Item {
    std::size_t use;  ///< over all micro-steps
    std::vector<int> tensors;
    std::int64_t elems;    ///< as gathered
    std::size_t next_use;  ///< of the same tensor in the micro-step, where tensors are fetched
  };
  /// Gathered values: of an item, or of a tensor where tensors are fetched.
  struct Slot {
    BufferId buffer = -1;
    bool is_ahead = false;  ///< not used since it was gathered
  };

  void add_items(std::size_t use);
  void find_next_uses();
  std::size_t slot_of(std::size_t item) const;
  bool is_used_soon(const Item& item) const;
  void let_go(std::size_t item);
  void gather_ahead(std::size_t use);
  bool is_here(std::size_t item) const;
  void claim(std::size_t item);
  void gather(const std::vector<std::size_t>& items);

  PlanBuilder& builder_;
  const ZeroState& state_;
  const ZeroSetting& setting_;
  const ZeroPolicy& policy_;
  std::vector<std::vector<int>> uses_;      ///< of one micro-step
  std::vector<Item> items_;                 ///< over all micro-steps
  std::vector<std::size_t> first_item_;     ///< by use over all micro-steps, and the end
  std::vector<std::int64_t> elems_before_;  ///< likewise: of the parameters that earlier uses traverse
  std::vector<Slot> slots_;
  std::vector<int> held_;       ///< by tensor: in how many slots it is
  std::vector<Range> current_;  ///< by tensor: where it is in the current use
  std::size_t next_use_ = 0;
  std::size_t next_item_ = 0;  ///< to be looked at by gather_ahead
  std::int64_t live_elems_ = 0;
  std::int64_t ahead_elems_ = 0;
  OpId before_use_ = -1;  ///< last compute operation before the current use
  Window under_way_;
};

}  // namespace krigtune
