#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "krigtune/plan/step_plan.h"

namespace krigtune {

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
  RankMemory(const StepPlan& plan, bool observe)
      : device(plan.arena_bytes, observe), host(plan.host_arena_bytes, observe) {}

  const Arena& arena(Place place) const { return place == Place::kDevice ? device : host; }
  std::byte* at(const Buffer& buffer) const { return arena(buffer.place).at(buffer.offset_bytes); }

  Arena device;
  Arena host;
};

}  // namespace krigtune
