#include <fmt/format.h>

#include <array>

#include "core/files.h"
#include "core/text.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/result/ds_result.h"
#include "jobs/result/training_command.h"
#include "result/writers.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"
#include "trial/program.h"

namespace krigtune::result {

// ds_config_optimal.json is the recommended configuration in DeepSpeed's format. It is complete, so that a training
// started with it runs what was measured; if the user has a file, it is based on that. space/well_known.h defines the
// names of keys and the defaults, and deepspeed/job/ds_config.h how they are written.

namespace {

// These keys are always written, with the value that the plan trained with, because DeepSpeed's own default may differ
// (overlap_comm is on by default at stage 3).
constexpr std::array<const char*, 7> kAlways = {
    space::kZeroStage,       space::kMicroBatch, space::kAccumulation,       space::kReduceBucket,
    space::kAllgatherBucket, space::kOverlap,    space::kContiguousGradients};

space::Configuration completed(space::Configuration configuration) {
  for (const char* name : kAlways) {
    if (!configuration.has(name)) configuration.set(name, space::find_well_known(name)->default_value);
  }
  return configuration;
}

// The defaults of torch.optim.AdamW and SGD, and DeepSpeed's of Lion. They do not affect time or memory, but a training
// needs some. Null for an optimizer that a script has to create.
Json optimizer(const workload::Workload& workload, const space::Configuration& configuration) {
  const space::Value* chosen = configuration.find("lr");
  const Json lr = chosen != nullptr ? space::to_json(*chosen) : Json(1e-3);
  if (workload.optimizer == workload::OptimizerKind::kSgd) return {{"type", "SGD"}, {"params", {{"lr", lr}}}};
  if (workload.optimizer == workload::OptimizerKind::kLion) return {{"type", "Lion"}, {"params", {{"lr", lr}}}};
  if (workload.optimizer != workload::OptimizerKind::kAdamW) return nullptr;
  return {{"type", "AdamW"},
          {"params", {{"lr", lr}, {"betas", Json::array({0.9, 0.999})}, {"eps", 1e-8}, {"weight_decay", 0.01}}}};
}

}  // namespace

std::optional<std::string> ds_config_optimal(const report::RunView& run) {
  if (!run.answer.best) return std::nullopt;
  if (const auto job = deepspeed::ds_user_job(run.session))
    return deepspeed::ds_config_text(deepspeed::ds_config_of(*job, run.answer.best->configuration));
  if (!run.session.workload) return std::nullopt;
  const workload::Workload& workload = *run.session.workload;
  const space::Configuration& configuration = run.answer.best->configuration;
  const Json first_key = {{"train_batch_size", 1}};  // reserves the first place; the value is set with the others
  // DeepSpeed counts the ranks of one pipeline stage.
  const std::int64_t stages = configuration.integer(space::kPipelineParallel, 1);
  const std::int64_t all = run.session.cluster.ranks();
  const std::int64_t ranks = space::data_parallel_ranks(all, {{space::kPipelineParallel, stages}}).value_or(all);
  Json json = deepspeed::with_values(first_key, completed(configuration), deepspeed::DsUse::kResult, ranks,
                                     "ds_config_optimal.json");
  json["zero_optimization"]["reduce_scatter"] = true;
  if (Json created = optimizer(workload, configuration); !created.is_null()) json["optimizer"] = std::move(created);
  // ZeRO knows the optimizers that it can shard, and accepts others only if the user confirms.
  if (workload.optimizer == workload::OptimizerKind::kSgd) json["zero_allow_untested_optimizer"] = true;
  json["fp16"] = {{"enabled", workload.precision == workload::Precision::kFp16}};
  json["bf16"] = {{"enabled", workload.precision == workload::Precision::kBf16}};
  return deepspeed::ds_config_text(json);
}

std::optional<std::string> ds_config_beside_command(const report::RunView& run) {
  return runner::recipe_of(run.session.runner).empty() ? ds_config_optimal(run) : std::nullopt;
}

// config_optimal.json and cmd_optimal.txt: the command that runs the recommended configuration like its trial, and the
// configuration in the form that this command reads.
namespace {

constexpr const char* kResultFile = "result_optimal.json";  // written by the user's program when the command is run

std::filesystem::path in_directory(const report::RunView& run, const char* name) {
  return std::filesystem::absolute(run.directory / name).lexically_normal();
}

// The shell line starts the command like a trial: in its working directory and with its additions to the environment.
std::string in_shell(const std::filesystem::path& working_directory, const trial::Environment& environment,
                     const std::vector<std::string>& argv) {
  std::vector<std::string> words;
  if (!environment.empty()) words.emplace_back("env");
  for (const auto& [name, value] : environment) words.push_back(fmt::format("{}={}", name, value));
  words.insert(words.end(), argv.begin(), argv.end());
  return fmt::format("{} && {}", shell_line({"cd", working_directory.string()}), shell_line(words));
}

// The files of the command are placed beside it.
jobs::TrainingCommand optimal_command(const report::RunView& run) {
  return jobs::training_command(run.session, run.answer.best->configuration,
                                {.directory = in_directory(run, "").parent_path(),
                                 .config = in_directory(run, kConfigFile),
                                 .result = in_directory(run, kResultFile),
                                 .trial = run.answer.best->trial});
}

std::string line_of(const runner::CommandSpec& command, const report::RunView& run) {
  const jobs::TrainingCommand optimal = optimal_command(run);
  return in_shell(command.working_directory, optimal.environment, optimal.argv);
}

std::string line_of(const deepspeed::DeepSpeedSpec& spec, const report::RunView& run) {
  const deepspeed::DsUserJob job = deepspeed::ds_user_job(run.session).value();
  const std::string config =
      spec.config_as == deepspeed::DsConfigAs::kBase64
          ? deepspeed::ds_config_base64(deepspeed::ds_config_of(job, run.answer.best->configuration))
          : in_directory(run, kDsConfigOptimal).string();
  return in_shell(spec.working_directory, spec.environment,
                  deepspeed::ds_command_of(job, run.answer.best->configuration, config));
}

// Returns the command that a trial starts; empty if it starts none.
std::optional<std::string> command_line(const report::RunView& run) {
  const runner::RunnerSpec& runner = run.session.runner;
  const std::vector<std::string> bench =
      runner::bench_command(runner, run.bench, in_directory(run, kConfigFile), run.session.cluster.ranks());
  if (!bench.empty()) return shell_line(bench);
  if (const runner::CommandSpec* command = runner::command_of(runner)) return line_of(*command, run);
  if (const deepspeed::DeepSpeedSpec* job = runner::ds_job_of(runner)) return line_of(*job, run);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> config_optimal(const report::RunView& run) {
  if (!run.answer.best) return std::nullopt;
  const session::Session& session = run.session;
  const std::optional<Json> json = runner::config_of(session.runner, run.answer.best->configuration, session.workload,
                                                     session.cluster, session.memory);
  return json ? std::optional(json->dump(2) + "\n") : std::nullopt;
}

std::vector<std::string> write_optimal_job_files(const report::RunView& run) {
  std::vector<std::string> names;
  if (runner::command_of(run.session.runner) == nullptr || !run.answer.best) return names;
  for (const auto& [name, text] : optimal_command(run).files) {
    write_atomically(run.directory / name, text);
    names.push_back(name);
  }
  return names;
}

std::optional<std::string> cmd_optimal(const report::RunView& run) {
  const std::optional<std::string> command = run.answer.best ? command_line(run) : std::nullopt;
  if (!command) return std::nullopt;
  std::string text = *command + "\n";
  // DeepSpeed's parser does not accept comments, but a shell does.
  for (const std::string& line : deepspeed::batch_advice_lines(run)) text += "# " + line + "\n";
  return text;
}

}  // namespace krigtune::result
