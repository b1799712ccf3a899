#include "result/accelerate_fsdp.h"

#include <fmt/format.h>

#include <array>

#include "core/text.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

// A parameter of the recipe accelerate.
constexpr const char* kForwardPrefetch = "fsdp_forward_prefetch";

std::string commented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "# " + line + "\n";
  return text;
}

std::int64_t stage_of(const AccelerateJob& job) { return job.configuration.integer(space::kZeroStage, 0); }

std::string word_of(const space::Configuration& configuration, const char* name) {
  const space::Value* value = configuration.find(name);
  return value == nullptr ? "none" : space::to_string(*value);
}

bool is_offloaded(const AccelerateJob& job, const char* name) { return word_of(job.configuration, name) != "none"; }

std::int64_t tensor_parallel(const AccelerateJob& job) { return job.configuration.integer(space::kTensorParallel, 1); }

// Describes what FSDP does differently from the tuned configuration.
std::vector<std::string> remarks_of(const AccelerateJob& job) {
  std::vector<std::string> lines;
  if (job.is_fsdp) {
    lines.emplace_back("trials trained with the FSDP of the job: the file of its version is what was measured");
  } else {
    lines.emplace_back("the nearest that FSDP has; it was not measured: its speed and memory are its own");
  }
  if (stage_of(job) == 1) lines.emplace_back("FSDP has no ZeRO stage 1: gradients are sharded too");
  if (!is_offloaded(job, space::kOffloadParam) && is_offloaded(job, space::kOffloadOptimizer)) {
    lines.emplace_back("FSDP cannot offload the optimizer alone: nothing is offloaded; if that does not fit, set");
    lines.emplace_back("fsdp_offload_params, which moves parameters, gradients and the optimizer");
  }
  if (!job.is_fsdp) {
    lines.emplace_back(
        "bucket sizes, prefetch and persistence have no counterpart: FSDP communicates module by module");
  }
  return lines;
}

std::string sharding_lines(const AccelerateJob& job, int version) {
  const std::int64_t stage = stage_of(job);
  if (version == 2) return fmt::format("  fsdp_reshard_after_forward: {}\n", stage == 3);
  const bool prefetches = job.configuration.boolean(space::kOverlap, true);
  return fmt::format(
      "  fsdp_sharding_strategy: {}\n  fsdp_backward_prefetch: {}\n  fsdp_forward_prefetch: {}\n"
      "  fsdp_use_orig_params: true\n  fsdp_sync_module_states: true\n",
      stage == 0   ? "NO_SHARD"
      : stage == 3 ? "FULL_SHARD"
                   : "SHARD_GRAD_OP",
      prefetches ? "BACKWARD_PRE" : "NO_PREFETCH", job.configuration.boolean(kForwardPrefetch, false));
}

std::string fsdp_block(const AccelerateJob& job, int version) {
  return fmt::format(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: {}\n{}"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: {}\n"
      "  fsdp_activation_checkpointing: {}\n  fsdp_cpu_ram_efficient_loading: true\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
      version, sharding_lines(job, version), is_offloaded(job, space::kOffloadParam),
      is_offloaded(job, space::kCheckpointing));
}

// Written only with FSDP 2.
std::string parallelism_block(const AccelerateJob& job) {
  const std::int64_t sequence_ranks = job.configuration.integer(space::kContextParallel, 1);
  const std::int64_t group = job.configuration.integer(space::kHybridShard, 0);
  if (tensor_parallel(job) == 1 && sequence_ranks == 1 && group == 0) return "";
  const std::int64_t dp = data_ranks_of(job.configuration, job.cluster.ranks());
  const std::int64_t shard = group == 0 ? dp : group;
  return fmt::format(
      "parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n  parallelism_config_dp_shard_size: {}\n"
      "  parallelism_config_tp_size: {}\n  parallelism_config_cp_size: {}\n",
      dp / shard, shard, tensor_parallel(job), sequence_ranks);
}

std::string precision_line(const AccelerateJob& job) {
  if (job.precision.empty()) return "# mixed_precision: as the script says\n";
  return job.precision == "no" ? "mixed_precision: 'no'\n" : fmt::format("mixed_precision: {}\n", job.precision);
}

