#include "fibers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "fiber_stack.h"
#include "hopper.h"

namespace krigtune::emulation {
namespace {

enum class State { kRunnable, kAtBarrier, kAtWarp, kWaiting, kDone };

class BlockRun;

struct Copy {
  void* to;
  const void* from;  ///< null: zeros
};

/// Thrown in a fiber to end it in the middle of its kernel.
struct Unwind {};

/// One thread of a block. It is reused for the threads of later blocks.
class Fiber {
 public:
  Fiber()
      : fiber_(std::allocator_arg, FiberStack::Allocator{&stack_},
               [this](boost::context::fiber&& caller) { return live(std::move(caller)); }) {}
  ~Fiber() {
    ends_ = true;
    resume();
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the fiber until it waits or is done.
  void resume() {
    stack_.before_entering();
    fiber_ = std::move(fiber_).resume();
    stack_.after_returning();
  }
  void yield() {
    stack_.before_leaving();
    caller_ = std::move(caller_).resume();
    stack_.after_entering();
    if (ends_) throw Unwind();
  }

  const std::function<void()>* kernel = nullptr;
  ThreadPlace place;
  unsigned index = 0;
  State state = State::kDone;
  Site site;
  std::function<bool()> ready;  ///< whether it can go on
  const char* waits_for = nullptr;
  std::exception_ptr failure;
  std::vector<Copy> copies;              ///< begun, but not in a group yet
  std::deque<std::vector<Copy>> groups;  ///< not yet waited for

 private:
  boost::context::fiber live(boost::context::fiber&& caller) {
    caller_ = std::move(caller);
    stack_.after_entering();
    try {
      while (!ends_) {
        run_kernel();
        state = State::kDone;
        yield();
      }
    } catch (const Unwind&) {
    }
    stack_.before_ending();
    return std::move(caller_);
  }

  void run_kernel() {
    try {
      (*kernel)();
    } catch (const Unwind&) {
      throw;
    } catch (...) {
      failure = std::current_exception();
    }
  }

  FiberStack stack_;
  bool ends_ = false;
  boost::context::fiber caller_;
  boost::context::fiber fiber_;
};

std::string name_of(const Fiber& fiber) {
  const ThreadPlace& at = fiber.place;
  return fmt::format("thread ({},{},{}) of block ({},{},{})", at.thread.x, at.thread.y, at.thread.z, at.block.x,
                     at.block.y, at.block.z);
}

std::string place_of(const Site& site) { return fmt::format("{}:{}", site.file, site.line); }

std::string doing(const Fiber& fiber) {
  if (fiber.state == State::kDone) return name_of(fiber) + " has ended";
  if (fiber.state == State::kWaiting) {
    return fmt::format("{} waits for its {} at {}", name_of(fiber), fiber.waits_for, place_of(fiber.site));
  }
  const char* what = fiber.state == State::kAtBarrier ? "waits for the block" : "waits for its warp";
  return fmt::format("{} {} at {}", name_of(fiber), what, place_of(fiber.site));
}

/// The fibers of this thread of the machine. They are dropped after a block that failed, because some of them are in
/// the middle of a kernel.
thread_local std::deque<std::unique_ptr<Fiber>> pool;
thread_local BlockRun* current_block = nullptr;
thread_local Fiber* current_fiber = nullptr;

struct Warp {
  unsigned lanes = 0;
  unsigned arrived = 0;
  unsigned round = 0;  ///< values of two rounds are kept, because a lane may be one ahead of others
  alignas(16) std::array<std::array<std::byte, kWarpLanes * kLaneBytes>, 2> values{};
};

class BlockRun {
 public:
  BlockRun(dim3 block, std::size_t shared_bytes)
      : block_(block),
        threads_(block.x * block.y * block.z),
        warps_((threads_ + kWarpLanes - 1) / kWarpLanes),
        shared_bytes_((shared_bytes + kWordBytes - 1) / kWordBytes * kWordBytes),
        shared_(allocate(shared_bytes_)) {
    while (pool.size() < threads_) pool.push_back(std::make_unique<Fiber>());
    for (unsigned t = 0; t < threads_; ++t) ++warps_[t / kWarpLanes].lanes;
  }

