// Whole units (canonical, as FSDP's): a use gathers its unit anew, and lets it go. Of a tensor that is there for an
// earlier use no second copy is gathered ahead, unless the very next unit needs it: so the turn from forward to
// backward does not double what is live.
//
// Single tensors (deepspeed): a use gathers what is missing, and keeps what is used again before max_reuse_elems other
// parameters of the micro-step have been traversed (partitioned_param_coordinator.py, __params_to_release). Each use
// may fetch up to prefetch_elems more, while no more than max_live_elems are there. DeepSpeed may exceed both by its
// last tensor; here they hold.
#include "zero/zero_gathering.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>
#include <utility>

namespace krigtune {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

}  // namespace

ParameterGathering::ParameterGathering(PlanBuilder& builder, const ZeroState& state, std::vector<std::vector<int>> uses)
    : builder_(builder),
      state_(state),
      setting_(state.setting),
      policy_(state.setting.policy),
      uses_(std::move(uses)),
      under_way_(builder, policy_.gathers_under_way) {
  const auto tensors = static_cast<std::size_t>(setting_.tensors());
  current_.resize(tensors);
  held_.assign(tensors, 0);
  if (state_.parameter_shards.empty()) return;
  const std::size_t all_uses = uses_.size() * static_cast<std::size_t>(setting_.knobs.micro_steps);
  elems_before_.push_back(0);
  for (std::size_t use = 0; use < all_uses; ++use) add_items(use);
  first_item_.push_back(items_.size());
  slots_.resize(policy_.fetches_tensors ? tensors : items_.size());
  find_next_uses();
}

void ParameterGathering::add_items(std::size_t use) {
  first_item_.push_back(items_.size());
  std::int64_t elems = 0;
  Item unit{use, {}, 0, kNever};
  for (const int t : uses_[use % uses_.size()]) {
    elems += setting_.tensor(t).elems;
    if (!state_.parameter_shards.has(t)) continue;
    unit.tensors.push_back(t);
    unit.elems += setting_.tensor(t).padded_elems;
    if (policy_.fetches_tensors) items_.push_back(std::exchange(unit, {use, {}, 0, kNever}));
  }
  if (!unit.tensors.empty()) items_.push_back(std::move(unit));
  elems_before_.push_back(elems_before_.back() + elems);
}

// Only within a micro-step: its end lets everything go.
void ParameterGathering::find_next_uses() {
  if (!policy_.fetches_tensors) return;
  std::vector<std::size_t> next(current_.size(), kNever);
  for (std::size_t i = items_.size(); i > 0; --i) {
    Item& item = items_[i - 1];
    std::size_t& of_tensor = next[static_cast<std::size_t>(item.tensors.front())];
    const bool same_micro_step = of_tensor != kNever && of_tensor / uses_.size() == item.use / uses_.size();
    item.next_use = same_micro_step ? of_tensor : kNever;
    of_tensor = item.use;
  }
}

std::size_t ParameterGathering::slot_of(std::size_t item) const {
  return policy_.fetches_tensors ? static_cast<std::size_t>(items_[item].tensors.front()) : item;
}

bool ParameterGathering::is_used_soon(const Item& item) const {
  if (item.next_use == kNever) return false;
  return elems_before_[item.next_use] - elems_before_[item.use + 1] < setting_.knobs.max_reuse_elems;
}

void ParameterGathering::begin_use() {
  const std::size_t use = next_use_++;
  before_use_ = builder_.last_compute();
  if (slots_.empty()) return;
  if (use > 0) {
    for (std::size_t i = first_item_[use - 1]; i < first_item_[use]; ++i) let_go(i);
  }
  std::vector<std::size_t> missing;
  for (std::size_t i = first_item_[use]; i < first_item_[use + 1]; ++i) {
    Slot& slot = slots_[slot_of(i)];
    if (std::exchange(slot.is_ahead, false)) ahead_elems_ -= items_[i].elems;
    if (slot.buffer >= 0) continue;
    claim(i);
    missing.push_back(i);
  }
  gather(missing);
  for (std::size_t i = first_item_[use]; i < first_item_[use + 1]; ++i) {
    Range range{slots_[slot_of(i)].buffer, 0, 0, 0};
    for (const int t : items_[i].tensors) {
      range.elems = setting_.tensor(t).padded_elems;
      current_[static_cast<std::size_t>(t)] = range;
      range.begin_elems += range.elems;
    }
  }
  if (policy_.prefetches) gather_ahead(use);
}

