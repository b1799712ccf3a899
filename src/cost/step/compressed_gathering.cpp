// Follows plan/zero/zero_gathering.cpp: whole units (canonical) or single tensors (deepspeed), what is gathered ahead,
// and what is kept because it is used again soon.
#include "step/compressed_gathering.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace krigtune {
namespace {

constexpr std::size_t kNeverUsedAgain = std::numeric_limits<std::size_t>::max();

}  // namespace

std::int64_t checkpoint_layers(const Knobs& knobs) {
  return knobs.checkpointing == Checkpointing::kFull ? knobs.checkpoint_layers : 1;
}

std::vector<UnitUse> unit_uses(const StageParts& parts, const Knobs& knobs) {
  std::vector<UnitUse> uses;
  uses.reserve(static_cast<std::size_t>(3 * parts.layers + 4));
  if (parts.embedding) uses.push_back({Unit::kEmbedding, 0});
  for (std::int64_t layer = 0; layer < parts.layers; ++layer) uses.push_back({Unit::kBlock, layer});
  if (parts.head) uses.insert(uses.end(), 2, {Unit::kHead, 0});
  const std::int64_t group = std::min(checkpoint_layers(knobs), parts.layers);
  for (std::int64_t begin = (parts.layers - 1) / group * group; begin >= 0; begin -= group) {
    const std::int64_t end = std::min(begin + group, parts.layers);
    for (std::int64_t layer = begin; layer + 1 < end; ++layer) uses.push_back({Unit::kBlock, layer});
    for (std::int64_t layer = end; layer > begin; --layer) uses.push_back({Unit::kBlock, layer - 1});
  }
  if (parts.embedding) uses.push_back({Unit::kEmbedding, 0});
  return uses;
}

CompressedGathering::CompressedGathering(CostContext& step, std::int64_t micro_steps)
    : step_(step), under_way_(step.recorder, step.policy.gathers_under_way) {
  if (!step.policy.shards_parameters) return;
  const auto tensors = static_cast<std::size_t>(step.tensors.count());
  sharded_.resize(tensors);
  for (std::size_t t = 0; t < tensors; ++t) {
    sharded_[t] = step.tensors.elems(static_cast<int>(t)) > step.knobs.persistence_elems ? 1 : 0;
    active_ = active_ || sharded_[t] != 0;
  }
  if (!active_) return;
  held_.assign(tensors, 0);
  add_units();
  add_uses();
  all_uses_ = uses_.size() * static_cast<std::size_t>(micro_steps);
  elems_before_.push_back(0);
  for (std::size_t use = 0; use < all_uses_; ++use) add_items(use);
  first_item_.push_back(items_.size());
  slots_.resize(step.policy.fetches_tensors ? tensors : items_.size());
  find_next_uses();
}

// Embedding, blocks, head; each once.
void CompressedGathering::add_units() {
  const StageParts& parts = step_.tensors.parts();
  add_unit(Unit::kEmbedding, 0);
  for (std::int64_t layer = 0; layer < parts.layers; ++layer) add_unit(Unit::kBlock, layer);
  add_unit(Unit::kHead, 0);
}

std::size_t CompressedGathering::add_unit(Unit unit, std::int64_t layer) {
  UnitTensors& next = units_.emplace_back();
  next.begin = next.end = tensors_.size();
  const StageParts& parts = step_.tensors.parts();
  if ((unit == Unit::kEmbedding && !parts.embedding) || (unit == Unit::kHead && !parts.head)) return 0;
  const auto add = [&](int t) {
    const int tensor = step_.tensors.index(t, layer);
    next.elems += step_.tensors.elems(tensor);
    if (is_sharded(tensor)) tensors_.push_back(tensor);
  };
  for (std::size_t t = 0; t < step_.model.tensors.size(); ++t) {
    if (step_.model.tensors[t].unit == unit) add(static_cast<int>(t));
  }
  if (unit == Unit::kHead && step_.model.tied) add(0);
  next.end = tensors_.size();
  return units_.size() - 1;
}

void CompressedGathering::add_uses() {
  const StageParts& parts = step_.tensors.parts();
  for (const UnitUse& use : unit_uses(parts, step_.knobs)) {
    uses_.push_back(use.unit == Unit::kEmbedding ? 0
                    : use.unit == Unit::kHead    ? units_.size() - 1
                                                 : static_cast<std::size_t>(use.layer) + 1);
  }
}

void CompressedGathering::add_items(std::size_t use) {
  first_item_.push_back(items_.size());
  const UnitTensors& unit = units_[uses_[use % uses_.size()]];
  elems_before_.push_back(elems_before_.back() + unit.elems);
  if (unit.begin == unit.end) return;
  if (step_.policy.fetches_tensors) {
    for (std::size_t i = unit.begin; i < unit.end; ++i) {
      items_.push_back({use, i, i + 1, step_.tensors.padded(tensors_[i]), kNeverUsedAgain});
    }
    return;
  }
  Item& item = items_.emplace_back(Item{use, unit.begin, unit.end, 0, kNeverUsedAgain});
  for (std::size_t i = unit.begin; i < unit.end; ++i) item.elems += step_.tensors.padded(tensors_[i]);
}

