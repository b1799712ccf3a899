#include "deepspeed/session/deepspeed_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "deepspeed/session/ds_job.h"

namespace krigtune::deepspeed {
namespace {

bool says(const DsJob& job, const char* key) {
  const Json section = job.inputs.config.value("autotuning", Json::object());
  return section.is_object() && section.contains(key);
}

const char* metric_of(DsMetric metric) {
  switch (metric) {
    case DsMetric::kLatency:
      return "latency";
    case DsMetric::kFlops:
      return "flops";
    case DsMetric::kThroughput:
      break;
  }
  return "throughput";
}

Json runner_block(const DsJob& job) {
  if (!job.inputs.command) return {{"kind", "none"}};
  Json block = {{"kind", "deepspeed"},
                {"argv", job.inputs.command->argv},
                {"ds_config", std::filesystem::absolute(job.inputs.ds_config).lexically_normal().string()},
                {"cwd", std::filesystem::absolute(job.inputs.directory).lexically_normal().string()}};
  for (const auto& [key, flag] : job.autotuning.arg_mappings) block["arg_mappings"][key] = flag;
  if (!job.autotuning.window.is_given) return block;
  constexpr std::int64_t kFewestMeasured = 3;
  const DsProfileWindow& window = job.autotuning.window;
  block["warmup_steps"] = std::max<std::int64_t>(1, window.first);
  block["measure_steps"] = std::max(kFewestMeasured, window.last - window.first + 1);
  return block;
}

Json budget_block(const DsJob& job) {
  Json block = Json::object();
  const DsTunerOptions& tuner = job.autotuning.tuner;
  if (tuner.says_trials) block["trials"] = tuner.trials;
  if (says(job, "tuner_early_stopping")) block["patience"] = tuner.early_stopping;
  return block;
}

// If it is unknown whether the script recomputes, predictions would exclude configurations that fit.
bool predicts(DsJob& job) {
  if (job.workload.is_null() || recomputation_of(job) != Recomputation::kUnknown) return true;
  if (!job.inputs.machine.rank_memory && !job.cluster.device) return true;  // there is no limit to compare with
  workload::ClusterSpec unnamed;
  unnamed.nodes = job.cluster.nodes;
  unnamed.gpus_per_node = job.cluster.gpus_per_node;
  job.cluster = unnamed;
  job.remarks.emplace_back(
      "time and memory are not predicted: whether the script recomputes activations is not known; if it does not, "
      "write "
      "\"cluster\": {\"gpu\": \"h100-80gb\", ...} in a session, else map its flag in \"autotuning\": "
      "{\"arg_mappings\": {\"activation_checkpointing\": \"--flag\"}}");
  return false;
}

Json memory_block(const DsJob& job, bool is_limited) {
  Json block = Json::object();
  const DsMachine& machine = job.inputs.machine;
  if (machine.rank_memory && is_limited) block["limit_gib"] = to_gib(*machine.rank_memory);
  if (machine.host_memory) block["host_limit_gib"] = to_gib(*machine.host_memory);
  return block;
}

// The strategy stagewise searches like DeepSpeed's tuner with this section. An improvement of less than 5 % ends the
// search of micro-batches (autotuner.py, get_min_max_micro_batch_size).
Json stagewise_block(const DsJob& job) {
  constexpr double kPlateau = 0.05;
  const DsTunerOptions& tuner = job.autotuning.tuner;
  return {{"plateau", kPlateau},
          {"fast", tuner.fast},
          {"tuner", to_string(tuner.type)},
          {"tuner_trials", tuner.trials},
          {"early_stopping", tuner.early_stopping},
          {"micro_batches", job.autotuning.batch.micro_batches}};
}

// Remarks on keys that only DeepSpeed's own search reads.
void remark_on_the_tuner(DsJob& job) {
  for (const char* key : {"tuner_type", "num_tuning_micro_batch_sizes"}) {
    if (says(job, key)) job.remarks.push_back(fmt::format("/autotuning/{}: read by --strategy stagewise alone", key));
  }
}

}  // namespace

DsSession deepspeed_session(const DsSessionInputs& inputs) {
  DsJob job(inputs);
  Json session = Json::object();
  if (!job.workload.is_null()) session["workload"] = job.workload;
  const bool is_limited = predicts(job);
  session["cluster"] = workload::to_json(job.cluster);
  if (job.sequence > 1) session["fixed"] = space::to_json(shared_sequences(job));
  add_ds_space(job, session);
  session["objective"] = {{"metric", metric_of(job.autotuning.metric)}};
  session["runner"] = runner_block(job);
  session["budget"] = budget_block(job);
  session["stagewise"] = stagewise_block(job);
  session["memory"] = memory_block(job, is_limited);
  remark_on_the_tuner(job);
  if (inputs.machine.version) {
    const std::string remark = version_remark(*inputs.machine.version);
    if (!remark.empty()) job.remarks.push_back(remark);
  }
  return {std::move(session), std::move(job.remarks), job.num_params};
}

}  // namespace krigtune::deepspeed