  void run(uint3 block, dim3 grid, const std::function<void()>& kernel, unsigned order) {
    if (shared_bytes_ > 0) std::memset(shared_.get(), 0xFF, shared_bytes_);
    begin_background(threads_, shared_bytes_, order % 2 != 0);
    for (unsigned t = 0; t < threads_; ++t) {
      Fiber& fiber = *pool[t];
      fiber.kernel = &kernel;
      fiber.place = {{t % block_.x, t / block_.x % block_.y, t / block_.x / block_.y}, block, block_, grid};
      fiber.index = t;
      fiber.state = State::kRunnable;
      fiber.copies.clear();
      fiber.groups.clear();
    }
    at_barrier_ = 0;
    for (Warp& warp : warps_) warp.arrived = 0;
    runnable_.clear();
    for (unsigned t = 0; t < threads_; ++t) runnable_.push_back(t);
    waiting_.clear();
    giving_way_.clear();
    for (; somebody_goes_on(); ++order) {
      std::vector<unsigned> turn = std::exchange(runnable_, {});
      if (order % 2 != 0) std::reverse(turn.begin(), turn.end());
      for (const unsigned t : turn) go_on(*pool[t]);
    }
    for (unsigned t = 0; t < threads_; ++t) {
      if (pool[t]->state != State::kDone) report(*pool[t]);
    }
    end_background();
  }

  void wait_until(const std::function<bool()>& ready, const char* what, Site site) {
    if (ready()) return;
    Fiber& fiber = *current_fiber;
    fiber.state = State::kWaiting;
    fiber.site = site;
    fiber.ready = ready;
    fiber.waits_for = what;
    waiting_.push_back(fiber.index);
    fiber.yield();
  }

  void give_way() {
    giving_way_.push_back(current_fiber->index);
    current_fiber->yield();
  }

  void wait_for_block(Site site) {
    current_fiber->state = State::kAtBarrier;
    current_fiber->site = site;
    if (++at_barrier_ == threads_) {
      for (unsigned t = 0; t < threads_; ++t) {
        if (pool[t]->site != site) report(*pool[t]);
        release(*pool[t]);
      }
      at_barrier_ = 0;
    }
    current_fiber->yield();
  }

  const std::byte* exchange(const void* mine, std::size_t bytes, Site site) {
    Fiber& fiber = *current_fiber;
    const unsigned first = fiber.index / kWarpLanes * kWarpLanes;
    Warp& warp = warps_[fiber.index / kWarpLanes];
    std::byte* values = warp.values[warp.round % 2].data();
    std::memcpy(values + (fiber.index - first) * kLaneBytes, mine, bytes);
    fiber.state = State::kAtWarp;
    fiber.site = site;
    if (++warp.arrived == warp.lanes) {
      for (unsigned t = first; t < first + warp.lanes; ++t) {
        if (pool[t]->site != site) report(*pool[t]);
        release(*pool[t]);
      }
      warp.arrived = 0;
      ++warp.round;
    }
    fiber.yield();
    return values;
  }

  std::byte* shared() { return shared_.get(); }

 private:
  static constexpr std::size_t kSharedAlignment = 1024;
  static constexpr std::size_t kWordBytes = 16;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  static std::byte* allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kSharedAlignment, bytes) != 0) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }

  // Returns whether some thread can go on. Asynchronous copies are done one by one, when no thread can go on without
  // them.
  bool somebody_goes_on() {
    do {
      std::erase_if(waiting_, [this](unsigned t) {
        if (!pool[t]->ready()) return false;
        release(*pool[t]);
        return true;
      });
      if (runnable_.empty()) {
        for (const unsigned t : std::exchange(giving_way_, {})) release(*pool[t]);
      }
    } while (runnable_.empty() && !waiting_.empty() && do_a_copy());
    return !runnable_.empty();
  }

