#pragma once
// Instructions that only PTX of sm_90a has, each in a function of its own as in ptx.h: products of a warp group
// (wgmma), copies of boxes by the tensor memory accelerator (TMA), barriers in shared memory on which these copies
// report (mbarrier), and registers that warp groups hand over (PTX ISA 9.0, "Asynchronous warpgroup level matrix
// instructions", "cp.async.bulk.tensor", "mbarrier", "setmaxnreg"). The emulation has these functions in a file of the
// same name.
#include <cuda.h>

#include "engine/cuda/kernels/ptx.h"

namespace krigtune::cuda {

/// Whether the GPU for which this is compiled has them: only sm_90a does. Kernels that use them are empty elsewhere.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kHasHopper = true;
#else
inline constexpr bool kHasHopper = false;
#endif

/// A barrier in shared memory. Its phases are counted from 0. A phase ends once all arrivals that it expects and all
/// bytes that were announced have come; then the next one begins.
using PhaseBarrier = std::uint64_t;

/// Initialises a barrier. One thread does this; the same thread then calls publish_barriers, and a barrier of the block
/// follows.
__device__ inline void init_barrier(PhaseBarrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// Makes the barriers that this thread has initialised visible to copies, too.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void arrive(PhaseBarrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// Announces `bytes` bytes of copies that will report here, and arrives.
__device__ inline void arrive_and_expect(PhaseBarrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
/// Waits until the phase of this parity has ended. It must be the current phase or the one before it.
__device__ inline void wait_for_phase(PhaseBarrier* barrier, unsigned parity) {
  std::uint32_t ended = 0;
  while (ended == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(ended)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}

/// Begins to copy the box at (column, row, plane) of a three-dimensional tensor into shared memory, with zeros outside
/// of the tensor. Its bytes, zeros included, are reported to the barrier.
__device__ inline void load_box(void* shared, const CUtensorMap& map, PhaseBarrier* barrier, int column, int row,
                                int plane) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(shared_address(shared)),
      "l"(&map), "r"(shared_address(barrier)), "r"(column), "r"(row), "r"(plane)
      : "memory");
}

/// Begins to copy `bytes` bytes, a multiple of 16 at 16-byte aligned addresses. They are reported to the barrier.
__device__ inline void load_bytes(void* shared, const void* global, unsigned bytes, PhaseBarrier* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

/// Waits for the other threads of the block's warp groups that name barrier `id` (at least 1), kThreads in all.
template <int kThreads>
__device__ inline void wait_for_threads(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}

/// Reduces the registers of each thread to kCount. All threads of a warp group must call it.
template <int kCount>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
/// Increases the registers of each thread to kCount, once others have released them. All threads of a warp group must
/// call it.
template <int kCount>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Products of a warp group run in the background. All of its 128 threads make the same calls:
//
//   fence_products()       makes earlier writes to registers visible to products; needed before the first product, and
//                          again whenever the registers of one have been accessed
//   multiply_...           begins a product
//   commit_products()      makes one group of the products begun since the last call
//   wait_for_products<n>   waits until all but the last n groups are done
//
// Until then the registers of a product must not be accessed, and what it reads in shared memory must not change. Sums
// are 64 x 8 kN: warp w of the group has rows 16 w to 16 w + 15 of them, in 16 x 8 parts like those of multiply_add.

/// Prevents the compiler from moving accesses to these numbers across this point.
template <int kN>
__device__ inline void pin(float (&sums)[kN][4]) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    asm volatile("" : "+f"(sums[n][0]), "+f"(sums[n][1]), "+f"(sums[n][2]), "+f"(sums[n][3])::"memory");
  }
}
template <int kN>
__device__ inline void pin(std::uint32_t (&left)[kN][4]) {
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    asm volatile("" : "+r"(left[n][0]), "+r"(left[n][1]), "+r"(left[n][2]), "+r"(left[n][3])::"memory");
  }
}

__device__ inline void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
/// Does the same once this number, which is smaller than 1e38, has been computed. Without this dependency the compiler
/// waits first, and the work that should run beside the product runs after it.
template <int kLeft>
__device__ inline void wait_for_products_after(float number) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.gt.f32 p, %1, 0f7F000000;\n"
      "@p nanosleep.u32 0;\n"
      "wgmma.wait_group.sync.aligned %0;\n"
      "}" ::"n"(kLeft),
      "f"(number)
      : "memory");
}

