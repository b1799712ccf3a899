#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/block.h"
#include "workload/workload.h"

namespace krigtune::workload {

/// A link between GPUs or nodes.
struct Link {
  std::string id;
  Hop hop = Hop::kNetwork;
  double latency_s = 0.0;    ///< of a collective's launch
  double bytes_per_s = 0.0;  ///< line rate, a direction and GPU
  double reached = 1.0;      ///< of it, by collectives

  NetworkLevel level() const { return {id, hop, latency_s, bytes_per_s * reached}; }
};

/// The GPUs and links that a session may name, and measurements for `"gpu": "local"`.
struct Hardware {
  std::vector<DeviceSpec> devices;
  std::vector<Link> links;
  std::vector<MeasuredMachine> local = {};  ///< of CPU ranks, each for a number of ranks and a precision

  /// Case-insensitive. They throw UserError that begins with `where` and ends with the nearest id.
  const DeviceSpec& device(const std::string& id, const std::string& where) const;
  const Link& link(const std::string& id, const std::string& where) const;
  /// Null where nothing was measured for so many CPU ranks in this precision.
  const MeasuredMachine* measured(std::int64_t ranks, Precision precision) const;
  std::vector<std::string> device_ids() const;
  std::vector<std::string> link_ids() const;
};

std::vector<DeviceSpec> known_devices();
std::vector<Link> known_links();

/// The built-in tables with what "hardware" adds and changes: the name of a JSON file, relative to `base_dir`, or its
/// contents.
Hardware read_hardware(const nlohmann::ordered_json* json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir);

/// "hardware" as a JSON Schema.
nlohmann::ordered_json hardware_schema();

/// An entry of "gpus" or "links", without its id.
nlohmann::ordered_json hardware_json(const DeviceSpec& device);
nlohmann::ordered_json hardware_json(const Link& link);

/// What the built-in tables do not say, of what the cluster uses, or with gpu "local" may use; null if they say all.
nlohmann::ordered_json own_hardware(const ClusterSpec& cluster);

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

}  // namespace krigtune::workload
