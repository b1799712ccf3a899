#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/step_plan.h"

// Tells AddressSanitizer which bytes of the arena are in use. Without AddressSanitizer both functions do nothing.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace krigtune::engine {

/// From now on, AddressSanitizer reports every access to these bytes.
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

/// The memory of one rank: the planned bytes, page-aligned, followed by a guard region. With `observe`, all of it is
/// filled with a pattern first, so that later scans can see what was ever written, independently of the plan.
class Arena {
 public:
  /// Allocates the memory. Throws std::bad_alloc.
  Arena(std::int64_t planned_bytes, bool observe);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* at(std::int64_t offset_bytes) const { return memory_.get() + offset_bytes; }
  std::int64_t planned_bytes() const { return planned_bytes_; }
  std::int64_t total_bytes() const { return total_bytes_; }  ///< including the guard

  /// Returns one more than the offset of the highest byte that differs from the pattern, guard included. Needs
  /// `observe`.
  std::int64_t highest_changed_bytes() const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  std::int64_t planned_bytes_;
  std::int64_t total_bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// The memory of one rank: one arena for each place.
struct RankMemory {
  /// Allocates all arenas. Throws std::bad_alloc.
  RankMemory(const plan::StepPlan& plan, bool observe)
      : device(plan.arena_bytes, observe), host(plan.host_arena_bytes, observe) {}

  const Arena& arena(schedule::Place place) const { return place == schedule::Place::kDevice ? device : host; }
  std::byte* at(const plan::Buffer& buffer) const { return arena(buffer.place).at(buffer.offset_bytes); }

  Arena device;
  Arena host;
};

/// In the AddressSanitizer build, makes the bytes of a buffer accessible only while the step uses it: from its first
/// use to the end of its last one. Persistent buffers are always accessible, gaps and the guard never. In other builds
/// it does nothing.
class BufferLifetimes {
 public:
  /// The plan and the memory must outlive the object.
  BufferLifetimes(const plan::StepPlan& plan, const RankMemory& memory);

  void begin_step();
  void begin_use(const std::vector<plan::BufferId>& buffers);
  void end_use(const std::vector<plan::BufferId>& buffers);

 private:
  const plan::StepPlan& plan_;
  const RankMemory& memory_;
  std::vector<int> uses_;                            ///< by buffer, in one step
  std::unique_ptr<std::atomic<int>[]> still_to_go_;  ///< uses still to come, by buffer
};

}  // namespace krigtune::engine
