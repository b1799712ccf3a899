#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace krigtune {

enum class MetricKind : std::uint8_t { kThroughput, kTokensPerSecond, kLatency, kFlops, kGoodput };

/// A quantity whose meaning is known: an objective may name it without a direction, and none can be zero or less.
struct Metric {
  MetricKind kind{};
  std::string_view name;       ///< as users call it: "throughput"
  std::string_view field;      ///< its key in Measured::metrics of krigtune's own runners
  bool maximize = true;        ///< larger is better
  bool is_speed = true;        ///< of the training step alone; goodput weighs it with what a sample is worth
  std::string_view unit;       ///< for people; "": seconds, written as a duration
  double units_a_value = 1.0;  ///< a value of 1 is so many units
};
std::span<const Metric> known_metrics();
/// nullptr for a quantity of the user's own.
const Metric* find_metric(std::string_view name);
/// Whether it says how fast training is, in one unit or another; a known metric by its name or its field.
bool tells_speed(std::string_view name_or_field);

}  // namespace krigtune
