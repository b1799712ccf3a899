#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workload/hardware_tables.h"
#include "workload/measured_rates.h"

namespace krigtune::machine {

/// The link whose rate and latency explain measured collectives best.
struct FittedLink {
  workload::Link link;
  double mean_log_error = 0.0;  ///< mean of |log(measured / modelled time)| over the measurements
};

/// The machine's rates in the form of a session's "hardware".
struct MeasuredHardware {
  workload::DeviceSpec device;
  std::optional<FittedLink> intra;                    ///< within a node, if one has several ranks
  std::optional<FittedLink> inter;                    ///< between nodes, if there are several
  std::vector<workload::MeasuredMachine> local = {};  ///< CPU ranks: for `"gpu": "local"`
};

/// Fits plan's models (cost/machine.h) to the rates. It starts from what the cluster names: GPU and links keep their
/// ids, so that a session which names them uses the measurements. Otherwise they get new names: "cpu-rank", "cpu-node"
/// and "cpu-network" for CPU ranks, and "measured-gpu", "measured-node" and "measured-network" for a GPU that is not in
/// the table. Values of a known GPU that were not measured do not change. Links with an emulated network are not
/// fitted. `precision` selects the products that count.
MeasuredHardware fit_hardware(const workload::MeasuredRates& rates, const std::optional<workload::ClusterSpec>& cluster,
                              workload::Precision precision);

/// Returns the file that "hardware" refers to.
nlohmann::ordered_json hardware_file(const MeasuredHardware& hardware);

/// Returns the session's block "cluster" that uses the file, for people.
nlohmann::ordered_json cluster_using(const MeasuredHardware& hardware, const workload::MeasuredRates& rates,
                                     const std::string& file);

/// Returns the id in the table of the link between nodes that this machine probably has, from what the kernel reports
/// about its network cards below `root` (/sys/class/infiniband, /sys/class/net). Empty if no link is as fast as one of
/// them.
std::optional<std::string> network_id_of(const std::filesystem::path& root);

/// Returns the cluster that a user of plan would state for these ranks: their GPU of the table with its usual links
/// and, between nodes, `network`. Empty for CPU ranks, for a GPU that is not in the table, and for several nodes
/// without a known network.
std::optional<workload::ClusterSpec> usual_cluster(const workload::MeasuredRates& rates,
                                                   const std::optional<std::string>& network);

}  // namespace krigtune::machine
