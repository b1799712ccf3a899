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
  double latency_s = 0.0;    ///< latency of a collective's launch
  double bytes_per_s = 0.0;  ///< line rate, per direction and GPU
  double reached = 1.0;      ///< fraction that collectives reach

  NetworkLevel level() const { return {id, hop, latency_s, bytes_per_s * reached}; }
};

/// The GPUs and links that a session may name, and the measurements for `"gpu": "local"`.
struct Hardware {
  std::vector<DeviceSpec> devices;
  std::vector<Link> links;
  std::vector<MeasuredMachine> local = {};  ///< of CPU ranks, for each number of ranks and precision

  /// Both ignore case and throw UserError that begins with `where` and ends with the nearest id.
  const DeviceSpec& device(const std::string& id, const std::string& where) const;
  const Link& link(const std::string& id, const std::string& where) const;
  /// Returns nullptr if nothing was measured for this many CPU ranks in this precision.
  const MeasuredMachine* measured(std::int64_t ranks, Precision precision) const;
  std::vector<std::string> device_ids() const;
  std::vector<std::string> link_ids() const;
};

std::vector<DeviceSpec> known_devices();
std::vector<Link> known_links();

/// Returns the built-in tables with the additions and changes of "hardware": its contents, or the name of a JSON file
/// relative to `base_dir`.
Hardware read_hardware(const nlohmann::ordered_json* json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir);

/// Returns the JSON Schema of "hardware".
nlohmann::ordered_json hardware_schema();

/// Writes an entry of "gpus" or "links", without its id.
nlohmann::ordered_json hardware_json(const DeviceSpec& device);
nlohmann::ordered_json hardware_json(const Link& link);

/// Returns the hardware that the cluster uses, or with gpu "local" may use, and that differs from the built-in tables;
/// null if there is none.
nlohmann::ordered_json own_hardware(const ClusterSpec& cluster);

constexpr double kMicroseconds = 1e6;
/// Returns the microseconds whose millionth is exactly `seconds`: 30 rather than 30.000000000000004.
double microseconds(double seconds);
/// Reads the id of a device or a link in any case; the result is in lower case.
Codec<std::string> hardware_id();
/// Reads and writes seconds as microseconds.
Codec<double> in_microseconds(const NumberLimits& limits_us);

/// Reads an id ("eth-25"), {"latency_us", "bytes_per_s"} or {"intra": id, "inter": id}. Throws UserError with the JSON
/// pointer.
EmulatedNetwork read_network(const Json& json, const std::string& source, const std::string& pointer,
                             std::int64_t ranks_per_node, const Hardware& hardware);
/// Returns the JSON Schema of "emulate_network".
Json network_schema();
/// Returns whether the network was given by numbers rather than by an id.
bool is_stated(const EmulatedNetwork& network);
Json to_json(const EmulatedNetwork& network);

}  // namespace krigtune::workload
