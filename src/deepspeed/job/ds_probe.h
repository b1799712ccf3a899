#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "deepspeed/job/deepspeed_spec.h"
#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_outcome.h"
#include "deepspeed/job/ds_versions.h"
#include "space/configuration.h"

namespace krigtune::deepspeed {

// Which DeepSpeed a job would import, without importing it: that takes seconds, and touches the devices.

/// The interpreter (with its own options) that a script's first lines name: "#!/venv/bin/python",
/// "#!/usr/bin/env python3", or what pip writes for a path that is too long for a first line. Empty: no Python.
std::vector<std::string> interpreter_in(std::string_view script);

/// The interpreter that the command's innermost launcher runs under, as it would be found from `directory`. Empty: not
/// known, as in a container or behind a wrapper other than `env`.
std::vector<std::string> interpreter_of(const DsCommand& command, const std::filesystem::path& directory);

/// The version that this interpreter's packages say. Empty: no interpreter, no DeepSpeed, or no answer within 10 s.
std::optional<DsVersion> installed_version(const DsCommand& command, const std::filesystem::path& directory,
                                           const Clock& clock);

/// A launch of the user's job that asks the engine for its model: it ends after the first forward pass.
struct DsModelRun {
  DeepSpeedSpec spec;                  ///< the job, its time limits
  std::int64_t ranks = 1;              ///< all of the job
  space::Configuration configuration;  ///< stage and micro-batch; what it does not name stays as in the user's file
  std::filesystem::path dir;           ///< made here: what the launch was given, and what it said
};

/// What the engine counts and measures on rank 0.
struct DsCountedModel {
  std::int64_t num_params = 0;    ///< elements, of all ranks
  double activation_bytes = 0.0;  ///< memory that the first forward pass left allocated; on CPU ranks resident memory
};

struct DsModelAnswer {
  std::optional<DsCountedModel> model;  ///< empty: the launch failed
  DsVerdict verdict;                    ///< then: why
  double wall_s = 0.0;
};

/// Launches it in a process group of its own, with the time limits of a trial; judged as a trial is. Throws
/// EnvironmentError where the program is not there, UserError as with_values() does. `clock`: for the call only.
DsModelAnswer run_for_model(const DsModelRun& run, const Clock& clock);

}  // namespace krigtune::deepspeed
