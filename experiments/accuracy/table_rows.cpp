#include "table_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/files.h"
#include "core/json.h"

namespace krigtune::accuracy {

Table::Table(const std::filesystem::path& path) : source_(path.string()), table_(parse_csv(read_text(path), source_)) {}

const std::string& Table::text(std::size_t row, std::string_view column) const {
  const int at = table_.column(column);
  if (at < 0) throw std::runtime_error(fmt::format("{}: no column {}", source_, column));
  return table_.rows[row][static_cast<std::size_t>(at)];
}

workload::ClusterSpec gpus(std::int64_t count, std::int64_t per_node, const std::string& gpu,
                           const std::string& network) {
  const std::int64_t local = std::min(count, per_node);
  Json json = {{"nodes", count / local}, {"gpus_per_node", local}, {"gpu", gpu}};
  if (count > local) json["network"] = network;
  return workload::read_cluster(json, "table", "/cluster");
}

workload::ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t seq_len) {
  constexpr std::int64_t kVocab = 51200;
  constexpr std::int64_t kFfn = 4;
  workload::ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.ffn_hidden = kFfn * hidden;
  model.vocab = kVocab;
  model.seq_len = seq_len;
  return model;
}

workload::ModelSpec llama(workload::ModelSpec sizes) {
  sizes.gated_mlp = true;
  sizes.positions = workload::Positions::kRotary;
  sizes.norm = workload::Norm::kRmsNorm;
  return sizes;
}

space::Configuration parallel(std::int64_t micro_batch, std::int64_t tensor, std::int64_t stages) {
  return {{"zero_stage", std::int64_t{0}},
          {"micro_batch", micro_batch},
          {"tensor_parallel", tensor},
          {"pipeline_parallel", stages}};
}

}  // namespace krigtune::accuracy
