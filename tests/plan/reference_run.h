#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"
#include "plan/step_plan.h"

namespace krigtune {

/// Executes a plan byte by byte in the order of issue on all ranks, with scrambled numbers instead of arithmetic. It is
/// slow and simple, and does not know what a training step should be. Two plans without races that leave the same
/// results behind are equivalent.
class ReferenceRun {
 public:
  explicit ReferenceRun(const plan::StepPlan& plan) : plan_(plan) {
    for (std::int64_t r = 0; r < plan.world(); ++r) {
      cells_.emplace_back();
      cells_.back()[0].assign(static_cast<std::size_t>(plan.arena_bytes), 0);
      cells_.back()[1].assign(static_cast<std::size_t>(plan.host_arena_bytes), 0);
    }
    for (const auto* homes : {&plan.parameters, &plan.copies}) {
      for (const plan::TensorHome& home : *homes) {
        for (std::int64_t r = 0; r < plan.world(); ++r) initialise(home, r);
      }
    }
    for (int step = 0; step < 3; ++step) {
      for (const plan::Operation& operation : plan.operations) execute(operation, step);
    }
  }

  /// Returns what outlives the steps on all ranks: parameters and what starts with their values, losses, control.
  /// Moments and gradients are not visible from outside, but they affect the parameters of a later step.
  std::vector<std::uint64_t> left_behind() const {
    std::vector<std::uint64_t> all;
    const auto take = [&](const plan::Range& range) {
      for (std::int64_t r = 0; r < plan_.world(); ++r) {
        const Values now = load(r, range, r / plan_.tensor_ranks);
        all.insert(all.end(), now.begin(), now.end());
      }
    };
    for (const auto* homes : {&plan_.parameters, &plan_.copies}) {
      for (const plan::TensorHome& home : *homes) take(home.range);
    }
    take({plan_.loss, 0, plan_.micro_steps, 0});
    if (plan_.control >= 0) take({plan_.control, 0, schedule::kControlElementCount, 0});
    return all;
  }

 private:
  using Values = std::vector<std::uint64_t>;

  static std::uint64_t scramble(std::uint64_t x, std::uint64_t y) {
    std::uint64_t z = (x + 0x9E3779B97F4A7C15U) * 0xD6E8FEB86659FD93U ^ (y * 0xCA5A826395121157U);
    z = (z ^ (z >> 32U)) * 0xD6E8FEB86659FD93U;
    return z ^ (z >> 32U);
  }

  std::int64_t rank_in(const plan::Operation& operation, std::int64_t r) const {
    return operation.group == schedule::Group::kData ? r / plan_.tensor_ranks : r % plan_.tensor_ranks;
  }

  std::uint64_t* cell(std::int64_t r, const plan::Range& range, std::int64_t rank, std::int64_t elem) {
    return const_cast<std::uint64_t*>(std::as_const(*this).cell(r, range, rank, elem));
  }
  const std::uint64_t* cell(std::int64_t r, const plan::Range& range, std::int64_t rank, std::int64_t elem) const {
    const plan::Buffer& buffer = plan_.buffers[static_cast<std::size_t>(range.buffer)];
    const std::int64_t at = range.begin_elems + rank * range.rank_stride_elems + elem;
    return &cells_[static_cast<std::size_t>(r)][static_cast<std::size_t>(buffer.place)]
                  [static_cast<std::size_t>(buffer.offset_bytes + at * schedule::size_bytes(buffer.type))];
  }
  std::int64_t width(const plan::Range& range) const {
    return schedule::size_bytes(plan_.buffers[static_cast<std::size_t>(range.buffer)].type);
  }

  Values load(std::int64_t r, const plan::Range& range, std::int64_t rank) const {
    Values values;
    for (std::int64_t e = 0; e < range.elems; ++e) {
      const std::uint64_t* bytes = cell(r, range, rank, e);
      std::uint64_t value = bytes[0];
      for (std::int64_t b = 1; b < width(range); ++b) {
        if (bytes[b] != bytes[0]) value = scramble(value, bytes[b]);  // contains parts of several numbers
      }
      values.push_back(value);
    }
    return values;
  }

  void store(std::int64_t r, const plan::Range& range, std::int64_t rank, const Values& values) {
    for (std::int64_t e = 0; e < range.elems; ++e) {
      std::uint64_t* bytes = cell(r, range, rank, e);
      for (std::int64_t b = 0; b < width(range); ++b) bytes[b] = values[static_cast<std::size_t>(e)];
    }
  }

