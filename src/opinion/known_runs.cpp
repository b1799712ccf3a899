#include "opinion/known_runs.h"

#include <array>
#include <stdexcept>
#include <utility>

#include "core/json.h"
#include "cost/framework.h"

namespace krigtune::opinion {
namespace {

constexpr const char* kSource = "the published runs";

// Devices of one generation, by the beginnings of their names in workload/devices.cpp.
std::string architecture_of(const std::string& gpu) {
  constexpr std::array<std::pair<const char*, const char*>, 15> kGenerations = {{{"v100", "Volta"},
                                                                                 {"a100", "Ampere"},
                                                                                 {"a800", "Ampere"},
                                                                                 {"h100", "Hopper"},
                                                                                 {"h200", "Hopper"},
                                                                                 {"h800", "Hopper"},
                                                                                 {"h20-", "Hopper"},
                                                                                 {"b200", "Blackwell"},
                                                                                 {"b300", "Blackwell"},
                                                                                 {"gb200", "Blackwell"},
                                                                                 {"gb300", "Blackwell"},
                                                                                 {"mi300", "CDNA 3"},
                                                                                 {"mi325", "CDNA 3"},
                                                                                 {"mi350", "CDNA 4"},
                                                                                 {"mi355", "CDNA 4"}}};
  for (const auto& [begin, generation] : kGenerations) {
    if (gpu.rfind(begin, 0) == 0) return generation;
  }
  return gpu;
}

int product_bits(const workload::Workload& workload) {
  using workload::ProductFormat;
  switch (workload.training.products) {
    case ProductFormat::kNvFp4:
      return 4;
    case ProductFormat::kAsModel:
      return workload.precision == workload::Precision::kFp32 ? 32 : 16;
    default:
      return 8;
  }
}

JobKind kind_named(const std::string& word) {
  for (const auto& [name, kind] : kJobKindWords) {
    if (name == word) return kind;
  }
  throw std::runtime_error("the published runs have no kind '" + word + "'");
}

KnownRun run_of(const Json& json, const std::vector<std::shared_ptr<const Json>>& jobs) {
  KnownRun run;
  run.job = jobs.at(json.at("job").get<std::size_t>());
  run.id = json.at("id").get<std::string>();
  run.source = json.at("source").get<std::string>();
  run.source_part = json.value("part", "");
  run.model = json.at("model").get<std::string>();
  run.batch = json.at("batch").get<std::int64_t>();
  run.nodes = json.value("nodes", std::int64_t{1});
  run.gpus_per_node = json.at("gpus_per_node").get<std::int64_t>();
  run.network = json.value("network", "");
  run.configuration = space::configuration_from_json(json.at("configuration"), kSource, "/configuration");
  run.step_time_s = json.at("step_time_s").get<double>();
  run.assumed = json.value("assumed", std::vector<std::string>{});
  run.subject = {kind_named(run.job->at("kind").get<std::string>()),
                 run.job->at("parameters").get<double>(),
                 run.nodes * run.gpus_per_node,
                 json.at("seq_len").get<std::int64_t>(),
                 run.job->at("precision").get<std::string>(),
                 run.job->at("product_bits").get<int>(),
                 json.at("gpu").get<std::string>(),
                 architecture_of(json.at("gpu").get<std::string>()),
                 run.job->at("framework").get<std::string>()};
  return run;
}

}  // namespace

JobKind kind_of(const workload::Workload& workload) {
  if (workload.training.freezes()) return JobKind::kAdapters;
  if (workload.model.is_hybrid()) return JobKind::kHybrid;
  return workload.model.has_experts() ? JobKind::kExperts : JobKind::kDense;
}

Subject subject_of(const workload::Workload& workload, const workload::ClusterSpec& cluster) {
  return {kind_of(workload),
          static_cast<double>(workload::parameter_count(workload.model)),
          cluster.ranks(),
          workload.model.seq_len,
          workload::precision_word(workload),
          product_bits(workload),
          cluster.gpu,
          architecture_of(cluster.gpu),
          cost::traits_of(workload.framework).name};
}

workload::Workload KnownRun::workload() const {
  workload::Workload workload = workload::read_workload(job->at("workload"), kSource, "/workload");
  workload.model.seq_len = subject.seq_len;
  workload.train_batch_size = batch;
  return workload;
}

workload::ClusterSpec KnownRun::cluster() const {
  Json json = {{"nodes", nodes}, {"gpus_per_node", gpus_per_node}, {"gpu", subject.gpu}};
  if (!network.empty()) json["network"] = network;
  return workload::read_cluster(json, kSource, "/cluster");
}

std::vector<KnownRun> read_known_runs(const Json& json) {
  std::vector<std::shared_ptr<const Json>> jobs;
  for (const Json& job : json.at("jobs")) jobs.push_back(std::make_shared<const Json>(job));
  std::vector<KnownRun> runs;
  for (const Json& run : json.at("runs")) runs.push_back(run_of(run, jobs));
  return runs;
}

std::vector<KnownRun> known_runs() { return read_known_runs(parse_program_json(kKnownRuns)); }

}  // namespace krigtune::opinion
