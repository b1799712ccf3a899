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

/// The part of a training job that an accelerate file describes.
struct AccelerateJob {
  space::Configuration configuration;  ///< by well-known names
  std::string precision;               ///< "bf16", "fp16", "no"; "": the script chooses
  workload::ClusterSpec cluster;
  bool is_fsdp = false;  ///< the tuned job trained with FSDP
};

/// Writes version 1 or 2. Without a sharded stage, version 2 is DistributedDataParallel.
std::string fsdp_config_text(const AccelerateJob& job, int version);
/// Returns the settings that the file of that version and name cannot express.
std::vector<Omission> fsdp_omissions(const AccelerateJob& job, int version, const std::string& file);

// Parts of every accelerate file:

/// Returns comments about the batch: if accelerate builds it from a DataLoader the script decides, so it must use the
/// same one.
std::string batch_comments(const space::Configuration& configuration);
/// Machines and processes.
std::string launch_lines(const workload::ClusterSpec& cluster);

}  // namespace krigtune::result
