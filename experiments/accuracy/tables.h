#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::accuracy {

/// One measured step of a published table, in the form of a question to the model.
struct MeasuredStep {
  std::string table;
  std::string space;  ///< rows that one tuning session would have to rank
  std::string label;
  workload::Workload workload;
  workload::ClusterSpec cluster;
  space::Configuration configuration;
  std::int64_t stages = 1;
  double seconds = 0.0;
};

/// By (hidden size, layers, GPUs, batch), with rows with and without pipeline stages in separate spaces.
std::vector<MeasuredStep> vtrain_single_node(const std::filesystem::path& data);
/// By model, with the same separation.
std::vector<MeasuredStep> vtrain_multi_node(const std::filesystem::path& data);
/// By GPU; rows in fp8 are left out.
std::vector<MeasuredStep> llmfoundry(const std::filesystem::path& data);
/// By (model, GPUs); only rows that ran. Of configurations that occur twice, the faster row counts.
std::vector<MeasuredStep> ultrascale(const std::filesystem::path& data);
/// Llama on one node of B200s; mixtures of experts and context parallelism are left out.
std::vector<MeasuredStep> simumax(const std::filesystem::path& data);
/// Table 5 of Korthikanti et al. 2022.
std::vector<MeasuredStep> korthikanti(const std::filesystem::path& data);

/// Returns all of them, table by table.
std::vector<MeasuredStep> all_tables(const std::filesystem::path& data);

}  // namespace krigtune::accuracy
