// Tests the emulation of Hopper's features: what it computes on a correct kernel, and what it reports on kernels with
// one mistake each.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/cuda/kernels/device.h"
#include "engine/cuda/kernels/hopper_operands.h"
#include "engine/cuda/runtime/tensor_map.h"
#include "engine/host/number_types.h"

namespace krigtune::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRows = 64;         // rows of the left side
constexpr int kColumns = 128;     // columns of the result, which are rows of the right side
constexpr int kEightRows = 1024;  // bytes of eight rows
constexpr unsigned kWarpGroup = 128;

enum class Mistake {
  kNone,
  kNoFence,
  kPassesAtOnce,   // waits for the phase before the first one, which counts as ended
  kWaitsForever,   // waits for a phase at which nobody arrives
  kStride,         // uses a stride of 512 bytes instead of 1024 from 8 rows to the next 8
  kWithinSwizzle,  // takes the next 16 elements 16 bytes away instead of 32
  kReadsEarly,     // reads the sums before it waits for the product
  kTouchesSums,    // changes the sums while the product runs
  kNoCommit,
  kExpectsTooLittle,  // announces fewer bytes than are copied
  kArrivesTwice,
  kUnpublished,     // does not make the barrier visible to copies
  kOneWarpDiffers,  // multiplies other numbers in one warp
  kEndsEarly,       // ends before its copies have arrived
};

struct Operands {
  CUtensorMap rows;  ///< 64 rows of the left side, then 128 of the right one, of 64 elements each
  float* sums;       ///< 64 x 128
};

/// Copies A and B and computes sums = A B^T, with one warp group.
template <Mistake kMistake>
__global__ void multiply_boxes(const __grid_constant__ Operands operands) {
  auto* a = dynamic_shared<std::byte>();
  std::byte* b = a + kRows * 128;
  auto* full = reinterpret_cast<PhaseBarrier*>(b + kColumns * 128);
  if (threadIdx.x == 0) {
    init_barrier(full, 1);
    if (kMistake != Mistake::kUnpublished) publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_and_expect(full, kMistake == Mistake::kExpectsTooLittle ? 128 : (kRows + kColumns) * 128);
    if (kMistake == Mistake::kArrivesTwice) {
      arrive(full);
      arrive(full);
    }
    for (int row = 0; row < kRows + kColumns; row += 64) load_box(a + row * 128, operands.rows, full, 0, row, 0);
  }
  if (kMistake == Mistake::kEndsEarly) return;
  wait_for_phase(full, kMistake == Mistake::kPassesAtOnce ? 1 : 0);
  if (kMistake == Mistake::kWaitsForever) wait_for_phase(full, 1);
  float sums[16][4] = {};
  if (kMistake != Mistake::kNoFence) fence_products();
  for (int slice = 0; slice < 4; ++slice) {
    const int within = slice * (kMistake == Mistake::kWithinSwizzle ? 16 : 32);
    const int stride = kMistake == Mistake::kStride ? kEightRows / 2 : kEightRows;
    const int off = kMistake == Mistake::kOneWarpDiffers && threadIdx.x / 32 == 2 ? 32 : 0;
    multiply_by_rows<true>(sums, shared_rows(a + within + off, kEightRows), shared_rows(b + within, stride), slice > 0);
  }
  if (kMistake != Mistake::kNoCommit) commit_products();
  if (kMistake == Mistake::kTouchesSums) sums[3][1] += 1.0F;
  if (kMistake != Mistake::kReadsEarly) wait_for_products<0>();
  for (unsigned e = 0; e < 64; ++e) {
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + e % 4 / 2 * 8;
    operands.sums[row * kColumns + e / 4 * 8 + threadIdx.x % 4 * 2 + e % 2] = sums[e / 4][e % 4];
  }
  if (kMistake == Mistake::kReadsEarly) wait_for_products<0>();
}

/// Returns element `c` of row `row` of either side: a small integer, so that all products are exact.
float element(int row, int c) { return static_cast<float>((row * 7 + c * 3) % 11 - 5); }