void CompressedGathering::find_next_uses() {
  if (!step_.policy.fetches_tensors) return;
  std::vector<std::size_t> next(held_.size(), kNeverUsedAgain);
  for (std::size_t i = items_.size(); i > 0; --i) {
    Item& item = items_[i - 1];
    std::size_t& of_tensor = next[static_cast<std::size_t>(tensors_[item.begin])];
    const bool same_micro_step = of_tensor != kNeverUsedAgain && of_tensor / uses_.size() == item.use / uses_.size();
    item.next_use = same_micro_step ? of_tensor : kNeverUsedAgain;
    of_tensor = item.use;
  }
}

std::size_t CompressedGathering::slot_of(std::size_t item) const {
  return step_.policy.fetches_tensors ? static_cast<std::size_t>(tensors_[items_[item].begin]) : item;
}

bool CompressedGathering::is_used_soon(const Item& item) const {
  if (item.next_use == kNeverUsedAgain) return false;
  return elems_before_[item.next_use] - elems_before_[item.use + 1] < step_.knobs.max_reuse_elems;
}

void CompressedGathering::begin_use() {
  if (!active_) return;
  const std::size_t use = next_use_++;
  if (use > 0) {
    for (std::size_t i = first_item_[use - 1]; i < first_item_[use]; ++i) let_go(i);
  }
  for (std::size_t i = first_item_[use]; i < first_item_[use + 1]; ++i) {
    Slot& slot = slots_[slot_of(i)];
    if (std::exchange(slot.is_ahead, false)) ahead_elems_ -= items_[i].elems;
    if (slot.gathered == 0) claim(i);
  }
  gather(0, claimed_.size());
  if (!step_.policy.fetches_tensors && first_item_[use] < first_item_[use + 1]) {
    current_ = slots_[first_item_[use]].gathered;
  }
  if (step_.policy.prefetches) gather_ahead(use);
}

void CompressedGathering::let_go(std::size_t item) {
  if (is_used_soon(items_[item])) return;
  slots_[slot_of(item)].gathered = 0;
  live_elems_ -= items_[item].elems;
  for (std::size_t i = items_[item].begin; i < items_[item].end; ++i) --held_[static_cast<std::size_t>(tensors_[i])];
}

void CompressedGathering::gather_ahead(std::size_t use) {
  const bool tensors = step_.policy.fetches_tensors;
  const std::size_t next_micro_step = (use / uses_.size() + 1) * uses_.size();
  const std::size_t end = tensors ? first_item_[next_micro_step] : items_.size();
  std::int64_t budget_elems = step_.knobs.prefetch_elems - (tensors ? 0 : ahead_elems_);
  for (next_item_ = std::max(next_item_, first_item_[use + 1]); next_item_ < end; ++next_item_) {
    const std::int64_t elems = items_[next_item_].elems;
    const bool here = is_here(next_item_);
    if (tensors && here) continue;
    const bool must = step_.policy.prefetches_one_at_least && ahead_elems_ == 0;
    const bool fits = (elems <= budget_elems && !here) || must;
    if (!fits || live_elems_ + elems > step_.knobs.max_live_elems) break;
    claim(next_item_);
    slots_[slot_of(next_item_)].is_ahead = true;
    ahead_elems_ += elems;
    budget_elems -= elems;
  }
  if (tensors) return gather(0, claimed_.size());
  const std::size_t all = claimed_.size();
  for (std::size_t i = 0; i < all; ++i) gather(i, i + 1);
}

bool CompressedGathering::is_here(std::size_t item) const {
  for (std::size_t i = items_[item].begin; i < items_[item].end; ++i) {
    if (held_[static_cast<std::size_t>(tensors_[i])] > 0) return true;
  }
  return false;
}

void CompressedGathering::claim(std::size_t item) {
  claimed_.push_back(item);
  live_elems_ += items_[item].elems;
  for (std::size_t i = items_[item].begin; i < items_[item].end; ++i) ++held_[static_cast<std::size_t>(tensors_[i])];
}

// Of the claimed ones [first, last); the list is emptied behind its last one.
void CompressedGathering::gather(std::size_t first, std::size_t last) {
  if (first == last) return;
  std::int64_t elems = 0;
  for (std::size_t i = first; i < last; ++i) elems += items_[claimed_[i]].elems;
  Recorder& to = step_.recorder;
  const Recorder::Behind before_use{Stream::kCompute, to.flush()};
  Recorder::Behind landed = before_use;
  if (step_.policy.shard_place == Place::kHost) {
    const std::int64_t own_bytes = elems / step_.knobs.data_ranks * step_.type_bytes();
    const auto bytes = static_cast<double>(2 * own_bytes);  // read and written
    landed = {Stream::kCopy,
              to.add(Stream::kCopy, kernel_time_s(step_.machine, OpClass::kCopy, 0.0, bytes), {before_use})};
  }
  const Recorder::Collective collective = step_.data_collective(OpKind::kAllGather, elems * step_.type_bytes());
  const std::int32_t gathered = to.add(Stream::kGather, collective, {before_use, landed});
  for (std::size_t i = first; i < last; ++i) slots_[slot_of(claimed_[i])].gathered = gathered;
  if (last == claimed_.size()) claimed_.clear();
  under_way_.enter({Stream::kGather, gathered});
}

void CompressedGathering::read(int t) {
  if (!is_sharded(t)) return;
  const std::int32_t needed = step_.policy.fetches_tensors ? slots_[static_cast<std::size_t>(t)].gathered : current_;
  step_.recorder.wait_for(Stream::kGather, needed);
}

}  // namespace krigtune
