#pragma once
// Implements the functions of src/engine/cuda/kernels/ptx.h on a CPU. An asynchronous copy arrives when it is waited
// for, and not before.
#include <cuda_runtime.h>

#include <array>
#include <cmath>
#include <cstring>

#include "engine/host/number_types.h"

namespace krigtune::cuda {

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(emulation::shared_memory());
}

using MatrixRow = std::array<std::uint16_t, 8>;

inline MatrixRow read_matrix_row(const void* row) {
  MatrixRow elements{};
  std::memcpy(elements.data(), row, sizeof(elements));
  return elements;
}
inline std::uint32_t two_of(std::uint16_t low, std::uint16_t high) {
  return static_cast<std::uint32_t>(low) | (static_cast<std::uint32_t>(high) << 16U);
}

inline void load_matrices(std::uint32_t (&into)[4], const void* row,
                          emulation::Site site = emulation::Site::current()) {
  const auto rows = emulation::in_warp(read_matrix_row(row), site);
  const unsigned lane = emulation::this_lane();
  for (unsigned m = 0; m < 4; ++m) {
    const MatrixRow& mine = rows[8 * m + lane / 4];
    into[m] = two_of(mine[lane % 4 * 2], mine[lane % 4 * 2 + 1]);
  }
}
inline void load_matrices_transposed(std::uint32_t (&into)[4], const void* row,
                                     emulation::Site site = emulation::Site::current()) {
  const auto rows = emulation::in_warp(read_matrix_row(row), site);
  const unsigned lane = emulation::this_lane();
  for (unsigned m = 0; m < 4; ++m) {
    const unsigned first = 8 * m + lane % 4 * 2;
    into[m] = two_of(rows[first][lane / 4], rows[first + 1][lane / 4]);
  }
}

template <bool kBf16>
float half_of(std::uint32_t two, unsigned which) {
  const auto bits = static_cast<std::uint16_t>(two >> (16U * which));
  return kBf16 ? engine::from_bf16(bits) : engine::from_fp16(bits);
}

struct MultiplyOperands {
  float a[4][2];
  float b[2][2];
};
template <bool kBf16>
void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                  emulation::Site site = emulation::Site::current()) {
  MultiplyOperands mine{};
  for (unsigned e = 0; e < 2; ++e) {
    for (unsigned i = 0; i < 4; ++i) mine.a[i][e] = half_of<kBf16>(a[i], e);
    mine.b[0][e] = half_of<kBf16>(b0, e);
    mine.b[1][e] = half_of<kBf16>(b1, e);
  }
  const auto all = emulation::in_warp(mine, site);
  const unsigned lane = emulation::this_lane();
  if (lane == 0) emulation::count_warp_product();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4;  // within the first or the second 8 rows
    const unsigned upper = i / 2;   // 1: the second 8 rows
    const unsigned col = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const MultiplyOperands& left = all[row * 4 + k % 8 / 2];
      const MultiplyOperands& right = all[col * 4 + k % 8 / 2];
      sums[i] += left.a[upper + 2 * (k / 8)][k % 2] * right.b[k / 8][k % 2];
    }
  }
}

template <bool kBf16>
std::uint32_t pack(float low, float high) {
  return kBf16 ? two_of(engine::to_bf16(low), engine::to_bf16(high))
               : two_of(engine::to_fp16(low), engine::to_fp16(high));
}

inline float exp2_fast(float x) { return std::exp2(x); }

inline void copy_async(void* shared, const void* global, bool wanted = true) {
  emulation::begin_copy(shared, wanted ? global : nullptr);
}
inline void commit_copies() { emulation::commit_copies(); }
template <int kLeft>
void wait_for_copies() {
  emulation::wait_for_copies(kLeft);
}

inline void pause_ns(std::uint32_t /*length_ns*/) {}
inline std::uint64_t global_time_ns() { return emulation::next_ns(); }

}  // namespace krigtune::cuda
