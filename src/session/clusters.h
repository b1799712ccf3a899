#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/codec.h"
#include "session/whole_run.h"
#include "workload/workload.h"

namespace krigtune::session {

// Machines that could train a job, and what they cost: the file of `krigtune plan SESSION --clusters FILE`, whose keys
// a session may have too.
//
//   {
//     "clusters": [
//       {"gpu": "h100-80gb", "gpus_per_node": 8, "network": "ib-ndr-400", "nodes": [1, 2, 4, 8],
//       "price_per_gpu_hour": 2.5},
//       {"gpu": "l40s-48gb", "gpus_per_node": [4, 8], "price_per_gpu_hour": 0.9}
//     ],
//     "currency": "EUR",
//     "tokens": 3e11
//   }
//
// An entry is a session's "cluster" whose nodes and gpus_per_node may be lists. All prices are the user's.

/// One kind of machine in several sizes.
struct ClusterEntry {
  std::string name;                          ///< "h100-80gb", or what the user calls it
  std::vector<workload::ClusterSpec> sizes;  ///< ascending numbers of GPUs; at least one
  std::optional<double> price_per_gpu_hour;
  std::optional<double> power_w = {};  ///< of a GPU with its share of the machine, instead of RunSpec::power_w
};

/// The keys of the file. In a session all of them may be missing.
struct ClustersFile {
  std::vector<ClusterEntry> entries;
  std::string currency;  ///< follows prices; "": none
  Amount amount;
};

/// Reads the keys that a session has of them, and refuses all keys of `root` that nobody has looked up.
ClustersFile read_clusters_of_session(JsonObject& root, const std::filesystem::path& base_dir);
/// Returns the same of a session that is not read otherwise; other keys are not looked at.
ClustersFile clusters_of_session(const nlohmann::ordered_json& json, const std::string& source,
                                 const std::filesystem::path& base_dir);
/// Returns those keys that are stated.
nlohmann::ordered_json to_json(const ClustersFile& file);
/// Returns the JSON Schema of the file; its properties are those of a session.
nlohmann::ordered_json clusters_schema();

/// Reads a file. Throws UserError with file, JSON pointer and fix.
ClustersFile load_clusters(const std::filesystem::path& file);
/// Reads JSON; `source` names it in errors, and relative paths are relative to `base_dir`.
ClustersFile read_clusters(const nlohmann::ordered_json& json, const std::string& source,
                           const std::filesystem::path& base_dir);

}  // namespace krigtune::session
