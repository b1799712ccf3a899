#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace krigtune::trial {
template <class Spec>
struct RunnerEntry;
}  // namespace krigtune::trial

namespace krigtune::deepspeed {

/// Steps of a trial of a DeepSpeed job. The first ones are not measured (stage 3 records the order of parameters until
/// the third step, and allocators grow).
struct DsSteps {
  std::int64_t warmup = 5;
  std::int64_t measured = 10;
  std::int64_t due() const { return warmup + measured; }
};

/// How the command receives a trial's configuration. A script that opens the file itself cannot read base64; ranks on
/// other nodes cannot read a local file without a shared file system.
enum class DsConfigAs { kPath, kBase64 };

/// A user's DeepSpeed job, launched once per trial.
struct DeepSpeedSpec {
  static trial::RunnerEntry<DeepSpeedSpec> entry();

  std::vector<std::string> argv;                                 ///< the user's command, launcher first; never a shell
  std::filesystem::path ds_config;                               ///< absolute: the user's own ds_config.json
  std::string ds_config_text;                                    ///< its contents when the session began, if known
  std::filesystem::path working_directory;                       ///< absolute
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours
  DsConfigAs config_as = DsConfigAs::kPath;
  DsSteps steps;
  double timeout_s = 3600.0;
  double grace_s = 10.0;  ///< between SIGTERM, which launchers pass on to other nodes, and SIGKILL
  /// a trial without signs of life for this long has hung; DeepSpeed may be building an extension.
  double no_progress_s = 600.0;
  bool early_end = true;  ///< a trial that is certainly worse than the best so far is ended early
  std::vector<std::pair<std::string, std::string>> arg_mappings;  ///< key of ds_config.json, flag of the script
};

}  // namespace krigtune::deepspeed