std::string why_not(const AccelerateJob& job, int version, const std::string& name, const std::string& value) {
  const bool is_sharded = stage_of(job) > 0 || version == 1;
  if (is_one_of(name, std::array{space::kMicroBatch, space::kAccumulation})) {
    return name == space::kMicroBatch ? "the script's DataLoader says it"
                                      : "the script's Accelerator says it (gradient_accumulation_steps)";
  }
  if (name == space::kZeroStage) return value == "1" ? "FSDP shards gradients with the optimizer: it is stage 2" : "";
  if (is_one_of(name, std::array{space::kTensorParallel, space::kContextParallel, space::kHybridShard})) {
    return version == 2 && is_sharded ? "" : "it takes FSDP version 2";
  }
  if (name == space::kCheckpointing) {
    if (!is_sharded) return "without FSDP the script turns it on";
    return value == "full" ? "" : "FSDP recomputes whole blocks: written as full";
  }
  if (name == space::kOffloadParam) return value == "cpu" && is_sharded ? "" : "FSDP offloads to host memory alone";
  if (name == space::kOffloadOptimizer) {
    const bool goes_along = is_sharded && value == "cpu" && is_offloaded(job, space::kOffloadParam);
    return goes_along ? "" : "FSDP cannot offload the optimizer alone";
  }
  if (name == kForwardPrefetch) return version == 1 || value == "false" ? "" : "FSDP 2 has no such switch";
  if (name == space::kOverlap) return version == 1 || value == "true" ? "" : "FSDP 2 always overlaps";
  if (name == space::kPipelineParallel) return "accelerate does not cut a model into pipeline stages";
  if (name == space::kSequenceParallel) return "the model's code splits the sequence";
  if (name == space::kCheckpointLayers) return "FSDP recomputes every block";
  return space::find_well_known(name) != nullptr ? "FSDP communicates module by module"
                                                 : "it is not a key of accelerate's; the script or its flags say it";
}

}  // namespace

std::string batch_comments(const space::Configuration& configuration) {
  const auto number = [&](const char* name) {
    const space::Value* value = configuration.find(name);
    return value != nullptr && space::is_number(*value) ? space::to_string(*value) : "whatever the script says";
  };
  return commented({fmt::format("the script's DataLoader: batch_size {}", number(space::kMicroBatch)),
                    fmt::format("its Accelerator: gradient_accumulation_steps {}", number(space::kAccumulation))});
}

std::string launch_lines(const workload::ClusterSpec& cluster) {
  std::string text = fmt::format(
      "machine_rank: 0\nmain_training_function: main\nnum_machines: {}\nnum_processes: {}\nrdzv_backend: static\n"
      "same_network: true\nuse_cpu: false\n",
      cluster.nodes, cluster.ranks());
  if (cluster.nodes > 1) {
    text +=
        "# on each machine its own machine_rank, and on all of them the first one's address:\n"
        "# main_process_ip: ...\n# main_process_port: 29500\n";
  }
  return text;
}

std::string fsdp_config_text(const AccelerateJob& job, int version) {
  std::string text = commented(remarks_of(job)) + batch_comments(job.configuration) +
                     "compute_environment: LOCAL_MACHINE\ndebug: false\n";
  if (version == 2 && stage_of(job) == 0) {
    text += "distributed_type: MULTI_GPU\n";
  } else {
    text += fsdp_block(job, version);
    if (version == 2) text += parallelism_block(job);
  }
  return text + precision_line(job) + launch_lines(job.cluster);
}

std::vector<Omission> fsdp_omissions(const AccelerateJob& job, int version, const std::string& file) {
  std::vector<Omission> omissions;
  for (const auto& [name, value] : job.configuration) {
    if (asks_for_nothing(job.configuration, name)) continue;
    const std::string why = why_not(job, version, name, space::to_string(value));
    if (!why.empty()) omissions.push_back({file, name, value, why});
  }
  return omissions;
}

}  // namespace krigtune::result
