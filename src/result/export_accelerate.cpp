// What `accelerate launch --config_file` reads: once with DeepSpeed, which takes everything from ds_config.json, and
// once with the nearest that FSDP (version 2) has. Keys are those of accelerate's commands/config/cluster.py; beside a
// deepspeed_config_file it refuses keys that say the same again (zero_stage, mixed_precision, ...), so none is written.
//
// Sharding, as in accelerate's guides "Moving between FSDP and DeepSpeed" and "FSDP1 vs FSDP2":
//
//   ZeRO stage 3   FULL_SHARD      fsdp_reshard_after_forward: true
//   ZeRO stage 2   SHARD_GRAD_OP   fsdp_reshard_after_forward: false
//   ZeRO stage 1   none; the nearest is that of stage 2, which shards gradients too
//   ZeRO stage 0   no sharding: DistributedDataParallel (MULTI_GPU)
#include <fmt/format.h>

#include "result/export.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

constexpr const char* kStages = "/zero_optimization/stage";

using Pointer = Json::json_pointer;

template <typename T>
T value_at(const Json& json, const char* pointer, T fallback) {
  const Pointer key(pointer);
  if (!json.contains(key)) return fallback;
  const Json& value = json[key];
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean() ? value.get<bool>() : fallback;
  if constexpr (std::is_same_v<T, std::int64_t>) return value.is_number() ? value.get<std::int64_t>() : fallback;
  if constexpr (std::is_same_v<T, std::string>) return value.is_string() ? value.get<std::string>() : fallback;
}

// A double-quoted scalar of YAML 1.2 is a JSON string.
std::string quoted(const std::string& text) { return Json(text).dump(); }

std::string commented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "# " + line + "\n";
  return text;
}

std::string number_or_auto(const Json& config, const char* key) {
  return config.contains(key) && config[key].is_number() ? config[key].dump() : "whatever the script says";
}

// The batch is the script's where accelerate builds it from a DataLoader: it must say the same.
std::vector<std::string> batch_lines(const Json& config) {
  return {
      fmt::format("the script's DataLoader: batch_size {}", number_or_auto(config, "train_micro_batch_size_per_gpu")),
      fmt::format("its Accelerator: gradient_accumulation_steps {}",
                  number_or_auto(config, "gradient_accumulation_steps"))};
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

std::string with_deepspeed(const Json& config, const workload::ClusterSpec& cluster,
                           const std::filesystem::path& ds_config) {
  std::string text = commented(batch_lines(config)) + "compute_environment: LOCAL_MACHINE\ndebug: false\n";
  text += "deepspeed_config:\n  deepspeed_config_file: " + quoted(ds_config.string()) + "\n";
  if (cluster.nodes > 1) text += "  deepspeed_multinode_launcher: standard\n";
  text += fmt::format("  zero3_init_flag: {}\n", value_at<std::int64_t>(config, kStages, 0) == 3);
  return text + "distributed_type: DEEPSPEED\n" + launch_lines(cluster);
}

bool is_offloaded(const Json& config, const char* pointer) {
  return value_at<std::string>(config, pointer, "none") != "none";
}

// What FSDP does otherwise.
std::vector<std::string> fsdp_remarks(const Json& config, std::int64_t stage) {
  std::vector<std::string> lines = {"the nearest that FSDP has; it was not measured: its speed and memory are its own"};
  if (stage == 1) lines.emplace_back("FSDP has no ZeRO stage 1: gradients are sharded too");
  const bool parameters = is_offloaded(config, "/zero_optimization/offload_param/device");
  if (!parameters && is_offloaded(config, "/zero_optimization/offload_optimizer/device")) {
    lines.emplace_back("FSDP cannot offload the optimizer alone: nothing is offloaded; if that does not fit, set");
    lines.emplace_back("fsdp_offload_params, which moves parameters, gradients and the optimizer");
  }
  if (value_at<std::int64_t>(config, "/tensor_parallel/autotp_size", 1) > 1) {
    lines.emplace_back("tensor parallelism is left out");
  }
  lines.emplace_back("bucket sizes, prefetch and persistence have no counterpart: FSDP communicates module by module");
  return lines;
}

std::string precision_line(const Json& config) {
  const Pointer bf16("/bf16/enabled");
  const Pointer fp16("/fp16/enabled");
  if (value_at(config, "/bf16/enabled", false)) return "mixed_precision: bf16\n";
  if (value_at(config, "/fp16/enabled", false)) return "mixed_precision: fp16\n";
  const bool is_open =
      (config.contains(bf16) && !config[bf16].is_boolean()) || (config.contains(fp16) && !config[fp16].is_boolean());
  return is_open ? "# mixed_precision: the script's, ds_config.json says auto\n" : "mixed_precision: 'no'\n";
}

std::string with_fsdp(const Json& config, const workload::ClusterSpec& cluster, bool checkpoints_activations) {
  const auto stage = value_at<std::int64_t>(config, kStages, 0);
  std::vector<std::string> lines = fsdp_remarks(config, stage);
  for (const std::string& line : batch_lines(config)) lines.push_back(line);
  std::string text = commented(lines) + "compute_environment: LOCAL_MACHINE\ndebug: false\n";
  if (stage == 0) return text + "distributed_type: MULTI_GPU\n" + precision_line(config) + launch_lines(cluster);
  text += fmt::format(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: {}\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: {}\n"
      "  fsdp_activation_checkpointing: {}\n  fsdp_cpu_ram_efficient_loading: true\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
      stage == 3, is_offloaded(config, "/zero_optimization/offload_param/device"), checkpoints_activations);
  return text + precision_line(config) + launch_lines(cluster);
}

}  // namespace

std::vector<ExportedFile> export_accelerate(const report::RunView& run, const std::filesystem::path& directory) {
  const Json config = exported_ds_config(run);
  const workload::ClusterSpec& cluster = run.session.cluster;
  const space::Value* checkpointing = run.best->configuration.find(space::kCheckpointing);
  const bool checkpoints = checkpointing != nullptr && space::to_string(*checkpointing) != "none";
  std::vector<ExportedFile> files = export_deepspeed(run, directory);
  files.front().use = "accelerate_deepspeed.yaml names it";
  files.push_back({"accelerate_deepspeed.yaml", with_deepspeed(config, cluster, directory / kDsConfigFile),
                   "accelerate launch --config_file with it"});
  files.push_back({"accelerate_fsdp.yaml", with_fsdp(config, cluster, checkpoints),
                   "the same with FSDP instead of DeepSpeed, as near as it comes; not measured"});
  return files;
}

}  // namespace krigtune::result
