#include "deepspeed_job.h"

#include <fmt/format.h>

#include "doctor_checks.h"
#include "krigtune/core/error.h"
#include "krigtune/runner/deepspeed/ds_config.h"
#include "krigtune/runner/deepspeed/ds_probe.h"
#include "krigtune/tuner/deepspeed_session.h"

namespace krigtune {
namespace {

constexpr const char* kExample =
    "krigtune tune --deepspeed ds_config.json -- deepspeed train.py --deepspeed_config "
    "ds_config.json";

std::filesystem::path ds_config_of(const Context& context) { return context.arguments.text(kDeepSpeedOption, ""); }

// Two names of one file would let one be searched and another be trained with.
void check_same_file(const DsCommand& command, const std::filesystem::path& ds_config) {
  std::error_code error;
  const std::filesystem::path named = std::filesystem::weakly_canonical(command.config, error);
  if (named == std::filesystem::weakly_canonical(ds_config, error)) return;
  throw UserError(fmt::format("--deepspeed: the command names '{}', not '{}'", command.config, ds_config.string()),
                  "name the same file in both");
}

// DeepSpeed computes on the GPUs that it sees; without one its trials run on two CPU ranks, unless the command says.
DsMachine this_machine() {
  constexpr int kCpuRanks = 2;
  const int gpus = count_gpus();
  DsMachine machine;
  machine.on_cpu = gpus == 0;
  machine.cluster.gpus_per_node = machine.on_cpu ? kCpuRanks : gpus;
  if (!machine.on_cpu) {
    const Bytes share = memory_limit_per_rank({}, machine.cluster);
    machine.host_memory = Bytes{share.count * machine.cluster.gpus_per_node};
  }
  return machine;
}

// Of a session that was written for another number of ranks; where the command says none, the session counts.
void check_ranks(const Context& context, const Session& session) {
  const std::optional<std::int64_t> ranks = read_ds_command(context.arguments.users_command()).ranks;
  if (!ranks || *ranks == session.cluster.ranks()) return;
  throw UserError(fmt::format("{}: /cluster: {} ranks, but the command starts {}", session.file.string(),
                              session.cluster.ranks(), *ranks),
                  "mend one of them, or write another session with krigtune init --deepspeed");
}

DsSession made_session(const Context& context) {
  DsSessionInputs inputs;
  inputs.ds_config = ds_config_of(context);
  inputs.config = load_ds_config(inputs.ds_config);
  inputs.directory = std::filesystem::current_path();
  inputs.machine = this_machine();
  const std::vector<std::string>& words = context.arguments.users_command();
  if (!words.empty()) {
    inputs.command = read_ds_command(words);
    check_same_file(*inputs.command, inputs.ds_config);
    inputs.machine.version = installed_version(*inputs.command, inputs.directory, context.console.clock);
  }
  return deepspeed_session(inputs);
}

}  // namespace

void declare_deepspeed(boost::program_options::options_description& options) {
  options.add_options()(kDeepSpeedOption, typed_value_named("FILE"),
                        "your ds_config.json; the command that trains with it follows behind --");
}

void refuse_users_command(const Context& context) {
  if (context.arguments.users_command().empty()) return;
  throw UserError("a command behind -- is a DeepSpeed job's, and --deepspeed is missing", kExample);
}

Session deepspeed_session_of(const Context& context) {
  if (context.arguments.users_command().empty()) {
    throw UserError("--deepspeed: the command that trains is missing", kExample);
  }
  DsSession made = made_session(context);
  const std::string& operand = context.arguments.operand();
  const std::filesystem::path file = operand.empty() ? ds_config_of(context) : std::filesystem::path(operand);
  if (!operand.empty()) {
    Json json = load_json(file);
    json["runner"] = made.json["runner"];
    made.json = std::move(json);
    made.remarks.clear();  // what was assumed then stands in that file
  }
  const std::string source = operand.empty() ? "the session of " + file.string() : operand;
  Session session = read_session(made.json, source, std::filesystem::absolute(file).parent_path());
  session.file = file;
  check_ranks(context, session);
  for (const std::string& remark : made.remarks) context.log.progress(remark);
  for (const std::string& warning : session.warnings) context.log.warning(warning);
  return session;
}

std::string deepspeed_session_text(const Context& context) {
  const DsSession made = made_session(context);
  const std::filesystem::path file = ds_config_of(context);
  read_session(made.json, "the session of " + file.string(), std::filesystem::current_path());
  std::string text = fmt::format(
      "// A session for the DeepSpeed job of {}, to be edited; every key: docs/session.md.\n", file.string());
  for (const std::string& remark : made.remarks) text += fmt::format("// {}\n", remark);
  return text + made.json.dump(2) + "\n";
}

}  // namespace krigtune
