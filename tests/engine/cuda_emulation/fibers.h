#pragma once
// Runs CUDA's threads on a CPU. The threads of a block are fibers of one thread of this machine, and run one after
// another up to the next barrier. Blocks run one after another, and so do kernels. Behaviour that is undefined on a GPU
// is reported: a barrier that not all threads of the block reach, and a shuffle in which not all lanes of the warp take
// part. Which thread goes first changes from barrier to barrier, so that a missing barrier shows as a wrong result. The
// emulation does not see the order of memory accesses, races between blocks, or bank conflicts.
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

/// Thrown if a kernel does something that is undefined in CUDA. The message says which thread of which block, and
/// where.
class KernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A line of a kernel, in place of std::source_location, which Clang 14 lacks.
struct Site {
  unsigned line = 0;
  std::string_view file{};

  static constexpr Site current(unsigned at_line = __builtin_LINE(), const char* in_file = __builtin_FILE()) {
    return {at_line, in_file};
  }
  bool operator==(const Site&) const = default;
};

/// A thread's place in its grid.
struct ThreadPlace {
  uint3 thread, block;
  dim3 block_size, grid_size;
};
const ThreadPlace& this_thread();
/// Returns the thread's index within its block.
unsigned this_thread_index();
/// Returns the thread's index within its warp.
unsigned this_lane();

/// Runs `kernel` once for each thread of each block, with `shared_bytes` of dynamic shared memory, which contains NaN
/// at first. Throws KernelError, and what the kernel throws. Kernels of several threads of this machine wait for each
/// other.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

/// Returns the block's dynamic shared memory, 1024-byte aligned as in a kernel that has no static shared memory.
std::byte* shared_memory();

/// Waits until `ready` returns true; it is called again whenever other threads have run. `what`: names what the thread
/// waits for in a report.
void wait_until(const std::function<bool()>& ready, const char* what, Site site);
/// Waits until no other thread can run.
void give_way();

void wait_for_block(Site site);
/// Waits until all lanes of the warp have called this. Then the `bytes` bytes of lane l are at the result +
/// l * kLaneBytes, until this lane calls it again.
const std::byte* exchange_in_warp(const void* mine, std::size_t bytes, Site site);
inline constexpr std::size_t kLaneBytes = 64;

/// The values of all lanes of a warp.
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

/// Asynchronous copies of 16 bytes (of zeros if `global` is null) by this thread, in groups. A group arrives when it is
/// waited for.
void begin_copy(void* shared, const void* global);
void commit_copies();
void wait_for_copies(std::size_t groups_left);

/// Advances the clock of this thread's device by a microsecond, and returns it.
std::uint64_t next_ns();
/// Returns the clock without changing it.
std::uint64_t now_ns();
/// Advances the clock.
void pass_ns(std::uint64_t length_ns);

}  // namespace krigtune::emulation
