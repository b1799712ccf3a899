#include "core/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>

namespace krigtune {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

}  // namespace

Bytes from_gib(double gib) { return {std::llround(gib * kGib)}; }

double to_gib(Bytes bytes) { return static_cast<double>(bytes.count) / kGib; }

std::string to_string(Bytes bytes) {
  if (std::llabs(bytes.count) < 1024) return fmt::format("{} B", bytes.count);
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes.count) / 1024.0;
  std::size_t unit = 0;
  while (std::abs(value) >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, std::abs(value) < 10.0 ? 2 : 1, kUnits[unit]);
}

std::string duration_text(double seconds) {
  constexpr double kTwoDecimalsBelow = 9.995;  // three significant digits
  constexpr double kOneDecimalBelow = 99.95;
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1.0) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < kOneDecimalBelow / 1e3 ? 1 : 0);
  if (seconds < 60.0) return fmt::format("{:.{}f} s", seconds, seconds < kTwoDecimalsBelow ? 2 : 1);
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace krigtune
