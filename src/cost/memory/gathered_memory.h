#pragma once
#include "memory/model_tensors.h"

namespace krigtune {

/// Bytes of parameters that stage 3 gathers, from use to use: what the plan's ParameterGathering decides, without its
/// operations.
class GatheredMemory {
 public:
  /// `uses`: units in the order in which the micro-steps use them; `uses_a_micro_step` of them repeat themselves.
  GatheredMemory(const ModelTensors& model, const Workload& workload, const Knobs& knobs, std::vector<std::size_t> uses,
                 std::size_t uses_a_micro_step);

  bool idle() const { return items_.empty(); }
  /// `sent`: how many reductions have been issued. Returns how many of them are over for sure before what the use reads
  /// is there: copies of parameters from the host run behind those of gradients to it.
  std::size_t begin_use(std::size_t sent);
  /// The current use reads `tensor` for the last time, and all of its tensors where `is_last`.
  void last_read(int tensor, bool is_last);
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Item {
    std::size_t use;
    int of;  ///< a unit, or a tensor where tensors are fetched
    std::int64_t elems;
    std::size_t next_use;
  };
  struct Slot {
    bool here = false;
    bool is_ahead = false;
    bool counted = false;    ///< in bytes_
    std::size_t behind = 0;  ///< so many reductions
  };

  void add_items(std::size_t use);
  void find_next_uses();
  Slot& slot(std::size_t item) { return slots_[fetches_tensors_ ? static_cast<std::size_t>(items_[item].of) : item]; }
  bool is_used_soon(const Item& item) const;
  bool is_here(const Item& item) const;
  void claim(std::size_t item, std::size_t sent);
  void release(std::size_t item);
  void gather_ahead(std::size_t use, std::size_t sent);

  const ModelTensors& model_;
  const Knobs& knobs_;
  bool fetches_tensors_;
  std::int64_t type_bytes_;
  std::vector<std::size_t> uses_;
  std::size_t uses_a_micro_step_;
  std::vector<Item> items_;
  std::vector<std::size_t> first_item_;  ///< by use, and the end
  std::vector<std::int64_t> elems_before_;
  std::vector<Slot> slots_;  ///< by item, or by tensor
  std::vector<int> held_;    ///< by unit, or by tensor
  std::size_t next_use_ = 0, next_item_ = 0;
  std::int64_t live_elems_ = 0, ahead_elems_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace krigtune
