#include "rates.h"

#include <fmt/format.h>

#include "core/csv.h"
#include "core/files.h"
#include "plan/build_plan.h"

namespace krigtune::cuda {

Table::Table(std::filesystem::path path, const std::vector<std::string>& header)
    : path_(std::move(path)), text_(csv_line(header)) {}

void Table::add(const std::vector<std::string>& row) {
  text_ += csv_line(row);
  ++rows_;
}

void Table::write() const {
  write_atomically(path_, text_);
  fmt::print("{}: {} rows\n", path_.string(), rows_);
}

std::string number(double value) { return fmt::format("{:.6g}", value); }

workload::Workload one_layer(const Scale& scale) {
  workload::Workload workload;
  workload.precision = workload::Precision::kBf16;
  workload.model = {.hidden = 1600, .heads = 25, .ffn_hidden = 6400, .vocab = 50304, .seq_len = 1024};
  if (scale.small) workload.model = {.hidden = 64, .heads = 2, .ffn_hidden = 128, .vocab = 160, .seq_len = 16};
  workload.model.layers = 1;
  workload.model.kv_heads = workload.model.heads;
  return workload;
}

plan::StepPlan plan_of(const workload::Workload& workload, const Run& run) {
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = run.data_ranks * run.tensor_ranks;
  return plan::build_plan(workload, cluster,
                          {{"zero_stage", run.zero_stage},
                           {"micro_batch", run.micro_batch},
                           {"gradient_accumulation_steps", run.micro_steps},
                           {"tensor_parallel", run.tensor_ranks}});
}

}  // namespace krigtune::cuda