  void initialise(const plan::TensorHome& home, std::int64_t r) {
    const schedule::ParameterTensor& tensor = plan_.tensors[static_cast<std::size_t>(home.tensor)];
    const std::int64_t rank = r / plan_.tensor_ranks;
    const std::int64_t tensor_rank = tensor.split == schedule::Split::kNone ? 0 : r % plan_.tensor_ranks;
    Values values;
    for (std::int64_t e = 0; e < home.range.elems; ++e) {
      const std::int64_t elem = home.first_elem + (home.sharded ? rank * home.range.elems : 0) + e;
      const auto name = static_cast<std::uint64_t>((home.tensor * 4 + tensor_rank) * 1'000'000 + elem);
      values.push_back(elem < tensor.elems ? scramble(7, name) : 0);
    }
    store(r, home.range, rank, values);
  }

  void execute(const plan::Operation& operation, int step) {
    if (plan::is_collective(operation.kind)) return communicate(operation);
    for (std::int64_t r = 0; r < plan_.world(); ++r) compute(operation, r, step);
  }

  void communicate(const plan::Operation& operation) {
    const std::int64_t others = plan_.world() / plan_.group_ranks(operation.group);
    for (std::int64_t g = 0; g < others; ++g) {
      std::vector<std::int64_t> members;
      for (std::int64_t r = 0; r < plan_.world(); ++r) {
        const schedule::Group other =
            operation.group == schedule::Group::kData ? schedule::Group::kTensor : schedule::Group::kData;
        if ((other == schedule::Group::kData ? r / plan_.tensor_ranks : r % plan_.tensor_ranks) == g)
          members.push_back(r);
      }
      const bool gathers = operation.kind == schedule::OpKind::kAllGather;
      for (std::size_t k = 0; k < operation.operands.size(); k += gathers ? 2 : 1) {
        const plan::Range& range = operation.operands[k].range;
        std::vector<Values> own;
        for (const std::int64_t r : members) own.push_back(load(r, range, rank_in(operation, r)));
        for (std::size_t m = 0; m < members.size(); ++m) {
          const plan::Range& to = operation.operands[gathers ? k + 1 : k].range;
          store(members[m], to, rank_in(operation, members[m]), combined(operation.kind, own, m));
        }
      }
    }
  }

  static Values combined(schedule::OpKind kind, const std::vector<Values>& own, std::size_t member) {
    Values result;
    if (kind == schedule::OpKind::kAllGather) {
      for (const Values& part : own) result.insert(result.end(), part.begin(), part.end());
      return result;
    }
    result = own[member];
    const std::size_t part = result.size() / own.size();
    for (std::size_t e = 0; e < result.size(); ++e) {
      if (kind == schedule::OpKind::kReduceScatter && e / part != member) continue;
      std::uint64_t sum = 0;
      for (const Values& values : own) {
        sum = kind == schedule::OpKind::kAllReduceMax ? std::max(sum, values[e]) : sum + values[e];
      }
      result[e] = sum;
    }
    return result;
  }

  void compute(const plan::Operation& operation, std::int64_t r, int step) {
    const std::int64_t rank = rank_in(operation, r);
    const schedule::OpKind kind = operation.kind;
    if (kind == schedule::OpKind::kCopy || kind == schedule::OpKind::kAccumulate || kind == schedule::OpKind::kAdd)
      return pairs(operation, r, rank);
    if (plan::is_update(kind)) return update(operation, r, rank);
    if (kind == schedule::OpKind::kGradientNorm) return add_norm(operation, r, rank);
    std::uint64_t name = scramble(static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(operation.shape.rows));
    if (kind == schedule::OpKind::kLoadBatch) {
      const std::int64_t data_rank = r / plan_.tensor_ranks;
      name = scramble(name, static_cast<std::uint64_t>((step * 100 + operation.micro_step) * 100 + data_rank));
    }
    // The table is split, so each rank looks up other tokens.
    if (plan::traits_of(kind).looks_up()) {
      name = scramble(name, static_cast<std::uint64_t>(r % plan_.tensor_ranks));
    }
    // If a kind does not replace the former value of kReadWrite, it adds to it.
    const auto role = [&](std::size_t k) { return plan::traits_of(kind).operand(k, operation.operands.size()).role; };
    for (std::size_t k = 0; k < operation.operands.size(); ++k) {
      const plan::Operand& operand = operation.operands[k];
      const bool is_replaced = role(k) == plan::Role::kInPlace && operand.access != plan::Access::kWrite;
      if ((operand.access != plan::Access::kRead && !is_replaced) || role(k) == plan::Role::kHeld) continue;
      for (const std::uint64_t value : load(r, operand.range, rank)) name = scramble(name, value);
    }
    for (std::size_t k = 0; k < operation.operands.size(); ++k) {
      const plan::Operand& operand = operation.operands[k];
      if (operand.access == plan::Access::kRead) continue;
      Values values = load(r, operand.range, rank);
      for (std::size_t e = 0; e < values.size(); ++e) {
        const std::uint64_t result = kind == schedule::OpKind::kZero ? 0 : scramble(scramble(name, k), e);
        const bool adds = operand.access == plan::Access::kReadWrite && role(k) != plan::Role::kInPlace;
        values[e] = adds ? values[e] + result : result;
      }
      store(r, operand.range, rank, values);
    }
  }