  void go_on(Fiber& fiber) {
    current_fiber = &fiber;
    fiber.resume();
    current_fiber = nullptr;
    if (fiber.failure) std::rethrow_exception(std::exchange(fiber.failure, nullptr));
  }

  void release(Fiber& fiber) {
    fiber.state = State::kRunnable;
    runnable_.push_back(fiber.index);
  }

  // Also names a thread that is somewhere else.
  [[noreturn]] void report(const Fiber& stuck) const {
    const bool warp_only = stuck.state == State::kAtWarp;
    const unsigned first = warp_only ? stuck.index / kWarpLanes * kWarpLanes : 0;
    const unsigned end = warp_only ? std::min(first + kWarpLanes, threads_) : threads_;
    std::string other;
    for (unsigned t = first; t < end && other.empty(); ++t) {
      const Fiber& fiber = *pool[t];
      if (fiber.state != stuck.state || fiber.site != stuck.site) other = ", but " + doing(fiber);
    }
    throw KernelError(doing(stuck) + other);
  }

  dim3 block_;
  unsigned threads_;
  std::vector<Warp> warps_;
  std::size_t shared_bytes_;
  std::unique_ptr<std::byte, Free> shared_;
  std::vector<unsigned> runnable_;
  std::vector<unsigned> waiting_;     ///< threads in wait_until
  std::vector<unsigned> giving_way_;  ///< threads in give_way
  unsigned at_barrier_ = 0;
};

std::mutex one_kernel;  // static shared memory exists only once

// AddressSanitizer reports accesses out of bounds. It knows the line, but not which thread of the kernel is there.
void say_which_thread() {
  if (current_fiber != nullptr) std::fprintf(stderr, "in %s\n", name_of(*current_fiber).c_str());
}

}  // namespace

const ThreadPlace& this_thread() { return current_fiber->place; }
unsigned this_thread_index() { return current_fiber->index; }
unsigned this_lane() { return current_fiber->index % kWarpLanes; }
std::byte* shared_memory() { return current_block->shared(); }
void wait_until(const std::function<bool()>& ready, const char* what, Site site) {
  current_block->wait_until(ready, what, site);
}
void give_way() { current_block->give_way(); }
void wait_for_block(Site site) { current_block->wait_for_block(site); }
const std::byte* exchange_in_warp(const void* mine, std::size_t bytes, Site site) {
  return current_block->exchange(mine, bytes, site);
}

void begin_copy(void* shared, const void* global) { current_fiber->copies.push_back({shared, global}); }
void commit_copies() { current_fiber->groups.push_back(std::exchange(current_fiber->copies, {})); }
void wait_for_copies(std::size_t groups_left) {
  constexpr std::size_t kBytes = 16;
  for (auto& groups = current_fiber->groups; groups.size() > groups_left; groups.pop_front()) {
    for (const Copy& copy : groups.front()) {
      if (copy.from == nullptr) {
        std::memset(copy.to, 0, kBytes);
      } else {
        std::memcpy(copy.to, copy.from, kBytes);
      }
    }
  }
}

namespace {

std::uint64_t& device_clock_ns() {
  thread_local std::uint64_t clock_ns = 0;
  return clock_ns;
}

}  // namespace

std::uint64_t next_ns() {
  constexpr std::uint64_t kMicrosecond = 1000;
  return device_clock_ns() += kMicrosecond;
}
std::uint64_t now_ns() { return device_clock_ns(); }
void pass_ns(std::uint64_t length_ns) { device_clock_ns() += length_ns; }

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  const std::scoped_lock lock(one_kernel);
  FiberStack::say_at_death(say_which_thread);
  BlockRun run(block, shared_bytes);
  current_block = &run;
  unsigned order = block.x + grid.x;
  try {
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) run.run({x, y, z}, grid, kernel, order++);
      }
    }
  } catch (...) {
    pool.clear();
    current_block = nullptr;
    throw;
  }
  current_block = nullptr;
}

}  // namespace krigtune::emulation
