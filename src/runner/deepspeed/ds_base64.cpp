// Base64 with the URL and file name safe alphabet (RFC 4648, section 5), padded, as Python's base64.urlsafe_b64decode
// reads it, by which DeepSpeed reads a configuration that is no path (deepspeed/runtime/config.py).
#include <cstdint>

#include "krigtune/core/json.h"
#include "krigtune/runner/deepspeed/ds_config.h"

namespace krigtune {
namespace {

std::string base64url(const std::string& text) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr std::size_t kBytes = 3, kDigits = 4;
  std::string result;
  for (std::size_t begin = 0; begin < text.size(); begin += kBytes) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {
      const auto byte = begin + i < text.size() ? static_cast<unsigned char>(text[begin + i]) : 0U;
      bits = bits << 8 | byte;
    }
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
      const bool is_there = digit == 0 || begin + digit - 1 < text.size();
      result += is_there ? kAlphabet[bits >> 6 * (kDigits - 1 - digit) & 63U] : '=';
    }
  }
  return result;
}

}  // namespace

std::string ds_config_base64(const Json& config) {
  return base64url(config.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace krigtune
