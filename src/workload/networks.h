#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "krigtune/workload/workload.h"

namespace krigtune {

/// An id ("eth-25") or {"latency_us", "bytes_per_s"}. Throws UserError with the JSON pointer.
EmulatedNetwork read_network(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer);
nlohmann::ordered_json to_json(const EmulatedNetwork& network);

}  // namespace krigtune
