#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace krigtune::fleet {

// The file of `krigtune plan SESSION --clusters FILE`: machines that could train the session's job, and what they cost.
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
};

/// How much is trained: tokens or samples of one pass, and the passes.
struct Amount {
  std::optional<double> tokens;
  std::optional<double> samples;
  double epochs = 1.0;

  bool is_stated() const { return tokens || samples; }
  /// Requires that it is stated.
  double all_tokens(std::int64_t seq_len) const {
    return epochs * (tokens ? *tokens : *samples * static_cast<double>(seq_len));
  }
};

struct ClustersFile {
  std::vector<ClusterEntry> entries;
  std::string currency;  ///< follows prices; "": none
  Amount amount;
};

/// Reads a file. Throws UserError with file, JSON pointer and fix.
ClustersFile load_clusters(const std::filesystem::path& file);
/// Reads JSON; `source` names it in errors, and relative paths are relative to `base_dir`.
ClustersFile read_clusters(const nlohmann::ordered_json& json, const std::string& source,
                           const std::filesystem::path& base_dir);

}  // namespace krigtune::fleet
