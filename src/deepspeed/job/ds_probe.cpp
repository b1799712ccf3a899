#include "deepspeed/job/ds_probe.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_trial.h"
#include "jobs/installed/interpreter.h"
#include "trial/process.h"
#include "trial/program.h"
#include "trial/trial_files.h"

namespace krigtune::deepspeed {
namespace {

constexpr double kProbeTimeoutS = 10.0;  // usually it takes 0.1 s; on a slow network file system more

// importlib.metadata reads the names of folders. The working directory is removed from the path because the job does
// not import from it: for a script, Python puts the script's own directory there.
constexpr const char* kQuestion =
    "import sys; sys.path = [p for p in sys.path if p]; from importlib.metadata import version; "
    "print(version('deepspeed'))";

}  // namespace

std::optional<DsVersion> installed_version(const DsCommand& command, const std::filesystem::path& directory,
                                           const Clock& clock) {
  trial::ProcessSpec spec;
  spec.argv = jobs::interpreter_of(command, directory);
  if (spec.argv.empty()) return std::nullopt;
  spec.environment = jobs::variables_before(command).value();
  if (find_program(spec.argv.front(), directory, trial::search_path(spec.environment)).empty()) return std::nullopt;
  spec.argv.insert(spec.argv.end(), {"-c", kQuestion});
  const trial::ScratchDirectory scratch;
  spec.stdout_file = scratch / "stdout";
  spec.stderr_file = scratch / "stderr";
  spec.timeout_s = kProbeTimeoutS;
  spec.working_directory = directory;
  const trial::ProcessResult result = trial::run_process(spec, clock);
  if (!result.start_error.empty() || result.exit_code != 0) return std::nullopt;
  return version_of(trial::read_head(spec.stdout_file, trial::kMostJobFileBytes));
}

// With "model_info": {"profile": true} in its section "autotuning", DeepSpeed's engine counts the parameters when it is
// created, measures the memory of the first forward pass, writes both to model_info_path and ends with exit code 0
// (runtime/engine.py, _autotuning_exit and forward; at every ZeRO stage).
namespace {

std::filesystem::path answer_of(const DsTrialFiles& files) { return files.dir / "model_info.json"; }

trial::ProcessSpec prepare(const DsModelRun& run, const DsTrialFiles& files) {
  const std::string source = run.spec.ds_config.string();
  const Json user = load_ds_config(run.spec.ds_config);
  const DsCommand command = read_ds_command(run.spec.argv);
  const DsRanks ranks(run.ranks, command.sequence_ranks);
  Json config = with_measurement(with_values(user, run.configuration, DsUse::kTrial, ranks, source), files, {});
  config.erase("csv_monitor");
  config["autotuning"] = {
      {"enabled", true}, {"model_info_path", answer_of(files).string()}, {"model_info", {{"profile", true}}}};
  write_atomically(files.ds_config(), ds_config_text(config));
  trial::ProcessSpec process;
  process.argv = rewritten(command, files.ds_config().string(), with_batch(user, run.configuration, ranks, source),
                           flag_mappings(command, run.spec.arg_mappings));
  process.working_directory = run.spec.working_directory;
  process.environment = run.spec.environment;
  process.environment.emplace_back("PYTHONUNBUFFERED", "1");  // lines are signs of life
  process.timeout_s = run.spec.timeout_s;
  process.grace_s = run.spec.grace_s;
  process.no_progress_s = run.spec.no_progress_s;
  trial::write_inputs(trial::TrialFiles(files.dir), space::to_json(run.configuration), process);
  return process;
}

std::optional<DsCountedModel> read_answer(const std::filesystem::path& file) {
  const Json json = json_or_discarded(trial::read_tail(file, 1 << 16));
  if (!json.is_object()) return std::nullopt;
  const Json params = json.value("num_params", Json());
  const Json activation = json.value("activation_mem_per_gpu", Json());
  if (!params.is_number() || !(params.get<double>() >= 1.0 && params.get<double>() < 1e15)) return std::nullopt;
  DsCountedModel model{std::llround(params.get<double>()), 0.0};
  if (activation.is_number() && activation.get<double>() > 0.0) model.activation_bytes = activation.get<double>();
  return model;
}

DsVerdict verdict_of(const trial::ProcessResult& process, const trial::ProcessSpec& spec,
                     const std::optional<std::int64_t>& kills) {
  if (!process.start_error.empty()) return {DsClass::kLauncher, process.start_error, std::nullopt};
  DsEnd end;
  end.exit_code = process.exit_code;
  end.timed_out = process.timed_out;
  end.hung = process.hung;
  end.wall_s = process.wall_s;
  end.standard_output = trial::read_tail(spec.stdout_file, trial::kMostJobFileBytes);
  end.standard_error = trial::read_tail(spec.stderr_file, trial::kMostJobFileBytes);
  end.oom_kills = kills;
  DsVerdict verdict = judge(end);
  if (verdict.what == DsClass::kTooShort) {
    verdict.sentence =
        "the job succeeded and reported no model: neither a pipeline engine nor a script without a step does";
  }
  return verdict;
}

}  // namespace

DsModelAnswer run_for_model(const DsModelRun& run, const Clock& clock) {
  trial::refuse_missing_program(run.spec.argv.front(), run.spec.working_directory, run.spec.environment);
  make_writable_directory(run.dir);
  const DsTrialFiles files(run.dir);
  std::error_code ignored;
  std::filesystem::remove(answer_of(files), ignored);  // from an earlier launch
  const trial::ProcessSpec spec = prepare(run, files);
  const std::optional<std::int64_t> before = trial::oom_kills_now();
  const trial::ProcessResult process = trial::run_process(spec, clock);
  const std::optional<std::int64_t> after = trial::oom_kills_now();
  trial::write_exit(trial::TrialFiles(files.dir), process);
  DsModelAnswer answer;
  answer.wall_s = process.wall_s;
  answer.model = read_answer(answer_of(files));
  if (answer.model) return answer;  // regardless of the exit code, because ranks may abort at exit
  const auto kills = before && after ? std::optional(*after - *before) : std::nullopt;
  answer.verdict = verdict_of(process, spec, kills);
  return answer;
}

}  // namespace krigtune::deepspeed
