#pragma once
// Instructions that only PTX has, each in a function of its own (PTX ISA 9.0, chapter 9.7). The emulation has these
// functions in a file of the same name (tests/engine/cuda_emulation/include), which says what they compute. Two 16-bit
// elements share a register, the one with the lower index in the lower half.
#include <cuda_runtime.h>

#include <cstdint>

namespace krigtune::cuda {

/// Returns the block's dynamic shared memory, 16-byte aligned.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ uint4 all_of_it[];
  return reinterpret_cast<T*>(all_of_it);
}

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// Loads four 8 x 8 matrices of 16-bit elements. Lane l passes the address of row l % 8 of matrix l / 8 (16 bytes,
/// aligned to 16). Register m of a lane receives elements 2 (lane % 4) and the next of row lane / 4 of matrix m.
__device__ inline void load_matrices(std::uint32_t (&into)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(shared_address(row))
               : "memory");
}
/// Does the same with each matrix transposed.
__device__ inline void load_matrices_transposed(std::uint32_t (&into)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(shared_address(row))
               : "memory");
}

/// Computes sums (16 x 8, fp32) += a (16 x 16) b (16 x 8) with one warp. Let g = lane / 4 and c = 2 (lane % 4). Then a
/// holds (g, c..), (g + 8, c..), (g, c + 8..), (g + 8, c + 8..); b holds (c.., g), (c + 8.., g), two rows each; sums
/// hold (g, c), (g, c + 1), (g + 8, c), (g + 8, c + 1). With kBf16 the elements are bf16, otherwise fp16.
template <bool kBf16>
__device__ inline void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  if constexpr (kBf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Returns two numbers rounded to 16 bits, `low` in the lower half.
template <bool kBf16>
__device__ inline std::uint32_t pack(float low, float high) {
  std::uint32_t packed;
  if constexpr (kBf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  }
  return packed;
}

/// Returns 2^x, to 2 ulp.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Copies 16 bytes from global to shared memory in the background; zeros if not `wanted`. Both addresses are 16-byte
/// aligned.
__device__ inline void copy_async(void* shared, const void* global, bool wanted = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(wanted ? 16 : 0)
               : "memory");
}
/// Makes one group of the copies that this thread has begun since the last call.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until all but the last `kLeft` groups of this thread have arrived. Other threads see them after a barrier.
template <int kLeft>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// Lets other warps run for about this long, at most a millisecond.
__device__ inline void pause_ns(std::uint32_t length_ns) { asm volatile("nanosleep.u32 %0;" ::"r"(length_ns)); }

/// Returns the time in nanoseconds of a clock that all streams share.
__device__ inline std::uint64_t global_time_ns() {
  std::uint64_t now_ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now_ns));
  return now_ns;
}

}  // namespace krigtune::cuda
