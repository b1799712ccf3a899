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

/// 8, 4 or 1, dividing `row_elems`.
inline int pack_width(std::initializer_list<Elements> operands, std::int64_t row_elems) {
  int width = 8;
  for (const Elements& operand : operands) {
    if (operand.type() == DType::kFp32) width = 4;
  }
  for (; width >= 4; width /= 2) {
    bool all_fit = row_elems % width == 0;
    for (const Elements& operand : operands) all_fit = all_fit && fits(operand, width);
    if (all_fit) return width;
  }
  return 1;
}

/// f(Place<width>) with the width as a constant.
template <class F>
void with_width(int width, F f) {
  if (width == 8) return f(Place<8>{});
  if (width == 4) return f(Place<4>{});
  f(Place<1>{});
}

template <int kWidth, class Body>
__global__ void __launch_bounds__(kBlockThreads) run_packs(std::int64_t count, Body body) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kBlockThreads * kWidth;
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) * kWidth;
  for (; i + kWidth <= count; i += stride) body(Place<kWidth>{i});
  if constexpr (kWidth > 1) {
    for (; i < count; ++i) body(Place<1>{i});
  }
}

template <class Body>
void launch_packs_of(Queue queue, int width, std::int64_t count, Body body) {
  if (count <= 0) return;
  with_width(width, [&](auto place) {
    constexpr int kWidth = decltype(place)::width;
    constexpr std::int64_t kBlockElems = std::int64_t{kBlockThreads} * kWidth;
    launch(queue, blocks_for((count + kBlockElems - 1) / kBlockElems), kBlockThreads, 0, run_packs<kWidth, Body>, count,
           body);
  });
}

/// body(place) for packs that together are the elements 0 <= i < count of the operands.
template <class Body>
void launch_packs(Queue queue, std::int64_t count, std::initializer_list<Elements> operands, Body body) {
  launch_packs_of(queue, pack_width(operands, 0), count, body);
}

template <class Body>
struct InRows {
  std::int64_t width;
  Body body;

  template <int kWidth>
  __device__ void operator()(Place<kWidth> place) const {
    const std::int64_t row = place.first / width;
    body(row, Place<kWidth>{place.first - row * width});
  }
};

/// body(row, place in the row), packs within rows of `width` elements; other rows of the operands may begin at any
/// multiple of `width`.
template <class Body>
void launch_row_packs(Queue queue, std::int64_t rows, std::int64_t width, std::initializer_list<Elements> operands,
                      Body body) {
  launch_packs_of(queue, pack_width(operands, width), rows * width, InRows<Body>{width, body});
}

/// each(place) for packs that together are the `count` elements of `operand`, which may begin anywhere, by `threads`
/// threads, 16 or more, of which this is the `thread`-th: 16 bytes a pack, single elements before and behind them.
/// kLastFirst: from the end on, so that a second pass over a row begins with what caches still hold.
template <bool kLastFirst = false, class Each>
__device__ void for_packs(const Elements& operand, std::int64_t count, std::int64_t thread, std::int64_t threads,
                          Each each) {
  const auto by = [&](auto widest) {
    constexpr int kWidth = decltype(widest)::width;
    constexpr std::int64_t kElemBytes = 16 / kWidth;
    const std::int64_t before = static_cast<std::int64_t>((16 - operand.address() % 16) % 16) / kElemBytes;
    const std::int64_t head = before < count ? before : count;
    const std::int64_t packs = (count - head) / kWidth;
    for (std::int64_t p = thread; p < packs; p += threads) {
      each(Place<kWidth>{head + (kLastFirst ? packs - 1 - p : p) * kWidth});
    }
    const std::int64_t single = thread < head ? thread : thread + packs * kWidth;
    if (single < count) each(Place<1>{single});
  };
  if (operand.type() == DType::kFp32) {
    by(Place<4>{});
  } else {
    by(Place<8>{});
  }
}

}  // namespace krigtune::cuda
