#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace krigtune::schedule {

/// Lets at most `width` operations be under way while computing goes on.
template <class Operation>
class Window {
 public:
  explicit Window(std::size_t width) : width_(width) {}

  /// One more: returns the oldest one that computing must wait for now, if any.
  std::optional<Operation> enter(const Operation& operation) {
    entered_.push_back(operation);
    if (width_ >= entered_.size()) return std::nullopt;
    return entered_[entered_.size() - 1 - width_];
  }

 private:
  std::size_t width_;
  std::vector<Operation> entered_;
};

}  // namespace krigtune::schedule
