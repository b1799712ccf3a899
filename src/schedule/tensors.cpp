#include "schedule/tensors.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace krigtune::schedule {
namespace {

// For each unit, the table's tensors [begin, end) of the first one of its kind.
using UnitRanges = std::array<std::pair<std::size_t, std::size_t>, kUnitCount>;

UnitRanges ranges_of(const ParameterTable& table) {
  const std::vector<BlockTensors>& blocks = table.blocks;
  const auto behind_blocks = static_cast<std::size_t>(table.behind_blocks);
  const auto begin_of = [&](std::size_t block) {
    return block < blocks.size() ? static_cast<std::size_t>(blocks[block].first) : behind_blocks;
  };
  UnitRanges ranges{};
  const auto set = [&](Unit unit, std::size_t begin, std::size_t end) {
    ranges[static_cast<std::size_t>(unit)] = {begin, end};
  };
  set(Unit::kEmbedding, 0, begin_of(0));
  std::vector<std::size_t> firsts;  // of each kind
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    if (block == 0 || !(blocks[block].kind == blocks[block - 1].kind)) firsts.push_back(block);
  }
  for (std::size_t kind = 0; kind < firsts.size(); ++kind)
    set(block_unit(kind, firsts.size()), begin_of(firsts[kind]), begin_of(firsts[kind] + 1));
  set(Unit::kHead, behind_blocks, table.tensors.size());
  return ranges;
}

}  // namespace

UnitTensors unit_tensors(const ParameterTable& table) {
  UnitTensors model;
  model.tied = table.head == table.table || !table.mtp.empty();
  std::vector<int> number(table.tensors.size(), -1);
  const UnitRanges ranges = ranges_of(table);
  for (std::size_t unit = 0; unit < ranges.size(); ++unit) {
    for (std::size_t t = ranges[unit].first; t < ranges[unit].second; ++t) {
      number[t] = static_cast<int>(model.tensors.size());
      const ParameterTensor& tensor = table.tensors[t];
      const auto at = static_cast<int>(t);
      const bool of_mtp = !table.mtp.empty() && at >= table.mtp.front().first && at != table.others;
      model.tensors.push_back({tensor.elems, static_cast<Unit>(unit), tensor.split != Split::kNone,
                               table.partial_gradients[t], tensor.matrices, tensor.of_experts, tensor.trained,
                               tensor.columns, of_mtp});
    }
  }
  for (const int t : gradient_ready_order(table)) {
    if (number[static_cast<std::size_t>(t)] >= 0) model.ready_order.push_back(number[static_cast<std::size_t>(t)]);
  }
  return model;
}

UnitTensors unit_tensors(const workload::Workload& workload, const Knobs& knobs) {
  workload::Workload small = workload;
  small.model = workload::with_a_layer_of_each_kind(workload.model);
  return unit_tensors(make_parameters(small, knobs));
}

StageTensors::StageTensors(const UnitTensors& model, const StageParts& parts, std::int64_t granule_elems)
    : parts_(parts), tied_(model.tied), copies_table_(model.tied && parts.head && !parts.embedding) {
  for (const UnitTensor& tensor : model.tensors) {
    unit_of_.push_back(tensor.unit);
    ++unit_counts_[static_cast<std::size_t>(tensor.unit)];
  }
  std::exclusive_scan(unit_counts_.begin(), unit_counts_.end(), unit_first_.begin(), 0);
  const auto add_units = [&](Unit unit, std::int64_t times) {
    const auto at = static_cast<std::size_t>(unit);
    first_[at] = count();
    for (std::int64_t i = 0; i < times; ++i) {
      const auto first = model.tensors.begin() + unit_first_[at];
      std::for_each(first, first + unit_counts_[at], [&](const UnitTensor& tensor) { add(tensor, granule_elems); });
    }
  };
  add_units(Unit::kEmbedding, parts.embedding ? 1 : 0);
  for (const Unit block : kBlocks) add_units(block, parts.layers_of(block));
  add_units(Unit::kHead, parts.head ? 1 : 0);
  if (copies_table_) {
    first_[0] = count();
    add(model.tensors.front(), granule_elems);
  }
  set_units();
  set_ready_order(model);
}

void StageTensors::add(const UnitTensor& tensor, std::int64_t granule_elems) {
  const std::int64_t padded = (tensor.elems + granule_elems - 1) / granule_elems * granule_elems;
  elems_.push_back(tensor.elems);
  padded_.push_back(padded);
  kind_.push_back(tensor);
  if (!tensor.trained) {
    frozen_padded_ += padded;
    return;
  }
  trained_elems_ += tensor.elems;
  if (tensor.of_experts) trained_expert_elems_ += tensor.elems;
  if (tensor.columns > 0) trained_matrix_elems_ += tensor.elems;
  trained_padded_ += padded;
}

