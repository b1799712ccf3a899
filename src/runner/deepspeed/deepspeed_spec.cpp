// The session's block of the runner "deepspeed".
#include <fmt/format.h>

#include "krigtune/core/block.h"
#include "krigtune/core/error.h"
#include "krigtune/runner/deepspeed/deepspeed_runner.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_probe.h"
#include "program.h"

namespace krigtune {
namespace {

constexpr EnumWords<DsConfigAs, 2> kConfigAsWords = {{{"path", DsConfigAs::kPath}, {"base64", DsConfigAs::kBase64}}};

// The file that the command names, as it sees it, unless the session names another.
std::filesystem::path config_path(const JsonObject& block, const DeepSpeedSpec& spec,
                                  const std::filesystem::path& base_dir) {
  const std::string own = spec.ds_config.string();
  refuse_zero_byte(block, "ds_config", own);
  try {
    const DsCommand command = read_ds_command(spec.argv);
    flag_mappings(command, spec.arg_mappings);
    const std::filesystem::path path = own.empty() ? spec.working_directory / command.config : base_dir / own;
    return std::filesystem::absolute(path).lexically_normal();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}: {}", block.source(), block.pointer("argv"), error.what()));
  }
}

void read_mappings(JsonObject& block, DeepSpeedSpec& spec) {
  if (block.find("arg_mappings") == nullptr) return;
  const JsonObject mappings = block.object("arg_mappings");
  for (const auto& [key, flag] : mappings.value().items()) {
    if (!flag.is_string() || flag.get<std::string>().empty()) {
      mappings.fail(key, "a flag of the script was expected", R"(write "--per_device_train_batch_size")");
    }
    spec.arg_mappings.emplace_back(key, flag.get<std::string>());
  }
}

Block<DeepSpeedSpec> deepspeed_block(const std::filesystem::path& base_dir) {
  constexpr double kMostSteps = 1e5;
  constexpr double kLeastMeasured = 3.0;  // a standard error of fewer is a guess
  Block<DeepSpeedSpec> block("A DeepSpeed job of yours, one launch a trial, with a ds_config.json of its own");
  block
      .key("argv", &DeepSpeedSpec::argv,
           command_words(R"(["deepspeed", "train.py", "--deepspeed_config", "ds_config.json"])"),
           "the command as you type it, with --deepspeed FILE or --deepspeed_config FILE; no shell")
      .required();
  block.custom(
      "ds_config", schema::text(),
      "your ds_config.json, relative to the session (default: the file that the command names)",
      [](JsonObject& object, DeepSpeedSpec& spec) { spec.ds_config = object.text("ds_config", ""); },
      [](const DeepSpeedSpec& spec) { return Json(spec.ds_config.string()); });
  add_surroundings(block, base_dir);
  block.key("config_as", &DeepSpeedSpec::config_as, one_of(kConfigAsWords),
            "how the command gets a trial's configuration: the path of a file, or its text in base64, for several "
            "nodes without a shared file system; no script that opens the file itself reads that");
  block.key(
      "warmup_steps", [](auto& spec) -> auto& { return spec.steps.warmup; }, integer(from_to(1, kMostSteps)),
      "optimizer steps before the measurement");
  block.key(
      "measure_steps", [](auto& spec) -> auto& { return spec.steps.measured; },
      integer(from_to(kLeastMeasured, kMostSteps)), "optimizer steps that are measured");
  block.key("timeout_s", &DeepSpeedSpec::timeout_s, time_limit(), "seconds after which a trial is ended");
  block.key("grace_s", &DeepSpeedSpec::grace_s, grace(), "seconds between SIGTERM and SIGKILL");
  block.key("no_progress_s", &DeepSpeedSpec::no_progress_s, time_limit(),
            "seconds without a sign of life after which it counts as hung");
  block.key("early_end", &DeepSpeedSpec::early_end, boolean(),
            "end a trial once its steps so far show that it is surely worse than the best (status bounded)");
  block.custom("arg_mappings", schema::map(schema::text("the flag")),
               "flags of the script that must say what the file says: key of ds_config.json, flag", read_mappings,
               [](const DeepSpeedSpec& spec) { return environment_json(spec.arg_mappings); });
  block.check(
      [base_dir](JsonObject& object, DeepSpeedSpec& spec) { spec.ds_config = config_path(object, spec, base_dir); });
  return block;
}

}  // namespace

RunnerEntry<DeepSpeedSpec> DeepSpeedSpec::entry() {
  // Each launch takes all ranks of the job, and the port that its ranks meet at.
  return {{.name = "deepspeed",
           .runs_programs = true,
           .has_our_fields = true,
           .one_at_a_time = true,
           .after_bad_result = "let the script train longer, or lower /runner/measure_steps of the session"},
          deepspeed_block,
          [](const DeepSpeedSpec& spec, const RunnerJob& job) {
            const DsCommand command = read_ds_command(spec.argv);
            return make_deepspeed_runner(
                {spec, job.field, job.cluster.ranks(), job.workload ? job.workload->model.seq_len : 0, job.stop,
                 installed_version(command, spec.working_directory, job.clock)},
                job.clock);
          }};
}

}  // namespace krigtune
