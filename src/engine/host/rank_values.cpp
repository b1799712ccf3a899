#include "engine/host/rank_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "engine/host/number_types.h"
#include "krigtune/rng.h"

namespace krigtune::engine {

// One Philox block gives four normals (Box and Muller): elements 4 i ... 4 i + 3 of tensor t come from counter (i, t).

namespace {

constexpr std::int64_t kPerBlock = 4;

std::array<double, kPerBlock> four_normals(std::uint64_t seed, std::int64_t tensor, std::int64_t block) {
  const auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::int64_t x) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) >> 32U); };
  const auto words = philox4x32({low(block), high(block), low(tensor), high(tensor)},
                                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  std::array<double, kPerBlock> normals{};
  for (std::size_t pair = 0; pair < 2; ++pair) {
    const double uniform = (static_cast<double>(words[2 * pair]) + 0.5) * 0x1.0p-32;  // never 0
    const double radius = std::sqrt(-2.0 * std::log(uniform));
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(words[2 * pair + 1]) * 0x1.0p-32;
    normals[2 * pair] = radius * std::cos(angle);
    normals[2 * pair + 1] = radius * std::sin(angle);
  }
  return normals;
}

}  // namespace

void fill_initial_values(const plan::StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                         std::int64_t begin, std::int64_t count, float* out) {
  const schedule::ParameterTensor& tensor = plan.tensors[static_cast<std::size_t>(index)];
  const std::int64_t values_end = std::clamp<std::int64_t>(tensor.elems - begin, 0, count);
  std::fill(out + values_end, out + count, 0.0F);
  std::array<double, kPerBlock> normals{};
  std::int64_t block = -1;
  for (std::int64_t i = 0; i < values_end; ++i) {
    const std::int64_t element = schedule::whole_element(tensor, tensor_rank, plan.tensor_ranks, begin + i);
    if (element < 0) {
      out[i] = 0.0F;
      continue;
    }
    if (tensor.initial_stddev != 0.0 && element / kPerBlock != block) {
      block = element / kPerBlock;
      normals = four_normals(seed, index, block);
    }
    const double normal = normals[static_cast<std::size_t>(element % kPerBlock)];
    out[i] = static_cast<float>(tensor.initial_mean + tensor.initial_stddev * normal);
  }
}

namespace {

const plan::Buffer& buffer_of(const plan::StepPlan& plan, plan::BufferId id) {
  return plan.buffers[static_cast<std::size_t>(id)];
}

std::byte* begin_of(const plan::StepPlan& plan, const RankMemory& memory, const plan::Range& range, std::int64_t rank) {
  const plan::Buffer& buffer = buffer_of(plan, range.buffer);
  return memory.at(buffer) + (range.begin_elems + rank * range.rank_stride_elems) * schedule::size_bytes(buffer.type);
}

void put_initial_values(const plan::StepPlan& plan, const plan::TensorHome& home, const GroupRanks& ranks,
                        std::uint64_t seed, std::byte* out) {
  const auto [data_rank, tensor_rank] = ranks;
  const std::int64_t elems = home.range.elems;
  const std::int64_t first = home.first_elem + (home.sharded ? data_rank * elems : 0);
  const schedule::DType type = buffer_of(plan, home.range.buffer).type;
  if (type == schedule::DType::kFp32) {
    fill_initial_values(plan, home.tensor, seed, tensor_rank, first, elems, reinterpret_cast<float*>(out));
    return;
  }
  std::vector<float> values(static_cast<std::size_t>(elems));
  fill_initial_values(plan, home.tensor, seed, tensor_rank, first, elems, values.data());
  round_to(type, values.data(), elems, reinterpret_cast<std::uint16_t*>(out));
}

}  // namespace

void put_first_values(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks,
                      std::uint64_t seed) {
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.persistent) std::memset(memory.at(buffer), 0, static_cast<std::size_t>(buffer.bytes()));
  }
  for (const auto* homes : {&plan.parameters, &plan.copies}) {
    for (const plan::TensorHome& home : *homes) {
      put_initial_values(plan, home, ranks, seed, begin_of(plan, memory, home.range, ranks[0]));
    }
  }
  if (plan.control < 0) return;
  auto* control = reinterpret_cast<float*>(memory.at(buffer_of(plan, plan.control)));
  control[schedule::kLossScaleElement] = static_cast<float>(plan.first_loss_scale);
  control[schedule::kFactorElement] = static_cast<float>(1.0 / plan.first_loss_scale);
}

std::span<const std::byte> held_bytes(const plan::StepPlan& plan, const RankMemory& memory,
                                      const plan::TensorHome& home, std::int64_t data_rank) {
  const std::int64_t bytes = home.range.elems * schedule::size_bytes(buffer_of(plan, home.range.buffer).type);
  return {begin_of(plan, memory, home.range, data_rank), static_cast<std::size_t>(bytes)};
}

void append_floats(schedule::DType type, std::span<const std::byte> values, std::vector<float>& to) {
  const std::size_t begin = to.size();
  const std::size_t elems = values.size() / static_cast<std::size_t>(schedule::size_bytes(type));
  to.resize(begin + elems);
  if (type == schedule::DType::kFp32) {
    std::memcpy(to.data() + begin, values.data(), values.size());
  } else {
    widen(type, reinterpret_cast<const std::uint16_t*>(values.data()), static_cast<std::int64_t>(elems),
          to.data() + begin);
  }
}

double sum_of_losses(const plan::StepPlan& plan, const RankMemory& memory) {
  const auto* losses = reinterpret_cast<const float*>(memory.at(buffer_of(plan, plan.loss)));
  double sum = 0.0;
  for (std::int64_t m = 0; m < plan.micro_steps; ++m) sum += static_cast<double>(losses[m]);
  return sum;
}

}  // namespace krigtune::engine
