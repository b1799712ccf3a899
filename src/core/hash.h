#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace krigtune {

/// FNV-1a, 64 bits (Fowler, Noll, Vo). The bytes may arrive in portions of any size.
class Fnv1a64 {
 public:
  void add(const void* data, std::size_t bytes);
  std::uint64_t value() const { return state_; }
  /// Returns 16 lower-case hex digits.
  std::string hex() const;

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace krigtune
