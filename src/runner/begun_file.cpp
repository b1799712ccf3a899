#include "runner/begun_file.h"

#include "core/files.h"
#include "deepspeed/job/ds_trial.h"

namespace krigtune::runner {

const std::filesystem::path* edited_file(const RunnerSpec& spec) {
  const deepspeed::DeepSpeedSpec* job = ds_job_of(spec);
  return job == nullptr ? nullptr : &job->ds_config;
}

std::filesystem::path begun_file_in(const RunnerSpec& spec, const std::filesystem::path& run_directory) {
  return edited_file(spec) == nullptr ? std::filesystem::path() : deepspeed::begun_ds_config_path(run_directory);
}

void keep_begun_file(const RunnerSpec& spec, const std::filesystem::path& run_directory) {
  const deepspeed::DeepSpeedSpec* job = ds_job_of(spec);
  const std::filesystem::path begun = begun_file_in(spec, run_directory);
  if (job == nullptr || std::filesystem::exists(begun)) return;
  write_atomically(begun, job->ds_config_text.empty() ? read_text(job->ds_config) : job->ds_config_text);
}

bool recall_begun_file(RunnerSpec& spec, const std::filesystem::path& run_directory) {
  auto* job = std::get_if<deepspeed::DeepSpeedSpec>(&spec);
  if (job == nullptr) return true;
  const std::filesystem::path begun = begun_file_in(spec, run_directory);
  std::error_code error;
  const bool is_begun = !run_directory.empty() && std::filesystem::exists(begun, error);
  const std::filesystem::path& source = is_begun ? begun : job->ds_config;
  // If neither file exists, the code that needs it reports the error.
  if (std::filesystem::exists(source, error)) job->ds_config_text = read_text(source);
  return !deepspeed::has_changed_since(*job);
}

bool begins_otherwise(const RunnerSpec& spec, const std::filesystem::path& run_directory) {
  const deepspeed::DeepSpeedSpec* job = ds_job_of(spec);
  const std::filesystem::path begun = begun_file_in(spec, run_directory);
  if (job == nullptr || job->ds_config_text.empty() || !std::filesystem::exists(begun)) return false;
  return read_text(begun) != job->ds_config_text;
}

}  // namespace krigtune::runner
