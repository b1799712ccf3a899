#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/setting.h"
#include "schedule/tensors.h"

namespace krigtune::schedule {

/// Lets at most `width` operations be under way while computing goes on.
template <class Operation>
class Window {
 public:
  explicit Window(std::size_t width) : width_(width) {}

  /// One more: returns the oldest one that computing must wait for now, if any.
  std::optional<Operation> enter(const Operation& operation) {
    entered_.push_back(operation);
    if (width_ >= entered_.size()) return std::nullopt;
    return entered_[entered_.size() - 1 - width_];
  }

 private:
  std::size_t width_;
  std::vector<Operation> entered_;
};

/// Sharded parameters that are gathered and let go together, in one use of a unit: all of the unit's, or one tensor
/// where the policy fetches tensors.
struct GatheredItem {
  std::span<const int> tensors;
  std::int64_t elems = 0;  ///< padded
  std::size_t slot = 0;    ///< where it is kept while it is there; fewer than tensors, or than parts
  bool stays = false;      ///< behind this use, because it is used again soon in the same micro-step
};

/// What becomes of sharded parameters.
class GatheringSink {
 public:
  virtual ~GatheringSink() = default;
  /// One all-gather of all of them. It begins once all earlier operations of the compute stream are done; computing
  /// may go on beside it, as far as the policy's gathers_under_way allows.
  virtual void gather(std::span<const GatheredItem* const> items) = 0;
  /// Its last use has ended: its room is free.
  virtual void let_go(const GatheredItem& item) = 0;
};

/// Decides when sharded parameters are brought together and let go: for each use what is missing of the unit, and ahead
/// of later uses what the windows allow.
///
/// Whole units (the dialect canonical, as FSDP's): a use gathers its unit anew, and lets it go. Of a tensor that is
/// there for an earlier use no second copy is gathered ahead, unless the very next unit needs it: so the turn from
/// forward to backward does not double what is live.
///
/// Single tensors (the dialect deepspeed): a use gathers what is missing, and keeps what is used again before
/// max_reuse_elems other parameters of the micro-step have been traversed (partitioned_param_coordinator.py,
/// __params_to_release). Each use may fetch up to prefetch_elems more, while no more than max_live_elems are there.
/// DeepSpeed may exceed both by its last tensor; here they hold.
class Gathering {
 public:
  /// `parts`: of one micro-step. The other references must outlive it.
  Gathering(const Setting& setting, std::span<const Part> parts, std::int64_t micro_steps, GatheringSink& sink);
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  /// Whether any parameter is sharded; nothing happens otherwise.
  bool active() const { return !items_.empty(); }
  /// The next use in order begins.
  void begin_use();
  /// What is gathered of the current use's unit.
  std::span<const GatheredItem> current() const {
    if (!active()) return {};
    return std::span(items_).subspan(first_item_[current_use_],
                                     first_item_[current_use_ + 1] - first_item_[current_use_]);
  }
  /// Of the largest unit.
  std::int64_t largest_elems() const;

 private:
  struct There {
    bool here = false;
    bool is_ahead = false;  ///< not used since it was gathered
  };

  void add_units();
  void add_items(std::span<const std::size_t> uses);
  void find_what_stays(std::span<const std::size_t> uses);
  bool is_held(const GatheredItem& item) const;
  void let_go(const GatheredItem& item);
  void claim(const GatheredItem& item);
  void gather_ahead();

  const Setting& setting_;
  GatheringSink& sink_;
  std::int64_t micro_steps_;
  std::vector<int> sharded_;               ///< tensors, unit by unit
  std::vector<std::size_t> sharded_ends_;  ///< by unit, where it ends in sharded_
  std::vector<GatheredItem> items_;        ///< of one micro-step
  std::vector<std::size_t> first_item_;    ///< by use, and the end
  std::vector<There> there_;               ///< by slot
  std::vector<int> held_;                  ///< by tensor: in how many slots it is
  std::vector<const GatheredItem*> claimed_;
  bool has_begun_ = false;
  std::size_t current_use_ = 0;  ///< of the micro-step
  std::size_t micro_step_ = 0;
  std::size_t next_item_ = 0;  ///< to be looked at by gather_ahead, counted over all micro-steps
  std::int64_t live_elems_ = 0;
  std::int64_t ahead_elems_ = 0;
};

}  // namespace krigtune::schedule
