#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/csv.h"
#include "core/files.h"
#include "cost/memory/memory_model.h"

namespace krigtune {

inline constexpr double kGb = 1e9;
inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// One row of a table of measured steps: what was trained, and its peak if the table has it.
struct MeasuredStep {
  std::string space;  ///< rows of one model on one number of GPUs
  workload::Workload workload;
  workload::ClusterSpec cluster;
  space::Configuration configuration;
  bool ran = true;
  double peak_bytes = 0.0;      ///< 0: unknown
  bool of_first_stage = false;  ///< measured on the first stage
  double capacity_bytes = 0.0;
};

/// Rows of a table by column.
class MeasuredTable {
 public:
  explicit MeasuredTable(const std::string& name) : table_(read(name)) {}
  std::size_t size() const { return table_.rows.size(); }
  const std::string& text(std::size_t row, const char* column) const {
    return table_.rows.at(row).at(static_cast<std::size_t>(table_.column(column)));
  }
  std::int64_t integer(std::size_t row, const char* column) const { return std::stoll(text(row, column)); }
  double number(std::size_t row, const char* column) const { return std::stod(text(row, column)); }

 private:
  static CsvTable read(const std::string& name) {
    const std::string path = std::string(KRIGTUNE_EXPERIMENTS_DATA) + "/" + name;
    return parse_csv(read_text(path), path);
  }
  CsvTable table_;
};

inline workload::ModelSpec gpt_model(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                                     std::int64_t seq_len) {
  workload::ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.ffn_hidden = 4 * hidden;
  model.vocab = vocab;
  model.seq_len = seq_len;
  return model;
}

inline workload::ModelSpec llama_model(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                       std::int64_t kv_heads, std::int64_t ffn_hidden, std::int64_t vocab,
                                       std::int64_t seq_len) {
  workload::ModelSpec model = gpt_model(layers, hidden, heads, vocab, seq_len);
  model.kv_heads = kv_heads;
  model.ffn_hidden = ffn_hidden;
  model.gated_mlp = true;
  model.tied_embeddings = false;
  model.positions = workload::Positions::kRotary;
  model.norm = workload::Norm::kRmsNorm;
  return model;
}

inline workload::ClusterSpec cluster_of(const std::string& gpu, std::int64_t ranks) {
  constexpr std::int64_t kPerNode = 8;
  workload::ClusterSpec cluster;
  cluster.gpu = gpu;
  cluster.device = workload::device_of(gpu, "measured peaks");
  cluster.gpus_per_node = ranks < kPerNode ? ranks : kPerNode;
  cluster.nodes = ranks / cluster.gpus_per_node;
  return cluster;
}

/// nanotron on H100s. Configurations that are listed both as ok and as failed did run.
inline std::vector<MeasuredStep> ultrascale_steps(const char* file = "ultrascale_dev.csv") {
  const MeasuredTable table(file);
  std::map<std::string, MeasuredStep> merged;
  for (std::size_t r = 0; r < table.size(); ++r) {
    MeasuredStep step;
    step.space = table.text(r, "model") + " on " + table.text(r, "n_gpus");
    step.workload.framework = workload::Framework::kNanotron;
    step.workload.precision = workload::Precision::kBf16;
    step.workload.model = llama_model(table.integer(r, "layers"), table.integer(r, "hidden"), table.integer(r, "heads"),
                                      table.integer(r, "heads"), table.integer(r, "ffn_hidden"),
                                      table.integer(r, "vocab"), table.integer(r, "seq_len"));
    step.cluster = cluster_of("h100-80gb", table.integer(r, "n_gpus"));
    for (const char* name :
         {"tensor_parallel", "pipeline_parallel", "zero_stage", "micro_batch", "gradient_accumulation_steps"}) {
      step.configuration.set(name, table.integer(r, name));
    }
    step.configuration.set("sequence_parallel", true);
    step.ran = table.text(r, "status") == "ok";
    step.of_first_stage = true;  // far below what the stage with the head needs, if that one needs more
    step.capacity_bytes = 80.0 * kGb;
    const std::string& peak = table.text(r, "peak_memory_gb");
    if (step.ran && !peak.empty()) step.peak_bytes = std::stod(peak) * kGb;
    const auto [known, is_new] = merged.try_emplace(step.space + step.configuration.text(), step);
    if (is_new || !step.ran) continue;
    if (!known->second.ran || step.peak_bytes > known->second.peak_bytes) known->second = step;
  }
  std::vector<MeasuredStep> steps;
  for (auto& [key, step] : merged) steps.push_back(std::move(step));
  return steps;
}

/// MPT with FSDP; all rows ran.
inline std::vector<MeasuredStep> llmfoundry_steps() {
  const MeasuredTable table("llmfoundry_mpt_fsdp.csv");
  struct Size {
    std::int64_t hidden, layers, heads;
  };
  const std::map<std::string, Size> sizes = {
      // scripts/train/yamls/pretrain/mpt-*.yaml of llm-foundry
      {"125m", {768, 12, 12}}, {"350m", {1024, 24, 16}}, {"760m", {1536, 24, 12}},
      {"1b", {2048, 24, 16}},  {"3b", {2560, 32, 20}},   {"7b", {4096, 32, 32}},
      {"13b", {5120, 40, 40}}, {"30b", {7168, 48, 56}},  {"70b", {8192, 80, 64}}};
  std::vector<MeasuredStep> steps;
  for (std::size_t r = 0; r < table.size(); ++r) {
    const Size& size = sizes.at(table.text(r, "model"));
    MeasuredStep step;
    step.space = table.text(r, "model") + " on " + table.text(r, "n_gpus") + " " + table.text(r, "gpu");
    step.workload.framework = workload::Framework::kFsdp;
    step.workload.precision = workload::Precision::kBf16;
    step.workload.model = gpt_model(size.layers, size.hidden, size.heads, 50368, table.integer(r, "seq_len_tokens"));
    std::string gpu = table.text(r, "gpu");
    std::replace(gpu.begin(), gpu.end(), '_', '-');
    step.cluster = cluster_of(gpu, table.integer(r, "n_gpus"));
    const bool again = table.text(r, "activation_checkpointing") == "True";
    step.configuration = {{"zero_stage", std::int64_t{3}},
                          {"micro_batch", table.integer(r, "micro_batch_size_seqs")},
                          {"gradient_accumulation_steps", table.integer(r, "grad_accum_steps")},
                          {"activation_checkpointing", std::string(again ? "full" : "none")}};
    step.capacity_bytes = (table.text(r, "gpu") == "a100_40gb"   ? 39.4
                           : table.text(r, "gpu") == "a100_80gb" ? 79.2
                                                                 : 79.1) *
                          kGiB;
    steps.push_back(step);
  }
  return steps;
}

/// Llama 3 with few layers in Megatron on B200s; the measured numbers are the allocated bytes.
inline std::vector<MeasuredStep> b200_steps() {
  const MeasuredTable table("simumax_validation.csv");
  std::vector<MeasuredStep> steps;
  for (std::size_t r = 0; r < table.size(); ++r) {
    const std::string& name = table.text(r, "case");
    if (table.text(r, "real_alloc_GiB").empty() || name.find("llama3") == std::string::npos) continue;
    if (name.find("_cp") != std::string::npos) continue;  // context parallelism is not modelled
    const auto number = [&](const std::string& key) {
      const std::size_t at = name.find(key);
      return std::stoll(name.substr(at + key.size()));
    };
    const bool large = name.find("405b") != std::string::npos;
    MeasuredStep step;
    step.space = name;
    step.workload.framework = workload::Framework::kMegatron;
    step.workload.precision = workload::Precision::kBf16;
    step.workload.model =
        large ? llama_model(4, 16384, 128, 8, 53248, 128256, 4096) : llama_model(12, 8192, 64, 8, 28672, 128256, 4096);
    step.cluster = cluster_of("b200-180gb", 8);
    step.configuration = {{"zero_stage", std::int64_t{1}},    {"micro_batch", std::int64_t{1}},
                          {"tensor_parallel", number("_tp")}, {"pipeline_parallel", number("_pp")},
                          {"sequence_parallel", true},        {"gradient_accumulation_steps", number("_mbc")}};
    step.peak_bytes = table.number(r, "real_alloc_GiB") * kGiB;
    step.capacity_bytes = 178.4 * kGiB;
    steps.push_back(step);
  }
  return steps;
}

/// 18 to 206 billion parameters in Megatron-DeepSpeed on A100s; peaks of the nodes with the first and the last stage.
inline std::vector<MeasuredStep> bigscience_steps() {
  const MeasuredTable table("bigscience_tr11_a100_3d.csv");
  std::vector<MeasuredStep> steps;
  for (std::size_t r = 0; r < table.size(); ++r) {
    if (table.text(r, "peak_mem_gb_first_or_last_stage_nodes").empty() || table.text(r, "status") != "ok") continue;
    MeasuredStep step;
    step.space = "bigscience " + table.text(r, "section");
    step.workload.framework = workload::Framework::kDeepSpeed;
    step.workload.precision = workload::Precision::kBf16;
    const std::string& heads = table.text(r, "n_heads");
    const std::int64_t hidden = table.integer(r, "hidden_size");
    step.workload.model = gpt_model(table.integer(r, "n_layers"), hidden, heads.empty() ? 32 : std::stoll(heads),
                                    table.integer(r, "vocab_size_approx"), table.integer(r, "seq_len_tokens"));
    step.workload.model.attention = workload::Attention::kEager;
    const std::int64_t tensor = table.integer(r, "tp");
    const std::int64_t pipeline = table.integer(r, "pp");
    const std::int64_t data = table.integer(r, "dp");
    step.cluster = cluster_of("a100-80gb", tensor * pipeline * data);
    step.configuration = {{"zero_stage", table.integer(r, "zero_stage")},
                          {"micro_batch", table.integer(r, "micro_batch_size_seqs")},
                          {"tensor_parallel", tensor},
                          {"pipeline_parallel", pipeline},
                          {"gradient_accumulation_steps", table.integer(r, "grad_accum_steps_derived")},
                          {"activation_checkpointing", std::string("full")}};
    step.peak_bytes = table.number(r, "peak_mem_gb_first_or_last_stage_nodes") * kGb;
    step.capacity_bytes = 79.2 * kGiB;
    steps.push_back(step);
  }
  return steps;
}

inline cost::MemoryEstimate estimate_of(const MeasuredStep& step, const cost::MemoryCalibration& calibration = {}) {
  return cost::MemoryModel(step.workload, step.cluster, {}, calibration).estimate(step.configuration);
}

}  // namespace krigtune
