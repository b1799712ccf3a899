#pragma once
#include <compare>
#include <cstdint>
#include <string>

namespace krigtune {

/// A number of bytes. It cannot be mixed with a number of elements: those are plain integers whose names end in
/// `_elems`.
struct Bytes {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
};

/// Converts GiB (2^30 bytes) and rounds to the nearest byte.
Bytes from_gib(double gib);
double to_gib(Bytes bytes);

/// Formats bytes for people in binary units: "812 B", "1.50 KiB", "23.4 MiB", "1.25 GiB".
std::string to_string(Bytes bytes);

/// Formats seconds for people: "850 us", "12.3 ms", "1.25 s", "3 min 20 s", "2 h 05 min".
std::string duration_text(double seconds);

}  // namespace krigtune