void StageTensors::set_units() {
  const auto end_unit = [this] { unit_ends_.push_back(in_units_.size()); };
  for (int t = 0; parts_.embedding && t < first_[1]; ++t) in_units_.push_back(t);
  end_unit();
  int t = first_[1];
  for (std::int64_t layer = 0; layer < parts_.layers; ++layer) {
    const int tensors = unit_counts_[static_cast<std::size_t>(parts_.unit_of(layer))];
    for (int i = 0; i < tensors; ++i) in_units_.push_back(t++);
    end_unit();
  }
  const int behind_head = copies_table_ ? first_[0] : count();
  for (; t < behind_head; ++t) in_units_.push_back(t);
  if (tied_ && parts_.head) in_units_.push_back(first_[0]);
  end_unit();
}

void StageTensors::set_ready_order(const UnitTensors& model) {
  const auto add_unit = [&](Unit unit, std::int64_t layer) {
    for (const int t : model.ready_order) {
      if (model.tensors[static_cast<std::size_t>(t)].unit == unit) ready_order_.push_back(index(t, layer));
    }
  };
  // What further tokens look up comes after all else of them.
  const bool looks_up = std::ranges::any_of(model.tensors, &UnitTensor::of_mtp);
  const bool adds_copy = copies_table_ && is_trained(first_[0]);
  if (adds_copy && !looks_up) ready_order_.push_back(first_[0]);
  if (parts_.head) add_unit(Unit::kHead, 0);
  if (adds_copy && looks_up) ready_order_.push_back(first_[0]);
  for (std::int64_t layer = parts_.layers; layer > 0; --layer) add_unit(parts_.unit_of(layer - 1), layer - 1);
  if (parts_.embedding) add_unit(Unit::kEmbedding, 0);
}

std::int64_t granule_elems(std::int64_t data_ranks, DType type) {
  return data_ranks * kAlignmentBytes / size_bytes(type);
}

std::int64_t layers_of_group(const StageParts& stage, const Knobs& knobs) {
  if (knobs.checkpointing != Checkpointing::kFull) return 1;
  return std::clamp<std::int64_t>(knobs.checkpoint_layers, 1, std::max<std::int64_t>(1, stage.layers));
}

std::vector<Part> parts_of(const StageTensors& tensors, const Knobs& knobs) {
  const StageParts& stage = tensors.parts();
  const std::int64_t layers = stage.layers;
  const std::int64_t size = layers_of_group(stage, knobs);
  const bool again = knobs.checkpointing == Checkpointing::kFull;
  std::vector<Part> parts;
  parts.reserve(3 * static_cast<std::size_t>(layers) + 4);
  const auto add_end = [&](Unit unit, Phase phase) {
    parts.push_back({unit, phase, unit == Unit::kHead ? static_cast<std::size_t>(layers) + 1 : 0});
  };
  const auto add_block = [&](Phase phase, std::int64_t layer) -> Part& {
    const bool closes = (layer + 1) % size == 0 || layer + 1 == layers;
    return parts.emplace_back(Part{stage.unit_of(layer), phase, static_cast<std::size_t>(layer) + 1, layer,
                                   layer / size, layer % size, closes});
  };
  if (stage.embedding) add_end(Unit::kEmbedding, Phase::kForward);
  for (std::int64_t layer = 0; layer < layers; ++layer) add_block(Phase::kForward, layer);
  if (stage.head) add_end(Unit::kHead, Phase::kForward);
  if (stage.head) add_end(Unit::kHead, Phase::kBackward);
  for (std::int64_t group = (layers + size - 1) / size; group > 0; --group) {
    const std::int64_t begin = (group - 1) * size;
    const std::int64_t end = std::min(begin + size, layers);
    // The last layer's parameters are still gathered from its recomputation, so both are one use.
    for (std::int64_t layer = begin; again && layer < end; ++layer) {
      add_block(Phase::kRecompute, layer).ends_use = layer + 1 < end;
    }
    for (std::int64_t layer = end - 1; layer >= begin; --layer) {
      add_block(Phase::kBackward, layer).begins_use = !again || layer + 1 < end;
    }
  }
  if (stage.embedding && tensors.trains_unit(0)) add_end(Unit::kEmbedding, Phase::kBackward);
  return parts;
}

}  // namespace krigtune::schedule
