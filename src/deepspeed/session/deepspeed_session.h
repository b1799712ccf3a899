#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/units.h"
#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_versions.h"
#include "workload/workload.h"

namespace krigtune::deepspeed {

/// Information about the model in addition to the command's flags. Missing values may be in the section "autotuning" of
/// the file (model_info), or unknown.
struct DsModelFacts {
  std::filesystem::path hf_config;          ///< config.json of Hugging Face transformers; empty if not given
  std::optional<std::int64_t> num_params;   ///< elements
  std::optional<std::int64_t> hidden_size;  ///< width
  /// For a forward pass on a rank, in addition to the memory without one: bytes per sequence, and bytes independent of
  /// their number.
  std::optional<double> activation_slope_bytes;
  double activation_offset_bytes = 0.0;
};

/// The machine that the job runs on.
struct DsMachine {
  workload::ClusterSpec cluster;  ///< the command's own ranks and nodes take precedence
  /// Ranks compute on the CPU, so settings that only move data to the host are not searched.
  bool on_cpu = false;
  std::optional<Bytes> rank_memory;  ///< of a rank's device; empty if unknown
  /// Of a node; empty if unknown, and then offload is searched only if the file lists it.
  std::optional<Bytes> host_memory;
  std::optional<DsVersion> version;  ///< installed DeepSpeed; empty if unknown, treated as a current one
};

struct DsSessionInputs {
  Json config;                       ///< load_ds_config()
  std::filesystem::path ds_config;   ///< that file, for messages and the session
  std::optional<DsCommand> command;  ///< empty: the session's runner is "none" until a command is given
  std::filesystem::path directory;   ///< base of the command's relative paths
  DsModelFacts model;
  DsMachine machine;
  bool tensor_parallel = false;  ///< AutoTP was requested; otherwise it is searched only if the file lists it
};

struct DsSession {
  Json json;  ///< for read_session()
  /// One line each, for the user: assumptions, omissions and settings without effect.
  std::vector<std::string> remarks;
  std::optional<std::int64_t> num_params;  ///< of the model; empty if its size is unknown
};

/// Makes the session that tunes the user's DeepSpeed job. All its decisions are written into the session and can be
/// edited.
/// - Space: a list or "auto" in the file is searched, and so is an absent knob that may help a model and a cluster of
/// this size; everything that the file fixes stays. A file that leaves nothing open (no list, no "auto") is searched as
/// if the knobs that it fixes were absent; there a list of one value pins a knob. As in DeepSpeed, `"fast": true` in
/// "autotuning" limits the additions to stage and micro-batch.
/// - Batch: the sequences per step stay constant if the file or the mapped flags state them, and micro-batch and
/// accumulation change together. Otherwise they vary, and a remark says so.
/// - Baseline: the user's own configuration, with "auto" as the flags or the Hugging Face Trainer would fill it in, and
/// the first value of a list.
/// - Knobs without effect here (one data-parallel rank, stages that do not read them, allgather_bucket_size in a
/// version that does not read it) are left out, with a remark if the file opens them.
/// - Workload: from the HF config, a local --model_name_or_path or the sizes among the flags. If these only give the
/// tokens of a sequence and the number of parameters is known from elsewhere, a GPT of that size and the usual shape is
/// assumed; if they are insufficient, there is no workload. Either case adds a remark.
/// - Stages whose states, bucket and activations no rank could hold are left out, with a remark.
///
/// Throws UserError for a file that contradicts itself or the number of ranks, or that determines no batch.
DsSession deepspeed_session(const DsSessionInputs& inputs);

}  // namespace krigtune::deepspeed
