// Writes files for `accelerate launch --config_file`. A job that trains with FSDP gets files for FSDP 2 and FSDP 1 with
// its settings. Any other job gets a file for DeepSpeed, which takes everything from ds_config.json, and one with the
// nearest settings of FSDP 2. With a deepspeed_config_file accelerate refuses keys that repeat its contents
// (zero_stage, mixed_precision, ...), so none of them is written.
#include <fmt/format.h>

#include "jobs/recipe/recipe.h"
#include "result/accelerate_fsdp.h"
#include "result/export.h"
#include "runner/command.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

constexpr const char* kWithDeepSpeed = "accelerate_deepspeed.yaml";
constexpr const char* kFsdp2 = "accelerate_fsdp.yaml";
constexpr const char* kFsdp1 = "accelerate_fsdp1.yaml";

using Pointer = Json::json_pointer;

// A JSON string is a double-quoted scalar of YAML 1.2.
std::string quoted(const std::string& text) { return Json(text).dump(); }

bool is_on(const Json& config, const char* pointer) {
  const Pointer key(pointer);
  return config.contains(key) && config[key].is_boolean() && config[key].get<bool>();
}

bool is_open(const Json& config, const char* pointer) {
  const Pointer key(pointer);
  return config.contains(key) && !config[key].is_boolean();
}

std::string precision_of(const Json& ds_config) {
  if (is_on(ds_config, "/bf16/enabled")) return "bf16";
  if (is_on(ds_config, "/fp16/enabled")) return "fp16";
  return is_open(ds_config, "/bf16/enabled") || is_open(ds_config, "/fp16/enabled") ? "" : "no";
}

// Scalars in the file take precedence, because it may be the user's own and fix more than was tuned.
AccelerateJob job_of(const Json& ds_config, const report::RunView& run) {
  AccelerateJob job{run.answer.best->configuration, precision_of(ds_config), run.session.cluster, false};
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    if (*known.deepspeed.key == '\0') continue;
    const Pointer key(known.deepspeed.key);
    const bool is_said = ds_config.contains(key) && ds_config[key].is_primitive() && !ds_config[key].is_null();
    if (!is_said || ds_config[key] == "auto") {
      job.configuration.erase(known.name);
    } else {
      job.configuration.set(known.name, space::value_from_json(ds_config[key], kDsConfigFile));
    }
  }
  return job;
}

// Decides by the workload or, if the model's sizes are unknown, by the recipe.
bool trains_with_fsdp(const session::Session& session) {
  if (session.workload) return session.workload->framework == workload::Framework::kFsdp;
  const std::string recipe = runner::recipe_of(session.runner);
  return !recipe.empty() && jobs::find_recipe(recipe).framework == "fsdp";
}

std::string precision_of(const session::Session& session) {
  if (!session.workload) return "";
  if (session.workload->training.has_narrow_products()) return "fp8";
  const workload::Precision precision = session.workload->precision;
  return precision == workload::Precision::kFp32 ? "no" : workload::to_string(precision);
}

std::string with_deepspeed(const AccelerateJob& job, const std::filesystem::path& ds_config) {
  std::string text = batch_comments(job.configuration) + "compute_environment: LOCAL_MACHINE\ndebug: false\n";
  text += "deepspeed_config:\n  deepspeed_config_file: " + quoted(ds_config.string()) + "\n";
  if (job.cluster.nodes > 1) text += "  deepspeed_multinode_launcher: standard\n";
  text += fmt::format("  zero3_init_flag: {}\n", job.configuration.integer(space::kZeroStage, 0) == 3);
  return text + "distributed_type: DEEPSPEED\n" + launch_lines(job.cluster);
}

Export of_fsdp(const AccelerateJob& job) {
  Export made;
  made.files = {{kFsdp2, fsdp_config_text(job, 2), "accelerate launch --config_file with it: FSDP 2"},
                {kFsdp1, fsdp_config_text(job, 1), "the same with FSDP 1"}};
  made.omissions = fsdp_omissions(job, 2, kFsdp2);
  for (Omission& one : fsdp_omissions(job, 1, kFsdp1)) made.omissions.push_back(std::move(one));
  return made;
}

}  // namespace

Export export_accelerate(const report::RunView& run, const std::filesystem::path& directory) {
  if (trains_with_fsdp(run.session)) {
    return of_fsdp({run.answer.best->configuration, precision_of(run.session), run.session.cluster, true});
  }
  Export made = export_deepspeed(run, directory);
  const AccelerateJob job = job_of(exported_ds_config(run), run);
  made.files.front().use = fmt::format("{} names it", kWithDeepSpeed);
  made.files.push_back(
      {kWithDeepSpeed, with_deepspeed(job, directory / kDsConfigFile), "accelerate launch --config_file with it"});
  made.files.push_back(
      {kFsdp2, fsdp_config_text(job, 2), "the same with FSDP instead of DeepSpeed, as near as it comes; not measured"});
  for (Omission& one : fsdp_omissions(job, 2, kFsdp2)) {
    if (run.answer.best->configuration.has(one.setting))
      made.omissions.push_back(std::move(one));  // others have defaults
  }
  return made;
}

}  // namespace krigtune::result
