#pragma once
// Emulates what Hopper adds to its predecessors: barriers with phases, copies of boxes that report to them, and
// products of warp groups. All of it is asynchronous. A product is computed when its group waits for it. Copies are
// done in any order when no thread can go on without one. In every other block copies are done at once instead, and a
// thread that has arrived at a barrier goes on last, so that a buffer that was released too early shows. The emulation
// reports, with thread and line if one thread is at fault, a phase that never ends, more arrivals than a phase expects,
// a barrier that copies cannot see, registers that were not fenced or were changed during a product, warps of a group
// that disagree, and work that is not finished when the block ends.
#include <cstdint>

#include "fibers.h"

namespace krigtune::emulation {

/// A tensor and its boxes, as they were given to cuTensorMapEncodeTiled, in bytes and elements of 16 bits. Rows of
/// boxes have 128 bytes and are swizzled.
struct BoxedPlanes {
  const std::byte* data = nullptr;
  std::uint64_t sizes[3] = {};          ///< columns, rows, planes
  std::uint64_t strides_bytes[2] = {};  ///< from row to row, from plane to plane
  std::uint32_t box[2] = {};            ///< columns, rows
};

/// Begins a block. `eager`: copies are done at once, and a thread that arrives at a barrier goes on last.
void begin_background(unsigned threads, std::size_t shared_bytes, bool eager);
/// Does one copy. Returns false if there is none.
bool do_a_copy();
/// Throws KernelError if a copy or a product is not finished.
void end_background();

/// Returns the address in the block's shared memory, whose first byte has the address kSharedBase, as on Hopper.
std::uint32_t address_in_shared(const void* shared);
inline constexpr std::uint32_t kSharedBase = 1024;

void init_phases(void* barrier, unsigned arrivals, Site site);
void publish_phases();
/// Also announces `bytes` bytes of copies.
void arrive_at(void* barrier, std::int64_t bytes, Site site);
void wait_for_phase_of(void* barrier, unsigned parity, Site site);
void begin_box(void* shared, const BoxedPlanes& planes, void* barrier, int column, int row, int plane, Site site);
/// Begins a copy of `bytes` bytes, a multiple of 16, between addresses aligned to 16.
void begin_bytes(void* shared, const void* global, std::uint32_t bytes, void* barrier, Site site);

void wait_for_named(unsigned id, unsigned threads, Site site);
void give_or_take_registers(unsigned count, bool gives, Site site);

/// One thread's part of a product of its warp group: 64 rows, an inner size of 16, and `parts` times 8 columns.
struct GroupProduct {
  float* sums = nullptr;  ///< 4 per part
  unsigned parts = 0;
  const std::uint32_t* left = nullptr;  ///< 4 registers; null: the left side is in shared memory, at `a`
  std::uint64_t a = 0, b = 0;           ///< matrix descriptors of wgmma
  bool down_the_rows = false;           ///< whether the inner dimension of b goes down its rows
  bool adds = true;
  bool bf16 = false;
  Site site{};

  bool operator==(const GroupProduct&) const = default;
};
void fence_registers();
void begin_product(const GroupProduct& product);
void commit_group_products();
void wait_for_group_products(std::size_t groups_left, Site site);

}  // namespace krigtune::emulation
