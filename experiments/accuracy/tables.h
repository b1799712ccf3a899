#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::accuracy {

/// One measured step of a published table, as the model is asked for it.
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

/// By (hidden size, layers, GPUs, batch), rows with and without pipeline stages apart.
std::vector<MeasuredStep> vtrain_single_node(const std::filesystem::path& data);
/// Likewise by model.
std::vector<MeasuredStep> vtrain_multi_node(const std::filesystem::path& data);
/// By GPU; rows in fp8 left out.
std::vector<MeasuredStep> llmfoundry(const std::filesystem::path& data);
/// By (model, GPUs); rows that ran, configurations that stand there twice with the faster one.
std::vector<MeasuredStep> ultrascale(const std::filesystem::path& data);
/// Llama on one node of B200; mixtures of experts and context parallelism left out.
std::vector<MeasuredStep> simumax(const std::filesystem::path& data);
/// Table 5 of Korthikanti et al. 2022.
std::vector<MeasuredStep> korthikanti(const std::filesystem::path& data);

/// All of them, table by table.
std::vector<MeasuredStep> all_tables(const std::filesystem::path& data);

}  // namespace krigtune::accuracy
