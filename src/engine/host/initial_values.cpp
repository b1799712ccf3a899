// One Philox block gives four normals by Box and Muller: elements 4 i ... 4 i + 3 of tensor t come from counter (i, t).
#include "host/initial_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "krigtune/core/rng.h"

namespace krigtune {
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

void fill_initial_values(const StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                         std::int64_t begin, std::int64_t count, float* out) {
  const ParameterTensor& tensor = plan.tensors[static_cast<std::size_t>(index)];
  const std::int64_t values_end = std::clamp<std::int64_t>(tensor.elems - begin, 0, count);
  std::fill(out + values_end, out + count, 0.0F);
  std::array<double, kPerBlock> normals{};
  std::int64_t block = -1;
  for (std::int64_t i = 0; i < values_end; ++i) {
    const std::int64_t element = whole_element(tensor, tensor_rank, plan.tensor_ranks, begin + i);
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

}  // namespace krigtune
