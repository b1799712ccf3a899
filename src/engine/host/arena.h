#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/step_plan.h"

// AddressSanitizer's view of the arena. Without it both do nothing.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace krigtune::engine {

/// From now on an access to these bytes is an error that AddressSanitizer reports.
inline void poison(const std::byte* begin, std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(begin, static_cast<std::size_t>(bytes));
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

inline void unpoison(const std::byte* begin, std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(begin, static_cast<std::size_t>(bytes));
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

/// The memory of one rank: the planned bytes, page-aligned, and a guard region behind them. With `observe` all of it is
/// filled with a pattern first, so that what was ever written can be seen without asking the plan.
class Arena {
 public:
  /// Throws std::bad_alloc.
  Arena(std::int64_t planned_bytes, bool observe);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* at(std::int64_t offset_bytes) const { return memory_.get() + offset_bytes; }
  std::int64_t planned_bytes() const { return planned_bytes_; }
  std::int64_t total_bytes() const { return total_bytes_; }  ///< with the guard

  /// One more than the offset of the highest byte that differs from the pattern, guard included. Needs observe.
  std::int64_t highest_changed_bytes() const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  std::int64_t planned_bytes_;
  std::int64_t total_bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// What one rank holds: an arena a place.
struct RankMemory {
  /// Throws std::bad_alloc.
  RankMemory(const plan::StepPlan& plan, bool observe)
      : device(plan.arena_bytes, observe), host(plan.host_arena_bytes, observe) {}

  const Arena& arena(schedule::Place place) const { return place == schedule::Place::kDevice ? device : host; }
  std::byte* at(const plan::Buffer& buffer) const { return arena(buffer.place).at(buffer.offset_bytes); }

  Arena device;
  Arena host;
};

/// In the AddressSanitizer build, opens the bytes of a buffer while the step uses it, and nothing else: from its first
/// use to the end of its last one; persistent buffers always. Gaps and the guard stay closed. Otherwise it does
/// nothing.
class BufferLifetimes {
 public:
  /// Both must outlive it.
  BufferLifetimes(const plan::StepPlan& plan, const RankMemory& memory);

  void begin_step();
  void begin_use(const std::vector<plan::BufferId>& buffers);
  void end_use(const std::vector<plan::BufferId>& buffers);

 private:
  const plan::StepPlan& plan_;
  const RankMemory& memory_;
  std::vector<int> uses_;                            ///< by buffer, in one step
  std::unique_ptr<std::atomic<int>[]> still_to_go_;  ///< by buffer
};

}  // namespace krigtune::engine
