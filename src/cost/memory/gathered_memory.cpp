// The rules are those of plan/zero_gathering.cpp, step by step; the test over random configurations compares the two.
#include "memory/gathered_memory.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace krigtune {
namespace {

constexpr std::size_t kNoNextUse = std::numeric_limits<std::size_t>::max();

}  // namespace

GatheredMemory::GatheredMemory(const ModelTensors& model, const Workload& workload, const Knobs& knobs,
                               std::vector<std::size_t> uses, std::size_t uses_a_micro_step)
    : model_(model),
      knobs_(knobs),
      fetches_tensors_(workload.dialect == Dialect::kDeepSpeed),
      type_bytes_(size_bytes(compute_type(workload.precision))),
      uses_(std::move(uses)),
      uses_a_micro_step_(uses_a_micro_step) {
  if (knobs.zero_stage < 3) return;
  elems_before_.push_back(0);
  for (std::size_t use = 0; use < uses_.size(); ++use) add_items(use);
  first_item_.push_back(items_.size());
  slots_.resize(fetches_tensors_ ? model.tensors.size() : items_.size());
  held_.assign(fetches_tensors_ ? model.tensors.size() : model.units.size(), 0);
  if (fetches_tensors_) find_next_uses();
}

void GatheredMemory::add_items(std::size_t use) {
  first_item_.push_back(items_.size());
  std::int64_t elems = 0;
  Item unit{use, static_cast<int>(uses_[use]), 0, kNoNextUse};
  for (const int t : model_.units[uses_[use]]) {
    const ModelTensor& tensor = model_[t];
    elems += tensor.elems;
    if (tensor.elems <= knobs_.persistence_elems) continue;
    unit.elems += tensor.padded_elems;
    if (fetches_tensors_) items_.push_back({use, t, tensor.padded_elems, kNoNextUse});
  }
  if (!fetches_tensors_ && unit.elems > 0) items_.push_back(unit);
  elems_before_.push_back(elems_before_.back() + elems);
}

void GatheredMemory::find_next_uses() {
  std::vector<std::size_t> next(model_.tensors.size(), kNoNextUse);
  for (std::size_t i = items_.size(); i > 0; --i) {
    Item& item = items_[i - 1];
    std::size_t& of_tensor = next[static_cast<std::size_t>(item.of)];
    const bool same_micro_step =
        of_tensor != kNoNextUse && of_tensor / uses_a_micro_step_ == item.use / uses_a_micro_step_;
    item.next_use = same_micro_step ? of_tensor : kNoNextUse;
    of_tensor = item.use;
  }
}

bool GatheredMemory::is_used_soon(const Item& item) const {
  if (item.next_use == kNoNextUse) return false;
  return elems_before_[item.next_use] - elems_before_[item.use + 1] < knobs_.max_reuse_elems;
}

// A tied table is one tensor of two units.
bool GatheredMemory::is_here(const Item& item) const {
  if (held_[static_cast<std::size_t>(item.of)] > 0) return true;
  if (fetches_tensors_ || !model_.tied || model_[0].elems <= knobs_.persistence_elems) return false;
  const auto unit = static_cast<std::size_t>(item.of);
  return (unit == 0 && held_.back() > 0) || (unit == model_.head() && held_.front() > 0);
}

void GatheredMemory::claim(std::size_t item, std::size_t sent) {
  slot(item) = {.here = true, .is_ahead = false, .counted = true, .behind = sent};
  live_elems_ += items_[item].elems;
  bytes_ += items_[item].elems * type_bytes_;
  ++held_[static_cast<std::size_t>(items_[item].of)];
}

void GatheredMemory::release(std::size_t item) {
  if (is_used_soon(items_[item])) return;
  if (std::exchange(slot(item).counted, false)) bytes_ -= items_[item].elems * type_bytes_;
}

std::size_t GatheredMemory::begin_use(std::size_t sent) {
  const std::size_t use = next_use_++;
  if (items_.empty()) return 0;
  for (std::size_t i = use > 0 ? first_item_[use - 1] : 0; use > 0 && i < first_item_[use]; ++i) {
    release(i);
    if (is_used_soon(items_[i])) continue;
    slot(i).here = false;
    live_elems_ -= items_[i].elems;
    --held_[static_cast<std::size_t>(items_[i].of)];
  }
  std::size_t over = 0;
  for (std::size_t i = first_item_[use]; i < first_item_[use + 1]; ++i) {
    if (std::exchange(slot(i).is_ahead, false)) ahead_elems_ -= items_[i].elems;
    if (!slot(i).here) claim(i, sent);
    over = std::max(over, slot(i).behind);
  }
  if (fetches_tensors_ || knobs_.overlap_comm) gather_ahead(use, sent);
  const bool one_stream = knobs_.offload_optimizer && knobs_.offload_parameters;
  return one_stream ? over : 0;
}

void GatheredMemory::gather_ahead(std::size_t use, std::size_t sent) {
  const std::size_t next_micro_step = (use / uses_a_micro_step_ + 1) * uses_a_micro_step_;
  const std::size_t end = fetches_tensors_ ? first_item_[next_micro_step] : items_.size();
  std::int64_t budget_elems = knobs_.prefetch_elems - (fetches_tensors_ ? 0 : ahead_elems_);
  for (next_item_ = std::max(next_item_, first_item_[use + 1]); next_item_ < end; ++next_item_) {
    const std::int64_t elems = items_[next_item_].elems;
    const bool here = is_here(items_[next_item_]);
    if (fetches_tensors_ && here) continue;
    const bool must = !fetches_tensors_ && ahead_elems_ == 0;
    if (!(elems <= budget_elems && !here) && !must) break;
    if (live_elems_ + elems > knobs_.max_live_elems) break;
    claim(next_item_, sent);
    slot(next_item_).is_ahead = true;
    ahead_elems_ += elems;
    budget_elems -= elems;
  }
}

void GatheredMemory::last_read(int tensor, bool is_last) {
  if (items_.empty()) return;
  const std::size_t use = next_use_ - 1;
  for (std::size_t i = first_item_[use]; i < first_item_[use + 1]; ++i) {
    if (fetches_tensors_ ? items_[i].of == tensor : is_last) release(i);
  }
}

}  // namespace krigtune
