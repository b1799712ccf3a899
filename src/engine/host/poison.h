#pragma once
#include <cstddef>
#include <cstdint>

// AddressSanitizer's view of the arena. Without it both do nothing.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace krigtune {

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

}  // namespace krigtune
