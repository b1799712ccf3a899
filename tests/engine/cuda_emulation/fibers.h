#pragma once
// CUDA's threads on a CPU: the threads of a block are fibers of one thread of this machine, run one after another up to
// the next barrier. Blocks run one after another, and so do kernels. What a GPU does not define is reported: a barrier
// that not all threads of the block reach, a shuffle that not all lanes of the warp take part in. Which thread goes
// first changes from barrier to barrier, so that a missing barrier shows as a wrong result. Not seen: the order of
// memory accesses, races between blocks, bank conflicts.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1) : x(width), y(height), z(depth) {}
};

namespace krigtune::emulation {

inline constexpr unsigned kWarpLanes = 32;

/// A kernel does what CUDA does not define. Says which thread, of which block, at which line.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A line of a kernel: std::source_location, which Clang 14 has not.
struct Site {
  unsigned line = 0;
  std::string_view file{};

  static constexpr Site current(unsigned at_line = __builtin_LINE(), const char* in_file = __builtin_FILE()) {
    return {at_line, in_file};
  }
  bool operator==(const Site&) const = default;
};

/// What a thread can ask of itself.
struct ThreadPlace {
  uint3 thread, block;
  dim3 block_size, grid_size;
};
const ThreadPlace& this_thread();
/// Within its block.
unsigned this_thread_index();
/// Within its warp.
unsigned this_lane();

/// Runs `kernel` once for each thread of each block, with so much dynamic shared memory, which holds NaN at first.
/// Throws KernelError, and what the kernel throws. Kernels of several threads of this machine wait for one another.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

/// Of this block; 1024-byte aligned, as where a kernel has no static shared memory.
std::byte* shared_memory();

/// Waits until `ready` says so, which is asked whenever others have gone on. `what`: for whom, as a report says it.
void wait_until(const std::function<bool()>& ready, const char* what, Site site);
/// Goes on once nobody else can.
void give_way();

void wait_for_block(Site site);
/// Waits until all lanes of the warp are here; then lane l's `bytes` bytes lie at the result + l * kLaneBytes, until
/// this lane comes here again.
const std::byte* exchange_in_warp(const void* mine, std::size_t bytes, Site site);
inline constexpr std::size_t kLaneBytes = 64;

/// Those of all lanes.
template <class T>
struct LaneValues {
  const std::byte* first;

  const T& operator[](unsigned lane) const { return *reinterpret_cast<const T*>(first + lane * kLaneBytes); }
};
template <class T>
LaneValues<T> in_warp(const T& mine, Site site = Site::current()) {
  static_assert(sizeof(T) <= kLaneBytes && alignof(T) <= 16);
  return {exchange_in_warp(&mine, sizeof(T), site)};
}

/// This thread's copies of 16 bytes in the background (null: of zeros), in groups; each arrives when it is waited for.
void begin_copy(void* shared, const void* global);
void commit_copies();
void wait_for_copies(std::size_t groups_left);

/// The clock of this thread's device: a microsecond passes from look to look.
std::uint64_t next_ns();
/// It, without a look, and lets time pass.
std::uint64_t now_ns();
void pass_ns(std::uint64_t length_ns);

}  // namespace krigtune::emulation
