#include "ds_result.h"

#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_config.h"

namespace krigtune {

std::optional<DsUserJob> ds_user_job(const Session& session) {
  if (session.runner.kind != RunnerKind::kDeepSpeed) return std::nullopt;
  const DeepSpeedSpec& spec = session.runner.deepspeed;
  return DsUserJob{load_ds_config(spec.ds_config), spec.ds_config.filename().string(), spec.argv, spec.arg_mappings,
                   session.cluster.ranks()};
}

Json ds_config_of(const DsUserJob& job, const Configuration& configuration) {
  return with_values(job.config, configuration, DsUse::kResult, job.ranks, job.source);
}

std::vector<std::string> ds_command_of(const DsUserJob& job, const Configuration& configuration,
                                       const std::filesystem::path& config) {
  const DsCommand command = read_ds_command(job.command);
  return rewritten(command, config.string(), with_batch(job.config, configuration, job.ranks, job.source),
                   flag_mappings(command, job.arg_mappings));
}

}  // namespace krigtune
