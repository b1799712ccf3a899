#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workload/hardware_tables.h"
#include "workload/measured_rates.h"

namespace krigtune::machine {

/// A link whose rate and latency explain measured collectives best.
struct FittedLink {
  workload::Link link;
  double mean_log_error = 0.0;  ///< mean of |log(measured / modelled time)| over what was measured
};

/// What a session's "hardware" may say of the machine.
struct MeasuredHardware {
  workload::DeviceSpec device;
  std::optional<FittedLink> intra;                    ///< within a node, where one has several ranks
  std::optional<FittedLink> inter;                    ///< between nodes, where there are several
  std::vector<workload::MeasuredMachine> local = {};  ///< CPU ranks: for `"gpu": "local"`
};

/// What explains the rates by the models that plan uses (cost/machine.h). Begins as what the cluster names (its GPU and
/// its links by their ids, so that a session which names them uses what was measured), else under names of its own:
/// "cpu-rank", "cpu-node" and "cpu-network" of CPU ranks, "measured-gpu", "measured-node" and "measured-network" of a
/// GPU that is not in the table. Of a GPU in the table what was not measured stays as stated. Links over which
/// collectives are held for an emulated network are not fitted. `precision`: of the products that count.
MeasuredHardware fit_hardware(const workload::MeasuredRates& rates, const std::optional<workload::ClusterSpec>& cluster,
                              workload::Precision precision);

/// As the file that "hardware" names.
nlohmann::ordered_json hardware_file(const MeasuredHardware& hardware);

/// The session's block "cluster" that uses the file, for people.
nlohmann::ordered_json cluster_using(const MeasuredHardware& hardware, const workload::MeasuredRates& rates,
                                     const std::string& file);

/// Of the links in the table the one between nodes that this machine seems to have, by what the kernel says of its
/// network cards below `root` (/sys/class/infiniband, /sys/class/net); empty where none is as fast as one of them.
std::optional<std::string> network_id_of(const std::filesystem::path& root);

/// The cluster that plan would be told of these ranks: their GPU of the table with its usual links and, between nodes,
/// `network`. Empty for CPU ranks, a GPU that the table has not, or nodes without a known network.
std::optional<workload::ClusterSpec> usual_cluster(const workload::MeasuredRates& rates,
                                                   const std::optional<std::string>& network);

}  // namespace krigtune::machine
