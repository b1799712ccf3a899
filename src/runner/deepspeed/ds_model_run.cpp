// DeepSpeed's engine with "model_info": {"profile": true} in its section "autotuning" counts the parameters as it is
// made, measures the memory of the first forward pass, writes both to model_info_path and ends with exit code 0
// (runtime/engine.py, _autotuning_exit and forward; any ZeRO stage).
#include "krigtune/runner/deepspeed/ds_model_run.h"

#include <cmath>

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_config.h"
#include "krigtune/runner/deepspeed/ds_trial.h"
#include "process.h"
#include "program.h"
#include "trial_files.h"

namespace krigtune {
namespace {

std::filesystem::path answer_of(const DsTrialFiles& files) { return files.dir / "model_info.json"; }

ProcessSpec prepare(const DsModelRun& run, const DsTrialFiles& files) {
  const std::string source = run.spec.ds_config.string();
  const Json user = load_ds_config(run.spec.ds_config);
  Json config = with_measurement(with_values(user, run.configuration, DsUse::kTrial, run.ranks, source), files, {});
  config.erase("csv_monitor");
  config["autotuning"] = {
      {"enabled", true}, {"model_info_path", answer_of(files).string()}, {"model_info", {{"profile", true}}}};
  write_atomically(files.ds_config(), ds_config_text(config));
  const DsCommand command = read_ds_command(run.spec.argv);
  ProcessSpec process;
  process.argv = rewritten(command, files.ds_config().string(), with_batch(user, run.configuration, run.ranks, source),
                           flag_mappings(command, run.spec.arg_mappings));
  process.working_directory = run.spec.working_directory;
  process.environment = run.spec.environment;
  process.environment.emplace_back("PYTHONUNBUFFERED", "1");  // lines are signs of life
  process.timeout_s = run.spec.timeout_s;
  process.grace_s = run.spec.grace_s;
  process.no_progress_s = run.spec.no_progress_s;
  write_inputs(TrialFiles(files.dir), to_json(run.configuration), process);
  return process;
}

std::optional<DsCountedModel> read_answer(const std::filesystem::path& file) {
  const Json json = Json::parse(read_tail(file, 1 << 16), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const Json params = json.value("num_params", Json());
  const Json activation = json.value("activation_mem_per_gpu", Json());
  if (!params.is_number() || !(params.get<double>() >= 1.0 && params.get<double>() < 1e15)) return std::nullopt;
  DsCountedModel model{std::llround(params.get<double>()), 0.0};
  if (activation.is_number() && activation.get<double>() > 0.0) model.activation_bytes = activation.get<double>();
  return model;
}

DsVerdict verdict_of(const ProcessResult& process, const ProcessSpec& spec, const std::optional<std::int64_t>& kills) {
  if (!process.start_error.empty()) return {DsClass::kLauncher, process.start_error, std::nullopt};
  DsEnd end;
  end.exit_code = process.exit_code;
  end.timed_out = process.timed_out;
  end.hung = process.hung;
  end.wall_s = process.wall_s;
  end.standard_output = read_tail(spec.stdout_file, kMostJobFileBytes);
  end.standard_error = read_tail(spec.stderr_file, kMostJobFileBytes);
  end.oom_kills = kills;
  DsVerdict verdict = judge(end);
  if (verdict.what == DsClass::kTooShort) {
    verdict.sentence =
        "the job ended well and told no model: a pipeline's engine does not, nor a script without a step";
  }
  return verdict;
}

}  // namespace

DsModelAnswer run_for_model(const DsModelRun& run, const Clock& clock) {
  refuse_missing_program(run.spec.argv.front(), run.spec.working_directory, run.spec.environment);
  make_writable_directory(run.dir);
  const DsTrialFiles files(run.dir);
  std::error_code ignored;
  std::filesystem::remove(answer_of(files), ignored);  // of an earlier launch
  const ProcessSpec spec = prepare(run, files);
  const std::optional<std::int64_t> before = oom_kills_now();
  const ProcessResult process = run_process(spec, clock);
  const std::optional<std::int64_t> after = oom_kills_now();
  write_exit(TrialFiles(files.dir), process);
  DsModelAnswer answer;
  answer.wall_s = process.wall_s;
  answer.model = read_answer(answer_of(files));
  if (answer.model) return answer;  // whatever the exit code is: ranks may abort at exit
  const auto kills = before && after ? std::optional(*after - *before) : std::nullopt;
  answer.verdict = verdict_of(process, spec, kills);
  return answer;
}

}  // namespace krigtune
