// Tests how kernels compute the places of elements beyond 2^31 and 2^32. The memory itself does not exist, because no
// test on a CPU can touch so much; cuda_large_test.cpp runs such kernels on a GPU.
#include <gtest/gtest.h>

#include <map>

#include "cuda_cases.h"
#include "engine/cuda/kernels/column_sums.h"
#include "engine/cuda/kernels/flash_attention_tiles.h"

namespace krigtune::cuda {
namespace {

using schedule::DType;

constexpr std::int64_t kBillions = 3 * (std::int64_t{1} << 32) + 5;  // elements

// Returns a view of memory that does not exist.
Elements elements_at(std::uintptr_t address, DType type) { return {reinterpret_cast<void*>(address), type, false}; }

TEST(CudaIndices, ARangeBeginsBeyondTheReachOfInt) {
  EXPECT_EQ(elements_at(64, DType::kBf16).from(kBillions).address(), 64 + 2 * static_cast<std::uintptr_t>(kBillions));
  EXPECT_EQ(elements_at(64, DType::kFp32).from(kBillions).address(), 64 + 4 * static_cast<std::uintptr_t>(kBillions));
}

// Returns the places of one thread, with their widths, in a range that begins three elements after an aligned address.
template <bool kLastFirst>
std::map<std::int64_t, int> places_of(std::int64_t thread, std::int64_t threads) {
  std::map<std::int64_t, int> widths;
  for_packs<kLastFirst>(elements_at(64 + 3 * 2, DType::kBf16), kBillions, thread, threads,
                        [&](auto at) { widths[at.first] = at.width; });
  return widths;
}

TEST(CudaIndices, PacksCoverTheWholeRange) {
  constexpr std::int64_t kHead = 5;  // elements before the next multiple of 16 bytes
  constexpr std::int64_t kPacks = (kBillions - kHead) / 8;
  constexpr std::int64_t kSingles = kBillions - 8 * kPacks;
  // Each thread gets one pack, and the first few also get a single element.
  for (const std::int64_t thread : {std::int64_t{0}, kSingles - 1, kSingles, kPacks / 2, kPacks - 1}) {
    std::map<std::int64_t, int> expected = {{kHead + 8 * thread, 8}};
    if (thread < kSingles) expected[thread < kHead ? thread : thread + 8 * kPacks] = 1;
    EXPECT_EQ(places_of<false>(thread, kPacks), expected) << thread;
    expected.erase(kHead + 8 * thread);
    expected[kHead + 8 * (kPacks - 1 - thread)] = 8;
    EXPECT_EQ(places_of<true>(thread, kPacks), expected) << thread;
  }
  // The packs of a thread are as far apart as there are threads.
  constexpr std::int64_t kThreads = kPacks / 1000;
  const std::map<std::int64_t, int> many = places_of<false>(7, kThreads);
  EXPECT_EQ(many.begin()->first, kHead + 8 * 7);
  EXPECT_EQ(many.rbegin()->first, kHead + 8 * (7 + (kPacks - 8) / kThreads * kThreads));
}

TEST(CudaIndices, RowsOfPacks) {
  constexpr std::int64_t kWidth = 50304;
  std::int64_t row_seen = 0;
  std::int64_t place_seen = 0;
  const auto body = [&](std::int64_t row, auto at) {
    row_seen = row;
    place_seen = at.first;
  };
  const InRows<decltype(body)> rows{kWidth, body};
  for (const std::int64_t row : {std::int64_t{42689}, std::int64_t{85378}, std::int64_t{1} << 33}) {
    rows(Place<8>{row * kWidth + 808});
    EXPECT_EQ(row_seen, row);
    EXPECT_EQ(place_seen, 808);
  }
}

TEST(CudaIndices, GridsStayWithinTheirLimits) {
  EXPECT_EQ(blocks_for(1000), 1000U);
  EXPECT_EQ(blocks_for(kBillions), 1U << 20U);
  for (const std::int64_t rows : {std::int64_t{1} << 21, std::int64_t{1} << 33}) {
    for (const std::int64_t columns : {64, 4096, 1 << 20}) {
      const std::int64_t slab_rows = slab_rows_of(rows, columns, 8);
      const std::int64_t slabs = (rows + slab_rows - 1) / slab_rows;
      EXPECT_LE(slabs, 65535);  // the limit of a grid's second dimension
      EXPECT_GE(slabs * slab_rows, rows);
      EXPECT_EQ(column_sums_scratch(rows, columns), slabs * columns);
    }
  }
}

// Llama 3 70B with 64 sequences of 32768 tokens has 2.1e10 elements of queries, keys and values.
TEST(CudaIndices, HeadsOfLongSequences) {
  plan::Shape shape;
  shape.batch = 64;
  shape.seq = 32768;
  shape.heads = 64;
  shape.kv_heads = 8;
  shape.inner = 8192;
  const AttentionSizes z(shape);
  const HeadPlaces places(z);
  auto* base = reinterpret_cast<uint4*>(std::uintptr_t{4096});
  const auto elems_to = [&](const uint4* at) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at) - 4096) / 2;
  };
  const std::int64_t b = 63, i = 32767, head = 63, kv_head = 7, d = 128;
  const std::int64_t token = (b * z.seq + i) * z.qkv_width;
  ASSERT_GT(token, std::int64_t{1} << 34);
  const HeadRows key = places.key(base, 63, 7);
  EXPECT_EQ(elems_to(places.query(base, 63, 63).row(32767)), token + head * d);
  EXPECT_EQ(elems_to(key.row(32767)), token + 8192 + kv_head * d);
  EXPECT_EQ(elems_to(places.value(key).row(32767)), token + 8192 + (8 + kv_head) * d);
  EXPECT_EQ(elems_to(places.output(base, 63, 63).row(32767)), (b * z.seq + i) * z.out_width + head * d);
  const QkvRows plain(elements_at(4096, DType::kBf16), z);
  EXPECT_EQ(plain.value(b, kv_head, i).address(),
            4096 + 2 * static_cast<std::uintptr_t>(token + 8192 + (8 + kv_head) * d));
}

// Covers every kind of operation, on shapes whose operands have more than 2^32 elements.
TEST(CudaIndices, ScratchMemoryOfHugeOperations) {
  for (const Case& given : kernel_cases(DType::kBf16, plan::Access::kWrite)) {
    plan::Operation operation;
    operation.kind = given.kind;
    operation.shape = given.shape;
    operation.shape.batch = 1 << 10;
    operation.shape.seq = 1 << 15;
    operation.shape.rows = std::int64_t{1} << 25;
    operation.shape.inner = 1 << 14;
    operation.shape.outer = 1 << 17;
    operation.operands.resize(given.operands.size());
    const std::int64_t floats = scratch_floats(operation);
    EXPECT_GE(floats, 0) << given.name;
    EXPECT_LT(floats, std::int64_t{1} << 36) << given.name;
  }
}

}  // namespace
}  // namespace krigtune::cuda
