// Counts, on the emulation of CUDA, the kernels of an optimizer's update and the tiles that flash attention computes.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "cuda_case_runs.h"

namespace krigtune::cuda {
namespace {

std::int64_t kernels_of(const Case& given) {
  const std::int64_t before = emulation::kernels_executed();
  done_by_device(given);
  return emulation::kernels_executed() - before;
}

Case update_of(int ranges) {
  Maker m(schedule::DType::kBf16, plan::Access::kWrite);
  Case result{"adamw", schedule::OpKind::kAdamW, {}, {}, 1.0, {}};
  for (int i = 0; i < ranges; ++i) {
    for (int k = 0; k < 4; ++k) {
      result.operands.push_back(k == 1 ? m.in(20) : m.single(20, 1.0, 0.1, plan::Access::kReadWrite));
    }
  }
  return result;
}

// One more kernel computes what all elements share.
TEST(CudaLaunches, AnUpdateIsOneKernelForSixtyFourTensors) {
  EXPECT_EQ(kernels_of(update_of(1)), 2);
  EXPECT_EQ(kernels_of(update_of(64)), 2);
  EXPECT_EQ(kernels_of(update_of(65)), 3);
}

/// How flash attention is tiled: a warp has `rows` queries or keys, a tile has `columns` of the other kind, and each
/// pair of them needs `products` matrix products.
struct Cut {
  std::int64_t rows, columns, products;

  /// Returns the number of mma instructions for the pairs of a warp and a tile in which some query attends to some key.
  std::int64_t warp_products(std::int64_t seq, std::int64_t d, bool rows_are_queries) const {
    std::int64_t tiles = 0;
    for (std::int64_t row = 0; row < seq; row += rows) {
      for (std::int64_t column = 0; column < seq; column += columns) {
        tiles += (rows_are_queries ? column < row + rows : row < column + columns) ? 1 : 0;
      }
    }
    constexpr std::int64_t kOfInstruction = std::int64_t{16} * 8 * 16;
    return tiles * products * rows * columns * d / kOfInstruction;
  }
};

std::int64_t warp_products_of(const Case& given) {
  const std::int64_t before = emulation::warp_products_executed();
  done_by_device(given);
  return emulation::warp_products_executed() - before;
}

TEST(CudaLaunches, FlashAttentionComputesNoTileBehindTheDiagonal) {
  for (const std::int64_t d : {64, 128}) {
    const Cut forward{32, 64, 2};
    const Cut keys = d == 64 ? Cut{32, 32, 4} : Cut{16, 64, 4};
    const Cut queries = d == 64 ? Cut{32, 64, 3} : Cut{32, 32, 3};
    for (const std::int64_t seq : {128, 384}) {
      Maker m(schedule::DType::kBf16, plan::Access::kWrite);
      Case given{"flash", schedule::OpKind::kAttentionForward, {}, {}, 1.0, {}};
      given.shape.batch = given.shape.heads = given.shape.kv_heads = 1;
      given.shape.seq = given.shape.rows = seq;
      given.shape.inner = d;
      given.operands = {m.in(seq * 3 * d), m.out(seq * d), m.single(seq, 0, 1, plan::Access::kWrite)};
      EXPECT_EQ(warp_products_of(given), forward.warp_products(seq, d, true)) << d << ", " << seq;
      EXPECT_EQ(warp_products_of(backward_of(done_by_device(given), plan::Access::kWrite)),
                keys.warp_products(seq, d, false) + queries.warp_products(seq, d, true))
          << d << ", " << seq;
    }
  }
}

}  // namespace
}  // namespace krigtune::cuda
