#pragma once
// The descriptors from which products of a warp group find their operands in shared memory.
#include "engine/cuda/kernels/hopper_ptx.h"

namespace krigtune::cuda {

/// Returns where a product finds one of its sides in shared memory: rows of 64 elements (128 bytes) as load_box stores
/// them. The memory of the swizzle's pattern, 8 rows, must be aligned to its size. `eight_rows_bytes` is the distance
/// from 8 rows to the next 8. In the descriptor, addresses and distances are in units of 16 bytes (PTX ISA,
/// "Asynchronous warpgroup level matrix shared memory layout").
__device__ inline std::uint64_t shared_side(const void* shared, int distance_bytes, int eight_rows_bytes) {
  constexpr std::uint64_t k128ByteSwizzle = std::uint64_t{1} << 62U;
  const auto units = [](unsigned bytes) { return static_cast<std::uint64_t>((bytes & 0x3FFFFU) >> 4U); };
  return units(shared_address(shared)) | units(static_cast<unsigned>(distance_bytes)) << 16U |
         units(static_cast<unsigned>(eight_rows_bytes)) << 32U | k128ByteSwizzle;
}
/// Returns a side whose inner dimension runs along a row: 16 elements from `shared` on.
__device__ inline std::uint64_t shared_rows(const void* shared, int eight_rows_bytes) {
  return shared_side(shared, 16, eight_rows_bytes);
}
/// Returns a side whose inner dimension runs down the rows: 16 rows from `shared` on. Further parts of 64 elements are
/// part_bytes apart.
__device__ inline std::uint64_t shared_columns(const void* shared, int part_bytes, int eight_rows_bytes) {
  return shared_side(shared, part_bytes, eight_rows_bytes);
}

}  // namespace krigtune::cuda
