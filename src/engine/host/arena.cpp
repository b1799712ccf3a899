#include "host/arena.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "host/poison.h"

namespace krigtune {
namespace {

constexpr std::align_val_t kPage{4096};
constexpr std::int64_t kLeastGuardBytes = std::int64_t{1} << 20U;
constexpr std::int64_t kGuardFraction = 8;
// As the last byte of an element: a float near -1e36 or a token above 4e9. No real data end so.
constexpr unsigned char kPattern = 0xFB;

std::byte* allocate(std::int64_t bytes) {
  return static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kPage));
}

}  // namespace

Arena::Arena(std::int64_t planned_bytes, bool observe)
    : planned_bytes_(planned_bytes),
      total_bytes_(planned_bytes + std::max(kLeastGuardBytes, planned_bytes / kGuardFraction)),
      memory_(allocate(total_bytes_)) {
  if (observe) std::memset(memory_.get(), kPattern, static_cast<std::size_t>(total_bytes_));
}

Arena::~Arena() { unpoison(memory_.get(), total_bytes_); }

void Arena::Free::operator()(std::byte* memory) const { ::operator delete(memory, kPage); }

// Looks at poisoned bytes on purpose.
__attribute__((no_sanitize("address"))) std::int64_t Arena::highest_changed_bytes() const {
  const std::byte* bytes = memory_.get();
  for (std::int64_t end = total_bytes_; end > 0; --end) {
    if (bytes[end - 1] != std::byte{kPattern}) return end;
  }
  return 0;
}

}  // namespace krigtune