void ParameterGathering::let_go(std::size_t item) {
  for (const int t : items_[item].tensors) current_[static_cast<std::size_t>(t)] = {};
  if (is_used_soon(items_[item])) return;
  slots_[slot_of(item)].buffer = -1;
  live_elems_ -= items_[item].elems;
  for (const int t : items_[item].tensors) --held_[static_cast<std::size_t>(t)];
}

void ParameterGathering::gather_ahead(std::size_t use) {
  const std::size_t next_micro_step = (use / uses_.size() + 1) * uses_.size();
  const std::size_t end = policy_.fetches_tensors ? first_item_[next_micro_step] : items_.size();
  std::int64_t budget_elems = setting_.knobs.prefetch_elems - (policy_.fetches_tensors ? 0 : ahead_elems_);
  std::vector<std::size_t> ahead;
  for (next_item_ = std::max(next_item_, first_item_[use + 1]); next_item_ < end; ++next_item_) {
    const std::int64_t elems = items_[next_item_].elems;
    const bool here = is_here(next_item_);
    if (policy_.fetches_tensors && here) continue;
    const bool must = policy_.prefetches_one_at_least && ahead_elems_ == 0;
    const bool fits = (elems <= budget_elems && !here) || must;
    if (!fits || live_elems_ + elems > setting_.knobs.max_live_elems) break;
    claim(next_item_);
    slots_[slot_of(next_item_)].is_ahead = true;
    ahead_elems_ += elems;
    budget_elems -= elems;
    ahead.push_back(next_item_);
  }
  if (policy_.fetches_tensors) return gather(ahead);
  for (const std::size_t item : ahead) gather({item});
}

bool ParameterGathering::is_here(std::size_t item) const {
  const std::vector<int>& tensors = items_[item].tensors;
  return std::any_of(tensors.begin(), tensors.end(), [&](int t) { return held_[static_cast<std::size_t>(t)] > 0; });
}

void ParameterGathering::claim(std::size_t item) {
  const std::string& name = setting_.tensor(items_[item].tensors.front()).name;
  slots_[slot_of(item)].buffer =
      builder_.buffer("gathered " + name, Term::kGatheredParameters, items_[item].elems, policy_.type);
  live_elems_ += items_[item].elems;
  for (const int t : items_[item].tensors) ++held_[static_cast<std::size_t>(t)];
}

// What is let go behind the use before this one may give its bytes to what is gathered now.
void ParameterGathering::gather(const std::vector<std::size_t>& items) {
  if (items.empty()) return;
  const bool fetches_from_host = state_.parameter_shards.place() == Place::kHost;
  std::vector<Operand> copies;
  std::vector<Operand> operands;
  for (const std::size_t item : items) {
    std::int64_t begin = 0;
    for (const int t : items_[item].tensors) {
      const Range whole{slots_[slot_of(item)].buffer, begin, setting_.tensor(t).padded_elems, 0};
      const Operand shard{state_.parameter_shards.all(t), Access::kRead};
      const Range landed = setting_.own_part(whole);
      begin += whole.elems;
      if (fetches_from_host) copies.insert(copies.end(), {shard, {landed, Access::kWrite}});
      operands.push_back(fetches_from_host ? Operand{landed, Access::kRead} : shard);
      operands.push_back({whole, Access::kWrite});
    }
  }
  if (fetches_from_host) builder_.add(OpKind::kCopy, Stream::kCopy, {}, std::move(copies), 1.0, {before_use_});
  under_way_.enter(builder_.add(OpKind::kAllGather, Stream::kGather, {}, std::move(operands), 1.0, {before_use_}));
}

Operand ParameterGathering::parameter(int t) const {
  const bool is_whole = state_.parameters.has(t);
  Operand operand{is_whole ? state_.parameters.all(t) : current_[static_cast<std::size_t>(t)], Access::kRead};
  assert(operand.range.buffer >= 0 && "the tensor is not of this use's unit");
  operand.range.elems = setting_.tensor(t).elems;
  return operand;
}

// The current use's unit, and what is ahead of it: at least one unit where there is prefetching.
std::int64_t ParameterGathering::most_gathered_elems() const {
  if (policy_.fetches_tensors) return -1;
  std::int64_t largest = 0;
  for (const Item& unit : items_) largest = std::max(largest, unit.elems);
  const std::int64_t ahead = policy_.prefetches ? std::max(setting_.knobs.prefetch_elems, largest) : 0;
  return largest + std::min(ahead, setting_.knobs.max_live_elems);
}

}  // namespace krigtune
