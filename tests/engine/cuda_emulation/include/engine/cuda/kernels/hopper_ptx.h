#pragma once
// Implements the functions of src/engine/cuda/kernels/hopper_ptx.h on a CPU. The emulation's hopper.h explains when
// they take effect.
#include <cuda.h>

#include "engine/cuda/kernels/ptx.h"

namespace krigtune::cuda {

inline constexpr bool kHasHopper = true;

using PhaseBarrier = std::uint64_t;

inline std::uint32_t shared_address(const void* shared) { return emulation::address_in_shared(shared); }

inline void init_barrier(PhaseBarrier* barrier, unsigned arrivals, emulation::Site site = emulation::Site::current()) {
  emulation::init_phases(barrier, arrivals, site);
}
inline void publish_barriers() { emulation::publish_phases(); }
inline void arrive(PhaseBarrier* barrier, emulation::Site site = emulation::Site::current()) {
  emulation::arrive_at(barrier, 0, site);
}
inline void arrive_and_expect(PhaseBarrier* barrier, unsigned bytes,
                              emulation::Site site = emulation::Site::current()) {
  emulation::arrive_at(barrier, bytes, site);
}
inline void wait_for_phase(PhaseBarrier* barrier, unsigned parity, emulation::Site site = emulation::Site::current()) {
  emulation::wait_for_phase_of(barrier, parity, site);
}
inline void load_box(void* shared, const CUtensorMap& map, PhaseBarrier* barrier, int column, int row, int plane,
                     emulation::Site site = emulation::Site::current()) {
  emulation::begin_box(shared, map.planes, barrier, column, row, plane, site);
}

inline void load_bytes(void* shared, const void* global, unsigned bytes, PhaseBarrier* barrier,
                       emulation::Site site = emulation::Site::current()) {
  emulation::begin_bytes(shared, global, bytes, barrier, site);
}

template <int kThreads>
void wait_for_threads(int id, emulation::Site site = emulation::Site::current()) {
  emulation::wait_for_named(static_cast<unsigned>(id), kThreads, site);
}
template <int kCount>
void give_registers(emulation::Site site = emulation::Site::current()) {
  emulation::give_or_take_registers(kCount, true, site);
}
template <int kCount>
void take_registers(emulation::Site site = emulation::Site::current()) {
  emulation::give_or_take_registers(kCount, false, site);
}

template <int kN>
void pin(float (&/*sums*/)[kN][4]) {}
template <int kN>
void pin(std::uint32_t (&/*left*/)[kN][4]) {}

inline void fence_products() { emulation::fence_registers(); }
inline void commit_products() { emulation::commit_group_products(); }
template <int kLeft>
void wait_for_products(emulation::Site site = emulation::Site::current()) {
  emulation::wait_for_group_products(kLeft, site);
}
template <int kLeft>
void wait_for_products_after(float /*number*/, emulation::Site site = emulation::Site::current()) {
  emulation::wait_for_group_products(kLeft, site);
}

template <bool kBf16, int kN>
void multiply_by_rows(float (&sums)[kN][4], std::uint64_t a, std::uint64_t b, bool adds,
                      emulation::Site site = emulation::Site::current()) {
  static_assert(kN == 8 || kN == 16);
  emulation::begin_product({&sums[0][0], kN, nullptr, a, b, false, adds, kBf16, site});
}
template <bool kBf16, int kN>
void multiply_weights_by_rows(float (&sums)[kN][4], const std::uint32_t (&w)[4], std::uint64_t b,
                              emulation::Site site = emulation::Site::current()) {
  static_assert(kN == 8 || kN == 16);
  emulation::begin_product({&sums[0][0], kN, &w[0], 0, b, true, true, kBf16, site});
}

}  // namespace krigtune::cuda
