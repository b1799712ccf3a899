#pragma once
#include <string>

#include "hardware.h"
#include "krigtune/core/block.h"

namespace krigtune {

constexpr double kMicroseconds = 1e6;
/// The microseconds whose millionth is exactly `seconds`: 30, not 30.000000000000004.
double microseconds(double seconds);
/// An id of a device or a link, in lower case whichever the user writes.
Codec<std::string> hardware_id();
/// Seconds that are written as microseconds.
Codec<double> in_microseconds(const NumberLimits& limits_us);

/// An id ("eth-25"), {"latency_us", "bytes_per_s"} or {"intra": id, "inter": id}. Throws UserError with the JSON
/// pointer.
EmulatedNetwork read_network(const Json& json, const std::string& source, const std::string& pointer,
                             std::int64_t ranks_per_node, const Hardware& hardware);
/// "emulate_network" as a JSON Schema.
Json network_schema();
/// It has no id, but numbers.
bool is_stated(const EmulatedNetwork& network);
Json to_json(const EmulatedNetwork& network);

}  // namespace krigtune
