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

/// What is known of the model beside the command's own flags; what is missing there may stand in the section
/// "autotuning" of the file (model_info), or nobody knows it.
struct DsModelFacts {
  std::filesystem::path hf_config;          ///< config.json of Hugging Face transformers; empty: not given
  std::optional<std::int64_t> num_params;   ///< elements
  std::optional<std::int64_t> hidden_size;  ///< width
  /// Of a forward pass on a rank, beside what is there without one: bytes a sequence, and bytes whatever their number.
  std::optional<double> activation_slope_bytes;
  double activation_offset_bytes = 0.0;
};

/// The machine that the job runs on.
struct DsMachine {
  workload::ClusterSpec cluster;     ///< what the command says of ranks and nodes counts more
  bool on_cpu = false;               ///< ranks compute on the CPU: nothing is searched that only moves data to the host
  std::optional<Bytes> rank_memory;  ///< of a rank's device; empty: not known
  std::optional<Bytes> host_memory;  ///< of a node; empty: not known, and offload is searched only where the file says
  std::optional<DsVersion> version;  ///< of the installed DeepSpeed; empty: not known, taken for a current one
};

struct DsSessionInputs {
  Json config;                       ///< load_ds_config()
  std::filesystem::path ds_config;   ///< that file, for messages and the session
  std::optional<DsCommand> command;  ///< empty: a session whose runner is "none" until a command is given
  std::filesystem::path directory;   ///< that relative paths of the command are relative to
  DsModelFacts model;
  DsMachine machine;
  bool tensor_parallel = false;  ///< AutoTP was asked for; otherwise it is searched only where the file lists it
};

struct DsSession {
  Json json;                               ///< for read_session()
  std::vector<std::string> remarks;        ///< one line each, for the user: what was assumed, left out or has no effect
  std::optional<std::int64_t> num_params;  ///< of the model; empty: nothing tells its size
};

/// The session that tunes the user's DeepSpeed job; everything that it decides stands in it and can be edited.
/// - Space: a list or "auto" in the file is searched, a knob that is absent too where it may help a model and a cluster
///   of this size, and what the file fixes stays. A file that opens nothing (no list, no "auto") is searched as if the
///   knobs that it fixes were absent; a list of one value pins a knob there. `"fast": true` in "autotuning" limits
///   what is added to stage and micro-batch, as in DeepSpeed.
/// - The sequences of a step are kept where the file or the mapped flags say them: micro-batch and accumulation change
///   together. Where neither does, they vary, and a remark says so.
/// - Baseline: the user's own configuration, with "auto" as the flags or the Hugging Face Trainer would fill it in, and
///   the first value of a list.
/// - Knobs without effect here (one data-parallel rank, stages that do not read them, allgather_bucket_size in a
///   version that does not read it) are left out, with a remark where the file opens them.
/// - Workload: from the HF config, a local --model_name_or_path or the sizes among the flags. Where these tell the
///   tokens of a sequence and the number of parameters is known otherwise, a GPT of the usual shape of that size; none
///   where they do not suffice. One remark on either.
/// - Stages whose states, bucket and activations no rank could hold are left out, with a remark.
/// Throws UserError for a file that contradicts itself or the number of ranks, or names no batch.
DsSession deepspeed_session(const DsSessionInputs& inputs);

}  // namespace krigtune::deepspeed