  void pairs(const plan::Operation& operation, std::int64_t r, std::int64_t rank) {
    for (std::size_t k = 0; k + 1 < operation.operands.size(); k += 2) {
      const bool first = operation.kind == schedule::OpKind::kAdd;
      const plan::Operand& to = operation.operands[first ? k : k + 1];
      Values values = load(r, operation.operands[first ? k + 1 : k].range, rank);
      const Values old = load(r, to.range, rank);
      for (std::size_t e = 0; e < values.size() && to.access == plan::Access::kReadWrite; ++e) values[e] += old[e];
      store(r, to.range, rank, values);
    }
  }

  // Zeros do not change the norm.
  void add_norm(const plan::Operation& operation, std::int64_t r, std::int64_t rank) {
    Values sum = {0};
    if (operation.operands[0].access == plan::Access::kReadWrite) sum = load(r, operation.operands[0].range, rank);
    for (std::size_t k = 1; k < operation.operands.size(); ++k) {
      for (const std::uint64_t value : load(r, operation.operands[k].range, rank)) {
        if (value != 0) sum[0] += scramble(value, static_cast<std::uint64_t>(operation.scale * 16));
      }
    }
    store(r, operation.operands[0].range, rank, sum);
  }

  void update(const plan::Operation& operation, std::int64_t r, std::int64_t rank) {
    const std::size_t stride = plan::traits_of(operation.kind).group.size();
    std::uint64_t control = 0;
    if (operation.operands.size() % stride == 1) {
      for (const std::uint64_t value : load(r, operation.operands.back().range, rank))
        control = scramble(control, value);
    }
    for (std::size_t k = 0; k + stride <= operation.operands.size(); k += stride) {
      std::vector<Values> values;
      for (std::size_t j = 0; j < stride; ++j) values.push_back(load(r, operation.operands[k + j].range, rank));
      for (std::size_t e = 0; e < values[0].size(); ++e) {
        std::uint64_t name = control;
        for (const Values& value : values) name = scramble(name, value[e]);
        const bool is_padding = values[0][e] == 0 && values[1][e] == 0;
        for (std::size_t j = 0; j < stride; ++j) {
          if (j != 1 && !is_padding) values[j][e] = scramble(name, j);
        }
      }
      for (std::size_t j = 0; j < stride; ++j) {
        if (j != 1) store(r, operation.operands[k + j].range, rank, values[j]);
      }
    }
  }

  const plan::StepPlan& plan_;
  std::vector<std::array<std::vector<std::uint64_t>, schedule::kPlaceCount>> cells_;  ///< by rank, place and byte
};

/// Returns, by the definition, whether two operations that may run in either order access the same bytes and one of
/// them writes.
inline bool has_race(const plan::StepPlan& plan) {
  const Reachability order(plan);
  struct Touched {
    schedule::Place place;
    std::int64_t begin, end;
    bool writes;
  };
  const auto bytes_of = [&](const plan::Operation& operation) {
    std::vector<Touched> all;
    for (const plan::Operand& operand : operation.operands) {
      const plan::Range& range = operand.range;
      const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(range.buffer)];
      const std::int64_t last = range.begin_elems + (plan.group_ranks(operation.group) - 1) * range.rank_stride_elems;
      all.push_back({buffer.place, buffer.offset_bytes + range.begin_elems * schedule::size_bytes(buffer.type),
                     buffer.offset_bytes + (last + range.elems) * schedule::size_bytes(buffer.type),
                     operand.access != plan::Access::kRead});
    }
    return all;
  };
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    for (std::size_t j = i + 1; j < plan.operations.size(); ++j) {
      if (order.ordered(i, j)) continue;
      for (const Touched& x : bytes_of(plan.operations[i])) {
        for (const Touched& y : bytes_of(plan.operations[j])) {
          if (x.place == y.place && x.begin < y.end && y.begin < x.end && (x.writes || y.writes)) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace krigtune
