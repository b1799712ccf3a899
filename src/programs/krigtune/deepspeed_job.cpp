#include "programs/krigtune/deepspeed_job.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/session/deepspeed_session.h"
#include "programs/krigtune/deepspeed_machine.h"
#include "programs/krigtune/deepspeed_model.h"
#include "programs/krigtune/deepspeed_tensor.h"

namespace krigtune::cli {
namespace {

constexpr const char* kHfConfig = "hf-config";
constexpr const char* kTensorParallelOption = "tensor-parallel";
constexpr const char* kExample =
    "krigtune tune --deepspeed ds_config.json -- deepspeed train.py --deepspeed_config "
    "ds_config.json";

std::filesystem::path ds_config_of(const Context& context) { return context.arguments.text(kDeepSpeedOption, ""); }

// Two names of one file would let one be searched and another be trained with.
void check_same_file(const deepspeed::DsCommand& command, const std::filesystem::path& ds_config) {
  std::error_code error;
  const std::filesystem::path named = std::filesystem::weakly_canonical(command.config, error);
  if (named == std::filesystem::weakly_canonical(ds_config, error)) return;
  throw UserError(fmt::format("--deepspeed: the command names '{}', not '{}'", command.config, ds_config.string()),
                  "name the same file in both");
}

// The job as file, command and machine say it.
struct Job {
  deepspeed::DsSessionInputs inputs;
  DsWhere where;
};

Job job_of(const Context& context) {
  Job job;
  deepspeed::DsSessionInputs& inputs = job.inputs;
  inputs.ds_config = ds_config_of(context);
  inputs.config = deepspeed::load_ds_config(inputs.ds_config);
  inputs.directory = std::filesystem::current_path();
  const std::vector<std::string>& words = context.arguments.users_command();
  if (!words.empty()) {
    inputs.command = deepspeed::read_ds_command(words);
    check_same_file(*inputs.command, inputs.ds_config);
  }
  inputs.model.hf_config = context.arguments.text(kHfConfig, "");
  if (context.arguments.flag(kHfConfig)) read_text(inputs.model.hf_config);  // a file that is named must be there
  inputs.tensor_parallel = context.arguments.flag(kTensorParallelOption) && context.arguments.operand().empty();
  job.where = machine_of_job(context, inputs.command);
  inputs.machine = job.where.machine;
  return job;
}

// `directory`: of what the job tells of its model.
deepspeed::DsSession made_session(const Context& context, Job& job, const std::filesystem::path& directory,
                                  JobLaunches launches) {
  std::vector<std::string> remarks = job.where.remarks;
  deepspeed::DsSession made = deepspeed::deepspeed_session(job.inputs);
  if (!made.num_params && job.inputs.command) {
    const std::filesystem::path hf_config = job.inputs.model.hf_config;
    job.inputs.model = model_of_job(context, job.inputs, made, directory, launches, remarks);
    job.inputs.model.hf_config = hf_config;
    made = deepspeed::deepspeed_session(job.inputs);
  }
  if (job.inputs.tensor_parallel && !splits_tensors(context, job.inputs, made, directory, launches, remarks)) {
    job.inputs.tensor_parallel = false;
    made = deepspeed::deepspeed_session(job.inputs);
  }
  made.remarks.insert(made.remarks.begin(), remarks.begin(), remarks.end());
  return made;
}

constexpr const char* kUnknownRanks = "the command does not say how many ranks it starts, nor does this machine";

// Of a session that was written for another number of ranks; where nobody says one, the session counts.
void check_ranks(const Job& job, const session::Session& session) {
  const std::optional<std::int64_t> ranks = job.where.is_guess ? std::nullopt : job.inputs.command->ranks;
  if (!ranks || *ranks == session.cluster.ranks()) return;
  throw UserError(fmt::format("{}: /cluster: {} ranks, but the command starts {}", session.file.string(),
                              session.cluster.ranks(), *ranks),
                  "mend one of them, or write another session with krigtune init --deepspeed");
}

// The session file's, run by the command.
deepspeed::DsSession session_from(Job& job, const std::filesystem::path& file) {
  Json json = load_json(file);
  if (json.is_object() && json.contains("cluster")) {
    job.inputs.machine.cluster = workload::read_cluster(json["cluster"], file.string(), "/cluster", file.parent_path());
  }
  if (job.where.is_guess) job.inputs.command->ranks = job.inputs.command->nodes = std::nullopt;
  json["runner"] = deepspeed::deepspeed_session(job.inputs).json["runner"];
  return {std::move(json), {}, {}};  // what was assumed then stands in that file
}

deepspeed::DsSession session_from(const Context& context, Job& job, const std::filesystem::path& directory,
                                  JobLaunches launches) {
  if (!job.where.missing.empty()) {
    throw UserError(kUnknownRanks, fmt::format("add {} to it, or write a session with krigtune init --deepspeed and "
                                               "mend its \"cluster\"",
                                               job.where.missing));
  }
  return made_session(context, job, directory, launches);
}

}  // namespace

void declare_deepspeed(boost::program_options::options_description& options) {
  options.add_options()(kDeepSpeedOption, typed_value_named("FILE"),
                        "your ds_config.json; the command that trains with it follows behind --");
  options.add_options()(
      kHfConfig, typed_value_named("FILE"),
      "with --deepspeed: the model's config.json of Hugging Face transformers (gpt2, llama, mistral)");
}

void declare_deepspeed_tuning(boost::program_options::options_description& options) {
  options.add_options()(kTensorParallelOption,
                        "with --deepspeed: search tensor parallelism (AutoTP) too, if one trial with it succeeds");
}

void refuse_users_command(const Context& context) {
  for (const char* option : {kHfConfig, kTensorParallelOption}) {
    if (context.arguments.flag(option)) throw UserError(fmt::format("--{} goes with --deepspeed", option), kExample);
  }
  if (context.arguments.users_command().empty()) return;
  throw UserError("a command behind -- is a DeepSpeed job's, and --deepspeed is missing", kExample);
}

std::filesystem::path model_directory(const std::filesystem::path& run_directory) {
  return (run_directory / "").parent_path().string() + ".model";
}

session::Session deepspeed_session_of(const Context& context, const std::filesystem::path& run_directory,
                                      JobLaunches launches) {
  if (context.arguments.users_command().empty()) {
    throw UserError("--deepspeed: the command that trains is missing", kExample);
  }
  Job job = job_of(context);
  const std::string& operand = context.arguments.operand();
  if (!operand.empty() && context.arguments.flag(kTensorParallelOption)) {
    throw UserError("--tensor-parallel: the session says what is searched",
                    "write \"tensor_parallel\": [1, 2] into its \"space\"");
  }
  const std::filesystem::path file = operand.empty() ? ds_config_of(context) : std::filesystem::path(operand);
  const deepspeed::DsSession made =
      operand.empty() ? session_from(context, job, model_directory(run_directory), launches) : session_from(job, file);
  const std::string source = operand.empty() ? "the session of " + file.string() : operand;
  session::Session session = session::read_session(made.json, source, std::filesystem::absolute(file).parent_path());
  session.file = file;
  check_ranks(job, session);
  for (const std::string& remark : made.remarks) context.log.progress(remark);
  for (const std::string& warning : session.warnings) context.log.warning(warning);
  return session;
}

std::string deepspeed_session_text(const Context& context, JobLaunches launches) {
  Job job = job_of(context);
  const std::filesystem::path run_directory = std::filesystem::path("runs") / ds_config_of(context).stem();
  deepspeed::DsSession made = made_session(context, job, model_directory(run_directory), launches);
  if (!job.where.missing.empty()) {
    made.remarks.insert(made.remarks.begin(), fmt::format("{}: \"cluster\" below is a guess; mend it, or add {} to it",
                                                          kUnknownRanks, job.where.missing));
  }
  const std::filesystem::path file = ds_config_of(context);
  session::read_session(made.json, "the session of " + file.string(), std::filesystem::current_path());
  std::string text = fmt::format(
      "// A session for the DeepSpeed job of {}, to be edited; every key: docs/session.md.\n", file.string());
  for (const std::string& remark : made.remarks) text += fmt::format("// {}\n", remark);
  return text + made.json.dump(2) + "\n";
}

}  // namespace krigtune::cli
