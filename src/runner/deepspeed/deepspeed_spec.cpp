// The session's block of the runner "deepspeed".
#include <fmt/format.h>

#include "krigtune/core/error.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "program.h"
#include "registry.h"

namespace krigtune {
namespace {

void read_job_argv(JsonObject& block, DeepSpeedSpec& spec) {
  block.require("argv");
  spec.argv = block.texts("argv");
  if (spec.argv.empty() || spec.argv.front().empty()) {
    block.fail("argv", "names no program",
               R"(write ["deepspeed", "train.py", "--deepspeed_config", "ds_config.json"])");
  }
  for (std::size_t i = 0; i < spec.argv.size(); ++i) {
    refuse_zero_byte(block, fmt::format("argv/{}", i), spec.argv[i]);
  }
}

// The file that the command names, as it sees it, unless the session names another.
std::filesystem::path read_config_path(JsonObject& block, const DeepSpeedSpec& spec,
                                       const std::filesystem::path& base_dir) {
  const std::string own = block.text("ds_config", "");
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

constexpr const char* kPath = "path";
constexpr const char* kBase64 = "base64";

DsConfigAs read_config_as(JsonObject& block) {
  const std::string word = block.text("config_as", kPath);
  if (word == kPath) return DsConfigAs::kPath;
  if (word == kBase64) return DsConfigAs::kBase64;
  block.fail("config_as", fmt::format("'{}' is no way to give a configuration", word),
             fmt::format("known: {}, {}", kPath, kBase64));
}

std::int64_t read_count(JsonObject& block, const char* key, std::int64_t fallback, std::int64_t least) {
  constexpr std::int64_t kMost = 100'000;
  const std::int64_t count = block.integer(key, fallback);
  if (count < least || count > kMost) {
    block.fail(key, fmt::format("{} is no such number of steps", count), fmt::format("give {} to {}", least, kMost));
  }
  return count;
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

void read_deepspeed(JsonObject& block, const std::filesystem::path& base_dir, RunnerSpec& runner) {
  constexpr std::int64_t kLeastMeasured = 3;  // a standard error of fewer is a guess
  DeepSpeedSpec& spec = runner.deepspeed;
  read_job_argv(block, spec);
  spec.working_directory = read_working_directory(block, base_dir);
  spec.environment = read_environment(block);
  read_mappings(block, spec);
  spec.ds_config = read_config_path(block, spec, base_dir);
  spec.config_as = read_config_as(block);
  spec.steps.warmup = read_count(block, "warmup_steps", spec.steps.warmup, 1);
  spec.steps.measured = read_count(block, "measure_steps", spec.steps.measured, kLeastMeasured);
  spec.timeout_s = read_seconds(block, "timeout_s", spec.timeout_s, false);
  spec.grace_s = read_seconds(block, "grace_s", spec.grace_s, true);
  spec.no_progress_s = read_seconds(block, "no_progress_s", spec.no_progress_s, false);
  spec.early_end = block.boolean("early_end", spec.early_end);
}

void write_deepspeed(const RunnerSpec& runner, Json& block) {
  const DeepSpeedSpec& spec = runner.deepspeed;
  block["argv"] = spec.argv;
  block["ds_config"] = spec.ds_config.string();
  block["cwd"] = spec.working_directory.string();
  block["env"] = environment_json(spec.environment);
  block["config_as"] = spec.config_as == DsConfigAs::kBase64 ? kBase64 : kPath;
  block["warmup_steps"] = spec.steps.warmup;
  block["measure_steps"] = spec.steps.measured;
  block["timeout_s"] = json_number(spec.timeout_s);
  block["grace_s"] = json_number(spec.grace_s);
  block["no_progress_s"] = json_number(spec.no_progress_s);
  block["early_end"] = spec.early_end;
  block["arg_mappings"] = environment_json(spec.arg_mappings);
}

}  // namespace

RunnerEntry deepspeed_runner_entry() { return {RunnerKind::kDeepSpeed, "deepspeed", read_deepspeed, write_deepspeed}; }

}  // namespace krigtune
