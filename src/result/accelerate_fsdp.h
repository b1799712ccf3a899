#pragma once
#include <string>
#include <vector>

#include "result/export.h"

// What `accelerate launch --config_file` reads, with FSDP. Keys are those of accelerate's commands/config/cluster.py
// (1.15). Sharding, as in its guides "Moving between FSDP and DeepSpeed" and "FSDP1 vs FSDP2":
//
//   ZeRO stage   FSDP 1 (fsdp_sharding_strategy)   FSDP 2
//   3            FULL_SHARD                        fsdp_reshard_after_forward: true
//   2            SHARD_GRAD_OP                     fsdp_reshard_after_forward: false
//   1            none; the nearest is that of stage 2, which shards gradients too
//   0            NO_SHARD                          no FSDP: DistributedDataParallel (MULTI_GPU)
namespace krigtune::result {

/// What of a training an accelerate file says.
struct AccelerateJob {
  space::Configuration configuration;  ///< by well-known names
  std::string precision;               ///< "bf16", "fp16", "no"; "": the script chooses
  workload::ClusterSpec cluster;
  bool is_fsdp = false;  ///< what was tuned trained with FSDP
};

/// Version 1 or 2. Without a sharded stage version 2 is DistributedDataParallel.
std::string fsdp_config_text(const AccelerateJob& job, int version);
/// What the file of that version, of that name, cannot say.
std::vector<Omission> fsdp_omissions(const AccelerateJob& job, int version, const std::string& file);

// Parts of every accelerate file:

/// Comments: the batch is the script's where accelerate builds it from a DataLoader, so the script must say the same.
std::string batch_comments(const space::Configuration& configuration);
/// Machines and processes.
std::string launch_lines(const workload::ClusterSpec& cluster);

}  // namespace krigtune::result
