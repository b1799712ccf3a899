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

// Finds the DeepSpeed that a job would import, without importing it, because that takes seconds and touches the
// devices.

/// Returns the version from the packages of the command's interpreter (jobs/installed/interpreter.h). Empty without an
/// interpreter, DeepSpeed, or an answer within 10 s.
std::optional<DsVersion> installed_version(const DsCommand& command, const std::filesystem::path& directory,
                                           const Clock& clock);

/// A launch of the user's job that asks the engine about its model; it ends after the first forward pass.
struct DsModelRun {
  DeepSpeedSpec spec;                  ///< the job, its time limits
  std::int64_t ranks = 1;              ///< all of the job
  space::Configuration configuration;  ///< stage and micro-batch; the user's file determines everything else
  std::filesystem::path dir;           ///< created here: input and output of the launch
};

/// The engine's counts and measurements on rank 0.
struct DsCountedModel {
  std::int64_t num_params = 0;    ///< elements, over all ranks
  double activation_bytes = 0.0;  ///< memory still allocated after the first forward pass; on CPU ranks resident memory
};

struct DsModelAnswer {
  std::optional<DsCountedModel> model;  ///< empty: the launch failed
  DsVerdict verdict;                    ///< the reason, if the launch failed
  double wall_s = 0.0;
};

/// Launches the job in its own process group, with the time limits of a trial, and judges it like a trial. Throws
/// EnvironmentError if the program does not exist, and UserError like with_values(). `clock` is used only during the
/// call.
DsModelAnswer run_for_model(const DsModelRun& run, const Clock& clock);

}  // namespace krigtune::deepspeed
