// Operands as kernels see them: elements of a type that is known only at run time, with which kernels compute in fp32.
// The branch on the type is uniform and is taken once for a pack of neighbouring elements; if all operands are of one
// type, the host takes it. A pack of 16 bytes is one access; the section on packs below says how many elements it may
// have.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cassert>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "engine/cuda/kernels/device.h"
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

__device__ inline float widened(schedule::DType type, std::uint16_t bits) {
  return type == schedule::DType::kBf16 ? __bfloat162float(__ushort_as_bfloat16(bits))
                                        : __half2float(__ushort_as_half(bits));
}

/// Rounds to nearest, ties to even.
__device__ inline std::uint16_t rounded(schedule::DType type, float value) {
  return type == schedule::DType::kBf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(value))
                                        : __half_as_ushort(__float2half_rn(value));
}

inline constexpr auto kAnyType = static_cast<schedule::DType>(0xFF);

/// The place of a pack of kWidth neighbouring elements, given by the first of them. kType is the type of the operands
/// if all of them are of one type; then nothing branches, and the loads of several operands are in flight together.
template <int kWidth, schedule::DType kType = kAnyType>
struct Place {
  static constexpr int width = kWidth;
  std::int64_t first;

  __device__ Place operator+(std::int64_t elems) const { return {first + elems}; }
};

/// Returns f(a, b, ...) of the elements at the same place in each pack.
template <class F, int kWidth, class... P>
__device__ inline Pack<kWidth> map(F f, const Pack<kWidth>& a, const P&... b) {
  Pack<kWidth> result;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) result.at[k] = f(a.at[k], b.at[k]...);
  return result;
}

template <int kWidth>
__device__ inline Pack<kWidth> plus(const Pack<kWidth>& a, const Pack<kWidth>& b) {
  return map([](float x, float y) { return x + y; }, a, b);
}
template <int kWidth>
__device__ inline float total(const Pack<kWidth>& pack) {
  float sum = pack.at[0];
#pragma unroll
  for (int k = 1; k < kWidth; ++k) sum += pack.at[k];
  return sum;
}

/// The number of the first sequence of this rank's micro-batch, counted over all steps, micro-steps and data ranks.
class FirstSequence {
 public:
  explicit FirstSequence(const DeviceCall& call)
      : step_(call.step),
        of_a_step_(call.context.micro_steps * call.context.ranks * call.shape().batch),
        before_((call.operation.micro_step * call.context.ranks + call.context.rank) * call.shape().batch) {}
  __device__ std::int64_t operator()() const { return *step_ * of_a_step_ + before_; }

 private:
  const std::int64_t* step_;
  std::int64_t of_a_step_, before_;
};

/// A pack as it is stored in memory. With kAnyType it has room for fp32.
template <int kWidth, schedule::DType kType = kAnyType>
struct PackBits {
  static constexpr bool kHalves = kType != kAnyType && kType != schedule::DType::kFp32;
  std::uint32_t words[kHalves ? kWidth / 2 : kWidth];
};

/// One operand that holds numbers.
class Elements {
 public:
  Elements() = default;
  Elements(const DeviceCall& call, std::size_t operand)
      : Elements(call.operands[operand].data, call.operands[operand].type, call.adds(operand)) {}
  __host__ __device__ Elements(void* data, schedule::DType type, bool adds) : data_(data), type_(type), adds_(adds) {}

  __device__ float operator()(std::int64_t i) const {
    if (type_ == schedule::DType::kFp32) return static_cast<const float*>(data_)[i];
    return widened(type_, static_cast<const std::uint16_t*>(data_)[i]);
  }
  __device__ void set(std::int64_t i, float value) const {
    if (type_ == schedule::DType::kFp32) {
      static_cast<float*>(data_)[i] = value;
    } else {
      static_cast<std::uint16_t*>(data_)[i] = rounded(type_, value);
    }
  }
  __device__ void add(std::int64_t i, float value) const { set(i, (*this)(i) + value); }
  /// Adds or overwrites, depending on the operand's access.
  __device__ void put(std::int64_t i, float value) const { set(i, adds_ ? (*this)(i) + value : value); }

