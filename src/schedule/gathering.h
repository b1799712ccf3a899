#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/setting.h"
#include "schedule/tensors.h"

namespace krigtune::schedule {

/// Limits how many operations may be in flight while computing goes on.
template <class Operation>
class Window {
 public:
  explicit Window(std::size_t width) : width_(width) {}

  /// Adds an operation; returns the oldest one, if computing must now wait for it.
  std::optional<Operation> enter(const Operation& operation) {
    entered_.push_back(operation);
    if (width_ >= entered_.size()) return std::nullopt;
    return entered_[entered_.size() - 1 - width_];
  }

 private:
  std::size_t width_;
  std::vector<Operation> entered_;
};

/// Sharded parameters that are gathered and released together in one use of a unit: all of the unit's parameters, or a
/// single tensor if the policy fetches tensors.
struct GatheredItem {
  std::span<const int> tensors;
  std::int64_t elems = 0;  ///< padded
  std::size_t slot = 0;    ///< where it is kept while it is gathered; there are fewer slots than tensors or parts
  bool is_again = false;   ///< it was gathered before in the same micro-step, for the forward pass
  bool stays = false;      ///< stays gathered after this use, because it is used again soon in the same micro-step
};

/// Receives the decisions about sharded parameters.
class GatheringSink {
 public:
  virtual ~GatheringSink() = default;
  /// One all-gather of all the items. It begins when all earlier operations of the compute stream are done; computing
  /// may continue meanwhile, as far as the policy's gathers_under_way allows.
  virtual void gather(std::span<const GatheredItem* const> items) = 0;
  /// The item's last use has ended, so its memory is free.
  virtual void let_go(const GatheredItem& item) = 0;
};

/// Decides when sharded parameters are gathered and released: at each use the parameters of the unit that are missing,
/// and those of later uses as far ahead as the windows allow.
///
/// Whole units (dialect canonical, as in FSDP): each use gathers its unit and releases it afterwards. If a tensor is
/// still gathered for an earlier use, no second copy is gathered ahead unless the very next unit needs it. So the turn
/// from forward to backward does not double the live parameters.
///
/// Single tensors (dialect deepspeed): a use gathers only missing tensors, and keeps a tensor that is used again before
/// max_reuse_elems other parameters of the micro-step have been traversed (partitioned_param_coordinator.py,
/// __params_to_release). Each use may fetch up to prefetch_elems ahead while no more than max_live_elems are gathered.
/// DeepSpeed may exceed both limits by its last tensor; here they are never exceeded.
class Gathering {
 public:
  /// `parts`: the parts of one micro-step. The other references must outlive this object.
  Gathering(const Setting& setting, std::span<const Part> parts, std::int64_t micro_steps, GatheringSink& sink);
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  /// Returns whether any parameter is sharded; otherwise nothing happens.
  bool active() const { return !items_.empty(); }
  /// Begins the next use in order.
  void begin_use();
  /// Returns the gathered items of the current use's unit.
  std::span<const GatheredItem> current() const {
    if (!active()) return {};
    return std::span(items_).subspan(first_item_[current_use_],
                                     first_item_[current_use_ + 1] - first_item_[current_use_]);
  }
  /// Returns the elements of the largest unit.
  std::int64_t largest_elems() const;

 private:
  struct There {
    bool here = false;
    bool is_ahead = false;  ///< not used yet since it was gathered
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
  std::vector<std::size_t> sharded_ends_;  ///< for each unit: its end in sharded_
  std::vector<GatheredItem> items_;        ///< items of one micro-step
  std::vector<std::size_t> first_item_;    ///< for each use: its first item; then the end
  std::vector<There> there_;               ///< for each slot
  std::vector<int> held_;                  ///< for each tensor: the number of slots that contain it
  std::vector<const GatheredItem*> claimed_;
  bool has_begun_ = false;
  std::size_t current_use_ = 0;  ///< index in the micro-step
  std::size_t micro_step_ = 0;
  std::size_t next_item_ = 0;  ///< next one that gather_ahead considers, counted over all micro-steps
  std::int64_t live_elems_ = 0;
  std::int64_t ahead_elems_ = 0;
};

}  // namespace krigtune::schedule
