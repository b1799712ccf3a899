#include "core/hash.h"

#include <fmt/format.h>

namespace krigtune {

void Fnv1a64::add(const void* data, std::size_t bytes) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  const auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) state_ = (state_ ^ byte[i]) * kPrime;
}

std::string Fnv1a64::hex() const { return fmt::format("{:016x}", state_); }

}  // namespace krigtune
