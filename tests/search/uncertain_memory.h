#pragma once
#include <string>

#include "search/fixtures.h"

namespace krigtune {

/// A session of a program whose memory is only estimated, on a device where memory decides. `memory`: keys of that
/// block.
inline session::Session uncertain_session(const std::string& memory = "") {
  return session::read_session(parse_json(R"({
      "workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50304, "seq_len": 2048},
                   "precision": "bf16", "framework": "deepspeed", "train_batch_size": 256},
      "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-40gb"}, "baseline": null,
      "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": {"min": 1, "max": 32, "scale": "log2"},
                "activation_checkpointing": ["none", "full"]},
      "memory": {)" + memory + R"(},
      "runner": {"kind": "command", "argv": ["true", "{config}"]}})",
                                          "s"),
                               "s", ".");
}

}  // namespace krigtune
