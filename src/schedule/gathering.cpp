#include "schedule/gathering.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace krigtune::schedule {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

}  // namespace

Gathering::Gathering(const Setting& setting, std::span<const Part> parts, std::int64_t micro_steps, GatheringSink& sink)
    : setting_(setting), sink_(sink), micro_steps_(micro_steps) {
  if (!setting.policy.shards_parameters) return;
  add_units();
  if (sharded_.empty()) return;
  const auto tensors = static_cast<std::size_t>(setting.tensors.count());
  held_.assign(tensors, 0);
  std::vector<std::size_t> uses;  // units
  for (const Part& part : parts) {
    if (part.begins_use) uses.push_back(part.unit_index);
  }
  add_items(uses);
  there_.resize(setting.policy.fetches_tensors ? tensors : items_.size());
  if (setting.policy.fetches_tensors) find_what_stays(uses);
}

void Gathering::add_units() {
  const StageTensors& tensors = setting_.tensors;
  for (std::size_t u = 0; u < tensors.units(); ++u) {
    for (const int t : tensors.unit(u)) {
      if (setting_.is_sharded(t)) sharded_.push_back(t);
    }
    sharded_ends_.push_back(sharded_.size());
  }
}

void Gathering::add_items(std::span<const std::size_t> uses) {
  std::vector<bool> used(sharded_ends_.size());  // by unit
  for (const std::size_t unit : uses) {
    const bool is_again = used[unit];
    used[unit] = true;
    first_item_.push_back(items_.size());
    const std::size_t begin = unit == 0 ? 0 : sharded_ends_[unit - 1];
    const auto of_unit = std::span<const int>(sharded_).subspan(begin, sharded_ends_[unit] - begin);
    if (of_unit.empty()) continue;
    if (setting_.policy.fetches_tensors) {
      for (const int& t : of_unit) {
        items_.push_back({std::span(&t, 1), setting_.tensors.padded(t), static_cast<std::size_t>(t), is_again});
      }
      continue;
    }
    // All items of a micro-step are released before those of the next one are gathered, so they can share slots.
    GatheredItem& item = items_.emplace_back(GatheredItem{of_unit, 0, items_.size(), is_again});
    for (const int t : of_unit) item.elems += setting_.tensors.padded(t);
  }
  first_item_.push_back(items_.size());
}

// Considers only one micro-step, because its end releases everything.
void Gathering::find_what_stays(std::span<const std::size_t> uses) {
  std::vector<std::int64_t> elems_before = {0};  // elements of the parameters that earlier uses traverse
  for (const std::size_t unit : uses) {
    std::int64_t elems = elems_before.back();
    for (const int t : setting_.tensors.unit(unit)) elems += setting_.tensors.elems(t);
    elems_before.push_back(elems);
  }
  std::vector<std::size_t> next(held_.size(), kNever);
  for (std::size_t use = uses.size(); use > 0; --use) {
    for (std::size_t i = first_item_[use - 1]; i < first_item_[use]; ++i) {
      std::size_t& next_use = next[items_[i].slot];
      items_[i].stays =
          next_use != kNever && elems_before[next_use] - elems_before[use] < setting_.knobs.max_reuse_elems;
      next_use = use - 1;
    }
  }
}

void Gathering::begin_use() {
  if (!active()) return;
  if (has_begun_) {
    for (const GatheredItem& item : current()) let_go(item);
    if (++current_use_ + 1 == first_item_.size()) {
      current_use_ = 0;
      ++micro_step_;
    }
  }
  has_begun_ = true;
  for (const GatheredItem& item : current()) {
    if (std::exchange(there_[item.slot].is_ahead, false)) ahead_elems_ -= item.elems;
    if (!there_[item.slot].here) claim(item);
  }
  if (!claimed_.empty()) sink_.gather(claimed_);
  claimed_.clear();
  if (setting_.policy.prefetches) gather_ahead();
}

void Gathering::let_go(const GatheredItem& item) {
  if (item.stays) return;
  there_[item.slot].here = false;
  live_elems_ -= item.elems;
  for (const int t : item.tensors) --held_[static_cast<std::size_t>(t)];
  sink_.let_go(item);
}

void Gathering::claim(const GatheredItem& item) {
  claimed_.push_back(&item);
  there_[item.slot].here = true;
  live_elems_ += item.elems;
  for (const int t : item.tensors) ++held_[static_cast<std::size_t>(t)];
}

void Gathering::gather_ahead() {
  const bool tensors = setting_.policy.fetches_tensors;
  const std::size_t before = micro_step_ * items_.size();
  const std::size_t end = tensors ? before + items_.size() : static_cast<std::size_t>(micro_steps_) * items_.size();
  std::int64_t budget_elems = setting_.knobs.prefetch_elems - (tensors ? 0 : ahead_elems_);
  for (next_item_ = std::max(next_item_, before + first_item_[current_use_ + 1]); next_item_ < end; ++next_item_) {
    const GatheredItem& item = items_[next_item_ % items_.size()];
    const bool held = is_held(item);
    if (tensors && held) continue;
    const bool must = setting_.policy.prefetches_one_at_least && ahead_elems_ == 0;
    const bool fits = (item.elems <= budget_elems && !held) || must;
    if (!fits || live_elems_ + item.elems > setting_.knobs.max_live_elems) break;
    claim(item);
    there_[item.slot].is_ahead = true;
    ahead_elems_ += item.elems;
    budget_elems -= item.elems;
  }
  if (tensors && !claimed_.empty()) {
    sink_.gather(claimed_);
  } else {
    for (const GatheredItem* const& item : claimed_) sink_.gather(std::span(&item, 1));
  }
  claimed_.clear();
}

bool Gathering::is_held(const GatheredItem& item) const {
  return std::any_of(item.tensors.begin(), item.tensors.end(),
                     [this](int t) { return held_[static_cast<std::size_t>(t)] > 0; });
}

std::int64_t Gathering::largest_elems() const {
  std::int64_t largest = 0;
  for (const GatheredItem& item : items_) largest = std::max(largest, item.elems);
  return largest;
}

}  // namespace krigtune::schedule