std::vector<std::uint16_t> rows_of(int rows, int columns) {
  std::vector<std::uint16_t> bits;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) bits.push_back(engine::to_bf16(element(r, c)));
  }
  return bits;
}

template <Mistake kMistake>
std::vector<float> product() {
  const std::vector<std::uint16_t> rows = rows_of(kRows + kColumns, 64);
  std::vector<float> sums(kRows * kColumns, -1.0F);
  const Operands operands{box_map({rows.data(), 64, kRows + kColumns, 1}, 64), sums.data()};
  constexpr std::size_t kBytes = (kRows + kColumns) * 128 + sizeof(PhaseBarrier);
  // There are two blocks because in every other block copies are done at once.
  launch(nullptr, 2, kWarpGroup, kBytes, multiply_boxes<kMistake>, operands);
  cudaDeviceSynchronize();
  return sums;
}

std::vector<float> expected_product() {
  std::vector<float> sums;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      float sum = 0.0F;
      for (int c = 0; c < 64; ++c) sum += element(i, c) * element(kRows + j, c);
      sums.push_back(sum);
    }
  }
  return sums;
}

template <Mistake kMistake>
std::string complaint() {
  try {
    product<kMistake>();
  } catch (const emulation::KernelError& error) {
    return error.what();
  }
  return "";
}

TEST(HopperEmulation, CopiesAndMultiplies) { EXPECT_EQ(product<Mistake::kNone>(), expected_product()); }

TEST(HopperEmulation, ShowsWhatIsReadTooEarlyOrFromTheWrongPlace) {
  EXPECT_NE(product<Mistake::kReadsEarly>(), expected_product());
  EXPECT_EQ(product<Mistake::kReadsEarly>()[0], 0.0F) << "the sums are as they were before";
  EXPECT_NE(product<Mistake::kStride>(), expected_product());
  EXPECT_NE(product<Mistake::kWithinSwizzle>(), expected_product());
}

TEST(HopperEmulation, ReportsProductsThatAreNotOrdered) {
  EXPECT_THAT(complaint<Mistake::kNoFence>(),
              AllOf(HasSubstr("nobody has fenced its registers: thread "), HasSubstr("cuda_hopper_test.cpp:")));
  EXPECT_THAT(complaint<Mistake::kTouchesSums>(),
              HasSubstr("registers were changed while a product had them: thread "));
  EXPECT_THAT(complaint<Mistake::kNoCommit>(), HasSubstr("a product is under way when its block ends"));
  EXPECT_THAT(complaint<Mistake::kOneWarpDiffers>(), HasSubstr("the warps of a group disagree on the product at "));
}

TEST(HopperEmulation, ReportsPhasesThatDoNotEndAsTheyShould) {
  EXPECT_THAT(complaint<Mistake::kWaitsForever>(), HasSubstr("waits for its phase at "));
  EXPECT_THAT(complaint<Mistake::kPassesAtOnce>(), HasSubstr("a copy is under way when its block ends"));
  EXPECT_THAT(complaint<Mistake::kExpectsTooLittle>(), HasSubstr("waits for its phase at "));
  EXPECT_THAT(complaint<Mistake::kArrivesTwice>(), HasSubstr("more arrivals than the phase expects"));
  EXPECT_THAT(complaint<Mistake::kUnpublished>(), HasSubstr("a barrier that copies cannot see"));
  EXPECT_THAT(complaint<Mistake::kEndsEarly>(), HasSubstr("a copy is under way when its block ends"));
}

