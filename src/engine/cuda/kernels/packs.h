#pragma once
// Kernels on packs of elements. Body is a lambda of a Place<width>, written once for every width: as many elements as
// make 16 bytes of the widest operand (4 of fp32, else 8) where all addresses and row lengths allow it, else half of
// them, else single elements. 256 threads of 16 bytes each, eight blocks on a multiprocessor: 32 KiB on their way,
// twice what the latency of an H100's memory asks for.
#include <initializer_list>

#include "cuda/kernels/elements.h"

namespace krigtune::cuda {

/// Whether packs of this width may be read from and put into the operand at every multiple of the width.
inline bool fits(const Elements& operand, int width) {
  constexpr std::int64_t kWidestAccessBytes = 16;
  const std::int64_t bytes = width * size_bytes(operand.type());
  return operand.address() % static_cast<std::uintptr_t>(bytes < kWidestAccessBytes ? bytes : kWidestAccessBytes) == 0;
}

/// How operands are walked through.
struct Walk {
  int width;   ///< of packs: 8, 4 or 1
  DType type;  ///< of all operands, or kAnyType
};

/// For rows of `row_elems`. Masks (kUint8) may be among the operands.
inline Walk walk_of(std::initializer_list<Elements> operands, std::int64_t row_elems) {
  DType type = kAnyType;
  bool mixed = false;
  for (const Elements& operand : operands) {
    if (operand.type() == DType::kUint8) continue;
    mixed = mixed || (type != kAnyType && type != operand.type());
    type = operand.type();
  }
  for (int width = mixed || type == DType::kFp32 ? 4 : 8; width >= 4; width /= 2) {
    bool all_fit = row_elems % width == 0;
    for (const Elements& operand : operands) all_fit = all_fit && fits(operand, width);
    const bool is_16_byte = width == 8 || type == DType::kFp32;
    if (all_fit) return {width, mixed || !is_16_byte ? kAnyType : type};
  }
  return {1, kAnyType};
}

/// f(Place<width, type>), both as constants.
template <class F>
void with_place(const Walk& walk, F f) {
  if (walk.width == 8 && walk.type == DType::kBf16) return f(Place<8, DType::kBf16>{});
  if (walk.width == 8) return f(Place<8, DType::kFp16>{});
  if (walk.width == 4 && walk.type == DType::kFp32) return f(Place<4, DType::kFp32>{});
  if (walk.width == 4) return f(Place<4>{});
  f(Place<1>{});
}

template <class At, class Body>
__global__ void __launch_bounds__(kBlockThreads) run_packs(std::int64_t count, Body body) {
  constexpr int kWidth = At::width;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads * kWidth;
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) * kWidth;
  for (; i + kWidth <= count; i += stride) body(At{i});
  if constexpr (kWidth > 1) {
    for (; i < count; ++i) body(Place<1>{i});
  }
}

template <class Body>
void launch_packs_of(Queue queue, const Walk& walk, std::int64_t count, Body body) {
  if (count <= 0) return;
  with_place(walk, [&](auto place) {
    using At = decltype(place);
    constexpr std::int64_t kBlockElems = std::int64_t{kBlockThreads} * At::width;
    launch(queue, blocks_for((count + kBlockElems - 1) / kBlockElems), kBlockThreads, 0, run_packs<At, Body>, count,
           body);
  });
}

/// body(place) for packs that together are the elements 0 <= i < count of the operands.
template <class Body>
void launch_packs(Queue queue, std::int64_t count, std::initializer_list<Elements> operands, Body body) {
  launch_packs_of(queue, walk_of(operands, 0), count, body);
}

template <class Body>
struct InRows {
  std::int64_t width;
  Body body;

  template <class At>
  __device__ void operator()(At place) const {
    const std::int64_t row = place.first / width;
    body(row, At{place.first - row * width});
  }
};

/// body(row, place in the row), packs within rows of `width` elements; other rows of the operands may begin at any
/// multiple of `width`.
template <class Body>
void launch_row_packs(Queue queue, std::int64_t rows, std::int64_t width, std::initializer_list<Elements> operands,
                      Body body) {
  launch_packs_of(queue, walk_of(operands, width), rows * width, InRows<Body>{width, body});
}

/// each(place) for packs that together are the `count` elements of `operand`, which may begin anywhere, by `threads`
/// threads, 16 or more, of which this is the `thread`-th: 16 bytes a pack, single elements before and behind them.
/// kLastFirst: from the end on, so that a second pass over a row begins with what caches still hold.
template <bool kLastFirst = false, class Each>
__device__ void for_packs(const Elements& operand, std::int64_t count, std::int64_t thread, std::int64_t threads,
                          Each each) {
  const auto by = [&](auto widest) {
    using At = decltype(widest);
    constexpr int kWidth = At::width;
    constexpr std::int64_t kElemBytes = 16 / kWidth;
    const std::int64_t before = static_cast<std::int64_t>((16 - operand.address() % 16) % 16) / kElemBytes;
    const std::int64_t head = before < count ? before : count;
    const std::int64_t packs = (count - head) / kWidth;
    for (std::int64_t p = thread; p < packs; p += threads) {
      each(At{head + (kLastFirst ? packs - 1 - p : p) * kWidth});
    }
    const std::int64_t single = thread < head ? thread : thread + packs * kWidth;
    if (single < count) each(Place<1>{single});
  };
  if (operand.type() == DType::kFp32) return by(Place<4, DType::kFp32>{});
  if (operand.type() == DType::kBf16) return by(Place<8, DType::kBf16>{});
  by(Place<8, DType::kFp16>{});
}

}  // namespace krigtune::cuda
