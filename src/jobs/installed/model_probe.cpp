#include "jobs/installed/model_probe.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "jobs/installed/built_model.h"
#include "jobs/installed/interpreter.h"
#include "workload/model.h"

namespace krigtune::jobs {
namespace {

std::string config_in(const Json& workload) {
  const Json* config =
      workload.contains("model") && workload["model"].contains("hf_config") ? &workload["model"]["hf_config"] : nullptr;
  return config != nullptr && config->is_string() ? config->get<std::string>() : "";
}

std::string version_of_builder(const BuiltModel& built) {
  for (const auto& [package, version] : built.packages) {
    if (package == "transformers") return package + " " + version;
  }
  return "transformers";
}

// Gives the workload's model what the built one has more, or fewer, than was read. Returns how the two compare.
std::string correct(const workload::ModelSpec& read, const BuiltModel& built, Json& workload) {
  const std::int64_t more = built.parameters - workload::parameter_count(read);
  if (more == 0) return "; krigtune reads as many from its config.json";
  workload::ModelSpec corrected = read;
  const std::int64_t too_many = correct_parameters(corrected, built.parameters);
  workload["model"]["others"] = {{"of_block", corrected.others.of_block}, {"of_model", corrected.others.of_model}};
  const std::string said =
      fmt::format("; krigtune reads {} {} from its config.json", std::abs(more), more > 0 ? "fewer" : "more");
  if (too_many == 0) return said + ", and plans those that were counted";
  workload["not_modelled"].push_back(
      fmt::format("{} fewer than its sizes say: less memory", counted(too_many, "parameter")));
  return said + fmt::format(", and plans {} too many", too_many);
}

}  // namespace

std::string count_parameters(const ProbedCommand& job, const Clock& clock, Json& workload) {
  const std::string config = config_in(workload);
  if (config.empty()) return "";
  const std::filesystem::path python = python_of(job.command, job.directory, job.before);
  if (python.empty()) return "";
  try {
    const auto built = build_model_if_installed({config, {}, python.string(), "", kProbeTimeoutS}, clock);
    if (!built) return "";
    workload::Caveats ignored;
    const workload::ModelSpec read = workload::read_model({{"hf_config", config}}, config, "", job.directory, &ignored);
    return fmt::format("the model has {}, as {} of {} builds it{}", counted(built->parameters, "parameter"),
                       version_of_builder(*built), python.string(), correct(read, *built, workload));
  } catch (const UserError& error) {
    return fmt::format("the model is planned as krigtune reads its config.json: {}", error.what());
  }
}

}  // namespace krigtune::jobs