  template <int kWidth, schedule::DType kType>
  __device__ Pack<kWidth> operator()(Place<kWidth, kType> place) const {
    if constexpr (kWidth == 1) {
      return {{(*this)(place.first)}};
    } else {
      return of_bits(bits(place));
    }
  }
  /// These two read a pack in two parts, so that other work can be done while it is loaded.
  template <int kWidth, schedule::DType kType>
  __device__ PackBits<kWidth, kType> bits(Place<kWidth, kType> place) const;
  template <int kWidth, schedule::DType kType>
  __device__ Pack<kWidth> of_bits(const PackBits<kWidth, kType>& bits) const;
  template <int kWidth, schedule::DType kType>
  __device__ void set(Place<kWidth, kType> place, const Pack<kWidth>& pack) const;
  template <int kWidth, schedule::DType kType>
  __device__ void add(Place<kWidth, kType> place, const Pack<kWidth>& pack) const {
    set(place, plus((*this)(place), pack));
  }
  template <int kWidth, schedule::DType kType>
  __device__ void put(Place<kWidth, kType> place, const Pack<kWidth>& pack) const {
    if (adds_) {
      add(place, pack);
    } else {
      set(place, pack);
    }
  }
  /// Returns what would be read after `value` was stored.
  __device__ float as_stored(float value) const {
    return type_ == schedule::DType::kFp32 ? value : widened(type_, rounded(type_, value));
  }

  /// Returns the elements from element `begin` on.
  __device__ Elements from(std::int64_t begin) const {
    const std::int64_t size = type_ == schedule::DType::kFp32 ? sizeof(float) : sizeof(std::uint16_t);
    return {static_cast<char*>(data_) + begin * size, type_, adds_};
  }
  __device__ bool adds() const { return adds_; }
  __host__ __device__ schedule::DType type() const { return type_; }
  __host__ __device__ std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }

 private:
  void* data_ = nullptr;
  schedule::DType type_ = schedule::DType::kFp32;
  bool adds_ = false;
};

/// The bits of a pack of 16-bit elements.
template <int kWidth>
struct alignas(2 * kWidth) PackedBits {
  std::uint32_t two[kWidth / 2];
};

template <int kWidth, schedule::DType kType>
__device__ PackBits<kWidth, kType> Elements::bits(Place<kWidth, kType> place) const {
  assert(kType == kAnyType || kType == type_);
  const schedule::DType type = kType == kAnyType ? type_ : kType;
  PackBits<kWidth, kType> bits;
  if (type == schedule::DType::kFp32) {
    if constexpr (!PackBits<kWidth, kType>::kHalves) {
      const auto* from = reinterpret_cast<const uint4*>(static_cast<const float*>(data_) + place.first);
#pragma unroll
      for (int k = 0; k < kWidth; k += 4) {
        const uint4 four = from[k / 4];
        bits.words[k] = four.x, bits.words[k + 1] = four.y, bits.words[k + 2] = four.z, bits.words[k + 3] = four.w;
      }
    }
  } else {
    const auto* from = static_cast<const std::uint16_t*>(data_) + place.first;
    const auto packed = *reinterpret_cast<const PackedBits<kWidth>*>(from);
#pragma unroll
    for (int k = 0; k < kWidth / 2; ++k) bits.words[k] = packed.two[k];
  }
  return bits;
}

template <int kWidth, schedule::DType kType>
__device__ Pack<kWidth> Elements::of_bits(const PackBits<kWidth, kType>& bits) const {
  const schedule::DType type = kType == kAnyType ? type_ : kType;
  Pack<kWidth> pack;
  if (type == schedule::DType::kFp32) {
    if constexpr (!PackBits<kWidth, kType>::kHalves) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) pack.at[k] = __uint_as_float(bits.words[k]);
    }
  } else {
#pragma unroll
    for (int k = 0; k < kWidth; k += 2) {
      pack.at[k] = widened(type, static_cast<std::uint16_t>(bits.words[k / 2]));
      pack.at[k + 1] = widened(type, static_cast<std::uint16_t>(bits.words[k / 2] >> 16U));
    }
  }
  return pack;
}

