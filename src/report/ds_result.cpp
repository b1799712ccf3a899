#include "ds_result.h"

#include "krigtune/runner/deepspeed/ds_begun.h"
#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_config.h"

namespace krigtune {

std::optional<DsUserJob> ds_user_job(const Session& session) {
  const auto* spec = std::get_if<DeepSpeedSpec>(&session.runner);
  if (spec == nullptr) return std::nullopt;
  return DsUserJob{begun_ds_config(*spec), spec->ds_config.filename().string(), spec->argv, spec->arg_mappings,
                   session.cluster.ranks()};
}

namespace {

struct Flags {
  DsCommand command;
  std::vector<FlagMapping> mappings;
};

Flags flags_of(const DsUserJob& job) {
  const DsCommand command = read_ds_command(job.command);
  return {command, flag_mappings(command, job.arg_mappings)};
}

// What the trial had, where the file leaves the batch to the flags.
Configuration as_tried(const DsUserJob& job, const Flags& flags, const Configuration& configuration) {
  return at_the_flags_batch(configuration, flags.command, flags.mappings, job.config, job.ranks, job.source);
}

}  // namespace

Json ds_config_of(const DsUserJob& job, const Configuration& configuration) {
  const Configuration tried = as_tried(job, flags_of(job), configuration);
  return with_values(job.config, tried, DsUse::kResult, job.ranks, job.source);
}

std::vector<std::string> ds_command_of(const DsUserJob& job, const Configuration& configuration,
                                       const std::string& config) {
  const Flags flags = flags_of(job);
  const Configuration tried = as_tried(job, flags, configuration);
  return rewritten(flags.command, config, with_batch(job.config, tried, job.ranks, job.source), flags.mappings);
}

std::optional<std::int64_t> ds_batch_of(const DsUserJob& job, const Configuration& configuration) {
  const Flags flags = flags_of(job);
  return batch_of(configuration, flags.command, flags.mappings, job.config, job.ranks, job.source);
}

}  // namespace krigtune
