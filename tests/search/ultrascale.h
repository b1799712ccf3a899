#pragma once
#include <string>

#include "search/fixtures.h"

namespace krigtune {

/// A session on a measured table: nanotron's 1.3B Llama on some nodes of 8 H100s. If `job` is "", the session says
/// nothing about the job; `cluster` has further keys of that block.
inline std::string ultrascale(int gpus, const std::string& job, const std::string& cluster = "") {
  return R"({)" +
         (job.empty() ? ""
                      : R"(
      "workload": {"model": {"layers": 16, "hidden": 2048, "heads": 32, "ffn_hidden": 8192, "vocab": 131072,
                             "seq_len": 4096, "gated_mlp": true, "norm": "rmsnorm", "positions": "rotary"},
                   "precision": "bf16", "train_batch_size": 256, "framework": "nanotron"},
      "cluster": {"nodes": )" +
                            std::to_string(gpus / 8) + R"(, "gpus_per_node": 8, "gpu": "h100-80gb",
                  "interconnect": "nvlink4", "network": "ib-ndr-400")" +
                            cluster + R"(},)") +
         R"(
      "space": {"tensor_parallel": [1, 2, 4, 8, 16, 32], "pipeline_parallel": [1, 2, 4, 8, 16, 32, 64],
                "zero_stage": [0, 1], "micro_batch": {"min": 1, "max": 256, "scale": "log2"}},
      "baseline": null, "objective": {"metric": "tokens_per_second"},
      "runner": {"kind": "replay", "table": ")" KRIGTUNE_EXPERIMENTS_DATA R"(/ultrascale_dev.csv",
                 "where": {"model": "1B", "n_gpus": )" +
         std::to_string(gpus) + R"(},
                 "value": "tokens_per_s", "status": "status"}})";
}

}  // namespace krigtune
