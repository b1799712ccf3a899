#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "krigtune/workload/workload.h"

namespace krigtune {

/// An id ("eth-25"), {"latency_us", "bytes_per_s"} or {"intra": id, "inter": id}. Throws UserError with the JSON
/// pointer.
EmulatedNetwork read_network(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                             std::int64_t ranks_per_node);
nlohmann::ordered_json to_json(const EmulatedNetwork& network);

}  // namespace krigtune