// The operands of wgmma: 32 or 64 sums of a thread, s[part][element].
#define KRIGTUNE_SUMS_32(s)                                                                                    \
  "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3]), "+f"(s[1][0]), "+f"(s[1][1]), "+f"(s[1][2]),     \
      "+f"(s[1][3]), "+f"(s[2][0]), "+f"(s[2][1]), "+f"(s[2][2]), "+f"(s[2][3]), "+f"(s[3][0]), "+f"(s[3][1]), \
      "+f"(s[3][2]), "+f"(s[3][3]), "+f"(s[4][0]), "+f"(s[4][1]), "+f"(s[4][2]), "+f"(s[4][3]), "+f"(s[5][0]), \
      "+f"(s[5][1]), "+f"(s[5][2]), "+f"(s[5][3]), "+f"(s[6][0]), "+f"(s[6][1]), "+f"(s[6][2]), "+f"(s[6][3]), \
      "+f"(s[7][0]), "+f"(s[7][1]), "+f"(s[7][2]), "+f"(s[7][3])
#define KRIGTUNE_SUMS_64(s)                                                                                           \
  KRIGTUNE_SUMS_32(s), "+f"(s[8][0]), "+f"(s[8][1]), "+f"(s[8][2]), "+f"(s[8][3]), "+f"(s[9][0]), "+f"(s[9][1]),      \
      "+f"(s[9][2]), "+f"(s[9][3]), "+f"(s[10][0]), "+f"(s[10][1]), "+f"(s[10][2]), "+f"(s[10][3]), "+f"(s[11][0]),   \
      "+f"(s[11][1]), "+f"(s[11][2]), "+f"(s[11][3]), "+f"(s[12][0]), "+f"(s[12][1]), "+f"(s[12][2]), "+f"(s[12][3]), \
      "+f"(s[13][0]), "+f"(s[13][1]), "+f"(s[13][2]), "+f"(s[13][3]), "+f"(s[14][0]), "+f"(s[14][1]), "+f"(s[14][2]), \
      "+f"(s[14][3]), "+f"(s[15][0]), "+f"(s[15][1]), "+f"(s[15][2]), "+f"(s[15][3])
#define KRIGTUNE_NAMES_32                                                   \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
#define KRIGTUNE_NAMES_64                                                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "

/// Begins sums = A B^T, or sums += A B^T if `adds`: 16 elements of 64 rows with 16 elements of 8 kN rows. a and b are
/// the descriptors of A and B (shared_rows).
template <bool kBf16, int kN>
__device__ inline void multiply_by_rows(float (&sums)[kN][4], std::uint64_t a, std::uint64_t b, bool adds) {
  static_assert(kN == 8 || kN == 16);
  if constexpr (kN == 16 && kBf16) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " KRIGTUNE_NAMES_64 "%64, %65, p, 1, 1, 0, 0;\n}"
        : KRIGTUNE_SUMS_64(sums)
        : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
  } else if constexpr (kN == 16) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " KRIGTUNE_NAMES_64 "%64, %65, p, 1, 1, 0, 0;\n}"
        : KRIGTUNE_SUMS_64(sums)
        : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
  } else if constexpr (kBf16) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " KRIGTUNE_NAMES_32 "%32, %33, p, 1, 1, 0, 0;\n}"
        : KRIGTUNE_SUMS_32(sums)
        : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
  } else {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " KRIGTUNE_NAMES_32 "%32, %33, p, 1, 1, 0, 0;\n}"
        : KRIGTUNE_SUMS_32(sums)
        : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
  }
}

/// Begins sums += W B: 16 columns of 64 rows in registers, as multiply_add wants its left side, with 16 rows of 8 kN
/// elements in shared memory (shared_columns).
template <bool kBf16, int kN>
__device__ inline void multiply_weights_by_rows(float (&sums)[kN][4], const std::uint32_t (&w)[4], std::uint64_t b) {
  static_assert(kN == 8 || kN == 16);
  if constexpr (kN == 16 && kBf16) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " KRIGTUNE_NAMES_64
                 "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : KRIGTUNE_SUMS_64(sums)
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(b));
  } else if constexpr (kN == 16) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " KRIGTUNE_NAMES_64
                 "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : KRIGTUNE_SUMS_64(sums)
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(b));
  } else if constexpr (kBf16) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " KRIGTUNE_NAMES_32
                 "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : KRIGTUNE_SUMS_32(sums)
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(b));
  } else {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " KRIGTUNE_NAMES_32
                 "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : KRIGTUNE_SUMS_32(sums)
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(b));
  }
}

#undef KRIGTUNE_SUMS_32
#undef KRIGTUNE_SUMS_64
#undef KRIGTUNE_NAMES_32
#undef KRIGTUNE_NAMES_64

}  // namespace krigtune::cuda
