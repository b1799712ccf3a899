#include "host/rank_values.h"

#include <cstring>

#include "host/initial_values.h"
#include "host/number_types.h"

namespace krigtune {
namespace {

const Buffer& buffer_of(const StepPlan& plan, BufferId id) { return plan.buffers[static_cast<std::size_t>(id)]; }

std::byte* begin_of(const StepPlan& plan, const RankMemory& memory, const Range& range, std::int64_t rank) {
  const Buffer& buffer = buffer_of(plan, range.buffer);
  return memory.at(buffer) + (range.begin_elems + rank * range.rank_stride_elems) * size_bytes(buffer.type);
}

void put_initial_values(const StepPlan& plan, const TensorHome& home, const GroupRanks& ranks, std::uint64_t seed,
                        std::byte* out) {
  const auto [data_rank, tensor_rank] = ranks;
  const std::int64_t elems = home.range.elems;
  const std::int64_t first = home.first_elem + (home.sharded ? data_rank * elems : 0);
  const DType type = buffer_of(plan, home.range.buffer).type;
  if (type == DType::kFp32) {
    fill_initial_values(plan, home.tensor, seed, tensor_rank, first, elems, reinterpret_cast<float*>(out));
    return;
  }
  std::vector<float> values(static_cast<std::size_t>(elems));
  fill_initial_values(plan, home.tensor, seed, tensor_rank, first, elems, values.data());
  round_to(type, values.data(), elems, reinterpret_cast<std::uint16_t*>(out));
}

}  // namespace

void put_first_values(const StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks, std::uint64_t seed) {
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.persistent) std::memset(memory.at(buffer), 0, static_cast<std::size_t>(buffer.bytes()));
  }
  for (const auto* homes : {&plan.parameters, &plan.copies}) {
    for (const TensorHome& home : *homes) {
      put_initial_values(plan, home, ranks, seed, begin_of(plan, memory, home.range, ranks[0]));
    }
  }
  if (plan.control < 0) return;
  auto* control = reinterpret_cast<float*>(memory.at(buffer_of(plan, plan.control)));
  control[kLossScaleElement] = static_cast<float>(plan.first_loss_scale);
  control[kFactorElement] = static_cast<float>(1.0 / plan.first_loss_scale);
}

std::span<const std::byte> held_bytes(const StepPlan& plan, const RankMemory& memory, const TensorHome& home,
                                      std::int64_t data_rank) {
  const std::int64_t bytes = home.range.elems * size_bytes(buffer_of(plan, home.range.buffer).type);
  return {begin_of(plan, memory, home.range, data_rank), static_cast<std::size_t>(bytes)};
}

void append_floats(DType type, std::span<const std::byte> values, std::vector<float>& to) {
  const std::size_t begin = to.size();
  const std::size_t elems = values.size() / static_cast<std::size_t>(size_bytes(type));
  to.resize(begin + elems);
  if (type == DType::kFp32) {
    std::memcpy(to.data() + begin, values.data(), values.size());
  } else {
    widen(type, reinterpret_cast<const std::uint16_t*>(values.data()), static_cast<std::int64_t>(elems),
          to.data() + begin);
  }
}

double sum_of_losses(const StepPlan& plan, const RankMemory& memory) {
  const auto* losses = reinterpret_cast<const float*>(memory.at(buffer_of(plan, plan.loss)));
  double sum = 0.0;
  for (std::int64_t m = 0; m < plan.micro_steps; ++m) sum += static_cast<double>(losses[m]);
  return sum;
}

}  // namespace krigtune
