#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/result/ds_result.h"
#include "result/export.h"
#include "result/writers.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

// Explains why a parameter is not a key of the file.
std::string why_no_key(const std::string& name, const space::WellKnownParameter* known) {
  if (name == space::kCheckpointing) {
    return fmt::format("the script turns it on, ds_config.json only says how ({} with the Hugging Face Trainer)",
                       known->deepspeed.trainer_flag);
  }
  if (name == space::kCheckpointLayers) return "the model's code says which layers are recomputed";
  if (name == space::kPipelineParallel) return "the script cuts the model into stages (PipelineModule)";
  if (name == space::kSequenceParallel) return "the model's code splits the sequence";
  return known != nullptr ? "no key of DeepSpeed's says it"
                          : "it is not a key of DeepSpeed's; the command in cmd_optimal.txt says it";
}

std::vector<Omission> ds_omissions(const report::RunView& run) {
  const std::optional<deepspeed::DsUserJob> job = deepspeed::ds_user_job(run.session);
  std::vector<deepspeed::DsTunable> tunables;
  if (job) tunables = deepspeed::tunables_of(job->config, job->source);
  std::vector<Omission> omissions;
  for (const auto& [name, value] : run.answer.best->configuration) {
    const space::WellKnownParameter* known = space::find_well_known(name);
    const bool has_key = known != nullptr && *known->deepspeed.key != '\0';
    if (has_key || deepspeed::find_tunable(tunables, name) != nullptr ||
        asks_for_nothing(run.answer.best->configuration, name))
      continue;
    omissions.push_back({kDsConfigFile, name, value, why_no_key(name, known)});
  }
  return omissions;
}

}  // namespace

Json exported_ds_config(const report::RunView& run) {
  const std::optional<std::string> text = ds_config_optimal(run);
  if (text) return parse_json(*text, kDsConfigFile);
  throw UserError("the session has no workload, so there is no DeepSpeed configuration of it",
                  "name its model under /workload, or export as csv");
}

Export export_deepspeed(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  return {{{kDsConfigFile, deepspeed::ds_config_text(exported_ds_config(run)),
            "give it to the script as --deepspeed_config"}},
          ds_omissions(run)};
}

}  // namespace krigtune::result