template <int kWidth, schedule::DType kType>
__device__ void Elements::set(Place<kWidth, kType> place, const Pack<kWidth>& pack) const {
  assert(kType == kAnyType || kType == type_);
  const schedule::DType type = kType == kAnyType ? type_ : kType;
  if constexpr (kWidth == 1) {
    set(place.first, pack.at[0]);
  } else if (type == schedule::DType::kFp32) {
    auto* to = reinterpret_cast<float4*>(static_cast<float*>(data_) + place.first);
#pragma unroll
    for (int k = 0; k < kWidth; k += 4) {
      to[k / 4] = make_float4(pack.at[k], pack.at[k + 1], pack.at[k + 2], pack.at[k + 3]);
    }
  } else {
    PackedBits<kWidth> bits;
#pragma unroll
    for (int k = 0; k < kWidth; k += 2) {
      bits.two[k / 2] = type == schedule::DType::kBf16 ? cuda::pack<true>(pack.at[k], pack.at[k + 1])
                                                       : cuda::pack<false>(pack.at[k], pack.at[k + 1]);
    }
    *reinterpret_cast<PackedBits<kWidth>*>(static_cast<std::uint16_t*>(data_) + place.first) = bits;
  }
}

// Kernels on packs of elements. Body is a lambda of a Place<width> that is written once for every width. If all
// addresses and row lengths allow it, a pack has as many elements as make 16 bytes of the widest operand: 4 if that is
// fp32, otherwise 8. If not, it has 4 elements of 16 bits or a single element. With 256 threads of 16 bytes each and
// eight blocks on a multiprocessor, 32 KiB are in flight, twice what the latency of an H100's memory requires.

/// Returns whether packs of this width may be read from and written to the operand at every multiple of the width.
inline bool fits(const Elements& operand, int width) {
  constexpr std::int64_t kWidestAccessBytes = 16;
  const std::int64_t bytes = width * schedule::size_bytes(operand.type());
  return operand.address() % static_cast<std::uintptr_t>(bytes < kWidestAccessBytes ? bytes : kWidestAccessBytes) == 0;
}

/// How a kernel walks through its operands.
struct Walk {
  int width;             ///< of packs: 8, 4 or 1
  schedule::DType type;  ///< of all operands, or kAnyType
};

/// Returns the widest walk through rows of `row_elems` elements. Masks (kUint8) may be among the operands.
inline Walk walk_of(std::initializer_list<Elements> operands, std::int64_t row_elems) {
  schedule::DType type = kAnyType;
  bool mixed = false;
  for (const Elements& operand : operands) {
    if (operand.type() == schedule::DType::kUint8) continue;
    mixed = mixed || (type != kAnyType && type != operand.type());
    type = operand.type();
  }
  for (int width = mixed || type == schedule::DType::kFp32 ? 4 : 8; width >= 4; width /= 2) {
    bool all_fit = row_elems % width == 0;
    for (const Elements& operand : operands) all_fit = all_fit && fits(operand, width);
    const bool is_16_byte = width == 8 || type == schedule::DType::kFp32;
    if (all_fit) return {width, mixed || !is_16_byte ? kAnyType : type};
  }
  return {1, kAnyType};
}

/// Calls f(Place<width, type>), with both as constants.
template <class F>
void with_place(const Walk& walk, F f) {
  if (walk.width == 8 && walk.type == schedule::DType::kBf16) return f(Place<8, schedule::DType::kBf16>{});
  if (walk.width == 8) return f(Place<8, schedule::DType::kFp16>{});
  if (walk.width == 4 && walk.type == schedule::DType::kFp32) return f(Place<4, schedule::DType::kFp32>{});
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

/// Runs body(place) for packs that together are the elements 0 <= i < count of the operands.
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

/// Runs body(row, place in the row) for packs within rows of `width` elements. The rows of other operands may begin at
/// any multiple of `width`.
template <class Body>
void launch_row_packs(Queue queue, std::int64_t rows, std::int64_t width, std::initializer_list<Elements> operands,
                      Body body) {
  launch_packs_of(queue, walk_of(operands, width), rows * width, InRows<Body>{width, body});
}

/// Calls each(place) for packs that together are the `count` elements of `operand`, which may begin anywhere. At least
/// 16 threads, `threads` in all, share them, and this one is number `thread`. A pack has 16 bytes; the elements before
/// and after the packs are single. With kLastFirst the packs are visited from the last to the first, so that a second
/// pass over a row begins with what caches still hold.
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
  if (operand.type() == schedule::DType::kFp32) return by(Place<4, schedule::DType::kFp32>{});
  if (operand.type() == schedule::DType::kBf16) return by(Place<8, schedule::DType::kBf16>{});
  by(Place<8, schedule::DType::kFp16>{});
}

}  // namespace krigtune::cuda
