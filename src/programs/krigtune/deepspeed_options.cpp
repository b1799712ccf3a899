#include "programs/krigtune/deepspeed_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "deepspeed/job/ds_command.h"
#include "engine/gpu_probe.h"
#include "jobs/recipe/recipe.h"
#include "programs/krigtune/job_options.h"
#include "programs/krigtune/session_state.h"

namespace krigtune::cli {
namespace {

constexpr const char* kHfConfig = "hf-config";
constexpr const char* kTensorParallelOption = "tensor-parallel";
constexpr const char* kExample =
    "krigtune tune --deepspeed ds_config.json -- deepspeed train.py --deepspeed_config "
    "ds_config.json";

deepspeed::JobRequest request_of(const Context& context, const std::filesystem::path& run_directory,
                                 deepspeed::JobLaunches launches) {
  const Arguments& arguments = context.arguments;
  deepspeed::JobRequest request;
  request.ds_config = ds_config_of(arguments);
  request.command = arguments.users_command();
  request.hf_config = arguments.text(kHfConfig);
  request.tensor_parallel = arguments.flag(kTensorParallelOption);
  request.find_gpus = [] {
    const engine::GpuProbe probe = engine::probe_gpus();
    return deepspeed::NodeGpus{probe.gpus, probe.name, probe.memory_bytes};
  };
  request.launches = launches;
  request.count_parameters = count_parameters_of(context);
  request.run_directory = run_directory;
  request.progress = [&log = context.log](const std::string& text) { log.progress(text); };
  return request;
}

}  // namespace

void declare_deepspeed(boost::program_options::options_description& options) {
  options.add_options()(kDeepSpeedOption, typed_value_named("FILE"), "your ds_config.json; COMMAND trains with it");
  options.add_options()(kHfConfig, typed_value_named("FILE"),
                        "with --deepspeed: the config.json of the Hugging Face model (gpt2, llama, mistral)");
}

void declare_deepspeed_tuning(boost::program_options::options_description& options) {
  options.add_options()(kTensorParallelOption,
                        "with --deepspeed: also search tensor parallelism (AutoTP), if one trial with it succeeds");
}

std::string ds_config_of(const Arguments& arguments) {
  if (arguments.flag(kDeepSpeedOption)) return arguments.text(kDeepSpeedOption, "");
  const std::vector<std::string>& command = arguments.users_command();
  constexpr std::array kOtherWays = {"recipe", "vary", "metric"};
  const bool other_way =
      std::any_of(kOtherWays.begin(), kOtherWays.end(), [&](const char* option) { return arguments.flag(option); });
  if (command.empty() || other_way) return "";
  const jobs::Recipe* recipe = jobs::recognise(command, jobs::shipped_recipes());
  return recipe != nullptr && recipe->name == "deepspeed" ? deepspeed::read_ds_command(command).config : "";
}

void refuse_deepspeed_options(const Context& context) {
  for (const char* option : {kHfConfig, kTensorParallelOption}) {
    if (context.arguments.flag(option)) throw UserError(fmt::format("--{} needs --deepspeed", option), kExample);
  }
}

deepspeed::JobSession deepspeed_session_of(const Context& context, const std::filesystem::path& run_directory,
                                           deepspeed::JobLaunches launches) {
  if (context.arguments.users_command().empty()) {
    throw UserError("--deepspeed: the command that trains is missing", kExample);
  }
  deepspeed::JobRequest request = request_of(context, run_directory, launches);
  request.session = context.arguments.operand();
  deepspeed::JobSession made = deepspeed::session_of_job(request, context.console.clock);
  if (!context.arguments.flag(kDeepSpeedOption)) {
    context.log.progress(
        fmt::format("tunes {}, which the command names, as with --deepspeed", request.ds_config.string()));
  }
  show_remarks(context, made.remarks);
  for (const std::string& warning : made.session.warnings) context.log.warning(warning);
  return made;
}

std::string deepspeed_session_text(const Context& context, deepspeed::JobLaunches launches) {
  const std::filesystem::path file = ds_config_of(context.arguments);
  deepspeed::JobRequest request = request_of(context, std::filesystem::path("runs") / file.stem(), launches);
  request.may_guess_ranks = true;
  const deepspeed::JobSession made = deepspeed::session_of_job(request, context.console.clock);
  std::string text = fmt::format(
      "// A session for the DeepSpeed job of {}, to be edited; every key: docs/session.md.\n", file.string());
  show_remarks(context, made.remarks);
  show_caveats(context, made.session);
  for (const std::string& remark : made.remarks) text += fmt::format("// {}\n", remark);
  return text + made.json.dump(2) + "\n";
}

}  // namespace krigtune::cli
