#include "host/reduction.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "host/number_types.h"

namespace krigtune {
namespace {

/// Results are formed in blocks that stay in the first-level cache while all ranks' addends pass by.
constexpr std::int64_t kBlock = 2048;
using Floats = std::array<float, kBlock>;

const std::uint16_t* halves(const std::byte* data) { return reinterpret_cast<const std::uint16_t*>(data); }

/// The elements as floats: themselves, or widened into `room`.
const float* floats_of(DType type, const std::byte* data, std::int64_t elems, Floats& room) {
  if (type == DType::kFp32) return reinterpret_cast<const float*>(data);
  widen(type, halves(data), elems, room.data());
  return room.data();
}

void combine(Reduction reduction, const float* addend, std::int64_t elems, float* into) {
  if (reduction == Reduction::kSum) {
    for (std::int64_t i = 0; i < elems; ++i) into[i] += addend[i];
  } else {
    for (std::int64_t i = 0; i < elems; ++i) into[i] = into[i] >= addend[i] || into[i] != into[i] ? into[i] : addend[i];
  }
}

}  // namespace

void reduce_in_order(Reduction reduction, DType type, std::span<const std::byte* const> addends, std::int64_t elems,
                     std::byte* out) {
  assert(type == DType::kFp32 || is_16_bit(type));
  if (addends.size() == 1 && addends[0] == out) return;
  Floats result;
  Floats room;
  for (std::int64_t at = 0; at < elems; at += kBlock) {
    const std::int64_t count = std::min(kBlock, elems - at);
    const std::int64_t offset = at * size_bytes(type);
    std::copy_n(floats_of(type, addends[0] + offset, count, room), count, result.data());
    for (const std::byte* addend : addends.subspan(1)) {
      combine(reduction, floats_of(type, addend + offset, count, room), count, result.data());
    }
    if (type == DType::kFp32) {
      std::copy_n(result.data(), count, reinterpret_cast<float*>(out + offset));
    } else {
      round_to(type, result.data(), count, reinterpret_cast<std::uint16_t*>(out + offset));
    }
  }
}

}  // namespace krigtune
