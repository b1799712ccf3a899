#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "hardware.h"

namespace krigtune {

constexpr double kMicroseconds = 1e6;
/// The microseconds whose millionth is exactly `seconds`: 30, not 30.000000000000004.
double microseconds(double seconds);

/// An id ("eth-25"), {"latency_us", "bytes_per_s"} or {"intra": id, "inter": id}. Throws UserError with the JSON
/// pointer.
EmulatedNetwork read_network(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                             std::int64_t ranks_per_node, const Hardware& hardware);
/// It has no id, but numbers.
bool is_stated(const EmulatedNetwork& network);
nlohmann::ordered_json to_json(const EmulatedNetwork& network);

}  // namespace krigtune
