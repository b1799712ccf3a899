#pragma once
// What Hopper has and its predecessors have not, for the emulation: barriers with phases, copies of boxes that report
// on them, products of warp groups. All of it happens in the background: a product when its group waits for it; copies
// in any order once no thread can go on without one. In every other block copies are done at once, and a thread that
// has arrived at a barrier goes on last: there a buffer that was released too early shows. Reported are, with thread
// and line: a phase that never ends, more arrivals than a phase expects, a barrier that copies cannot see, registers
// that were not fenced or were changed while a product had them, warps of a group that disagree, what is still under
// way when the block ends.
#include <cstdint>

#include "fibers.h"

namespace krigtune::emulation {

/// A tensor and its boxes, as cuTensorMapEncodeTiled was told; in bytes and elements of 16 bits. Box rows of 128 bytes,
/// swizzled.
struct BoxedPlanes {
  const std::byte* data = nullptr;
  std::uint64_t sizes[3] = {};          ///< columns, rows, planes
  std::uint64_t strides_bytes[2] = {};  ///< from row to row, from plane to plane
  std::uint32_t box[2] = {};            ///< columns, rows
};

/// Of this block, which begins; `eager`: copies are done at once, and who arrives at a barrier goes on last.
void begin_background(unsigned threads, std::size_t shared_bytes, bool eager);
/// Does one copy. False: there was none.
bool do_a_copy();
/// Throws KernelError where something is still under way.
void end_background();

/// Of this block's shared memory, whose first byte has the address kSharedBase, as on Hopper.
std::uint32_t address_in_shared(const void* shared);
inline constexpr std::uint32_t kSharedBase = 1024;

void init_phases(void* barrier, unsigned arrivals, Site site);
void publish_phases();
/// Announces so many bytes, too.
void arrive_at(void* barrier, std::int64_t bytes, Site site);
void wait_for_phase_of(void* barrier, unsigned parity, Site site);
void begin_box(void* shared, const BoxedPlanes& planes, void* barrier, int column, int row, int plane, Site site);
/// A multiple of 16, at aligned addresses.
void begin_bytes(void* shared, const void* global, std::uint32_t bytes, void* barrier, Site site);

void wait_for_named(unsigned id, unsigned threads, Site site);
void give_or_take_registers(unsigned count, bool gives, Site site);

/// One thread's part of a product of its warp group: 64 rows, 16 elements of them, `parts` times 8 columns.
struct GroupProduct {
  float* sums = nullptr;  ///< 4 of each part
  unsigned parts = 0;
  const std::uint32_t* left = nullptr;  ///< 4 registers; null: in shared memory, at `a`
  std::uint64_t a = 0, b = 0;           ///< as wgmma's matrix descriptors
  bool down_the_rows = false;           ///< the inner size of b
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
