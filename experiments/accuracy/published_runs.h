#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::accuracy {

/// One row of published_runs.csv, in the form of a question to the models.
struct PublishedRun {
  std::string id, source, part, model, gpu;
  std::string group;  ///< "dense, bf16", "experts, fp8", "context parallel", ...
  workload::Workload workload;
  workload::ClusterSpec cluster;
  space::Configuration configuration;
  double seconds = 0.0;                    ///< of a step; 0: it failed, or only its peak was published
  std::optional<std::int64_t> peak_bytes;  ///< as published, allocated if the source says which
  bool ran = true;                         ///< false: out of memory
  std::vector<std::string> assumed;        ///< what the source leaves open
  std::string not_asked;                   ///< why the models are not asked; empty if they are
};

/// Returns all rows of the table, in its order. Throws std::runtime_error for a row that is not understood.
std::vector<PublishedRun> published_runs(const std::filesystem::path& data);

/// FLOPs of a step as Megatron-Bridge counts them: 6 for each active parameter but the input embedding, and half of the
/// attention's, because of the causal mask.
double bridge_flops(const workload::ModelSpec& model, std::int64_t sequences);

}  // namespace krigtune::accuracy