/// Computes sums = W B with W (64 x 16) in registers and B (16 x 8 kN) in shared memory.
template <int kN>
__global__ void multiply_weights(const __grid_constant__ Operands operands) {
  auto* b = dynamic_shared<std::byte>();
  constexpr int kParts = kN / 8;
  constexpr int kPartBytes = 16 * 128;
  auto* full = reinterpret_cast<PhaseBarrier*>(b + kParts * kPartBytes);
  if (threadIdx.x == 0) {
    init_barrier(full, 1);
    publish_barriers();
    arrive_and_expect(full, kParts * kPartBytes);
    for (int part = 0; part < kParts; ++part) load_box(b + part * kPartBytes, operands.rows, full, 64 * part, 0, 1);
  }
  __syncthreads();
  wait_for_phase(full, 0);
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
  const int k = static_cast<int>(threadIdx.x) % 4 * 2;
  const auto two = [&](int lower, int upper) {
    return pack<true>(element(row + lower, k + upper), element(row + lower, k + upper + 1));
  };
  const std::uint32_t w[4] = {two(0, 0), two(8, 0), two(0, 8), two(8, 8)};
  float sums[kN][4] = {};
  fence_products();
  multiply_weights_by_rows<true>(sums, w, shared_columns(b, kPartBytes, kEightRows));
  commit_products();
  wait_for_products<0>();
  for (unsigned e = 0; e < 4 * kN; ++e) {
    const unsigned column = e / 4 * 8 + threadIdx.x % 4 * 2 + e % 2;
    operands.sums[static_cast<unsigned>(row) * 8 * kN + e % 4 / 2 * 8 * 8 * kN + column] = sums[e / 4][e % 4];
  }
}

// The box of 16 rows is from the second plane, which has only 13.
template <int kN>
void expect_weighted_rows() {
  constexpr int kThere = 13;
  constexpr int kWidth = 8 * kN;
  const std::vector<std::uint16_t> rows = rows_of(2 * kThere, kWidth);
  std::vector<float> sums(kRows * kWidth, -1.0F);
  const Operands operands{box_map({rows.data(), kWidth, kThere, 2}, 16), sums.data()};
  launch(nullptr, 1, kWarpGroup, kWidth * 32 + sizeof(PhaseBarrier), multiply_weights<kN>, operands);
  cudaDeviceSynchronize();
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kWidth; ++j) {
      float expected = 0.0F;
      for (int k = 0; k < kThere; ++k) expected += element(i, k) * element(kThere + k, j);
      ASSERT_EQ(sums[static_cast<std::size_t>(i * kWidth + j)], expected) << i << ", " << j;
    }
  }
}

TEST(HopperEmulation, MultipliesWeightsInRegistersWithRows) {
  expect_weighted_rows<8>();
  expect_weighted_rows<16>();
}

// The first warp group gives registers away, and the other two wait for them.
__global__ void hand_over_registers(int* order) {
  if (threadIdx.x < kWarpGroup) {
    give_registers<24>();
    if (threadIdx.x == 0) order[0] = 1;
  } else {
    take_registers<240>();
    if (threadIdx.x == kWarpGroup) order[1] = 1;
  }
}
__global__ void take_too_many_registers(int* /*order*/) { take_registers<240>(); }

TEST(HopperEmulation, RegistersAreTakenOnceOthersHaveGivenThem) {
  std::vector<int> order(2);
  launch(nullptr, 1, 3 * kWarpGroup, 0, hand_over_registers, order.data());
  cudaDeviceSynchronize();
  EXPECT_EQ(order, (std::vector<int>{1, 1}));
  launch(nullptr, 1, 3 * kWarpGroup, 0, take_too_many_registers, order.data());
  try {
    cudaDeviceSynchronize();
    FAIL() << "nobody gave them";
  } catch (const emulation::KernelError& error) {
    EXPECT_THAT(error.what(), HasSubstr("waits for its registers at "));
  }
}

TEST(HopperEmulation, RefusesTensorsThatTheDriverRefuses) {
  const std::vector<std::uint16_t> rows(64 * 20);
  EXPECT_THROW(box_map({rows.data() + 1, 64, 20, 1}, 16), std::exception);
  EXPECT_THROW(box_map({rows.data(), 60, 20, 1}, 16), std::exception);
  EXPECT_THROW(box_map({rows.data(), 64, 20, 1}, 512), std::exception);
  EXPECT_NO_THROW(box_map({rows.data(), 64, 20, 1, false}, 16));
}

}  // namespace
}  // namespace krigtune::cuda
