#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "krigtune/core/clock.h"
#include "krigtune/runner/deepspeed/deepspeed_spec.h"
#include "krigtune/runner/deepspeed/ds_outcome.h"
#include "krigtune/space/configuration.h"

namespace krigtune {

/// A launch of the user's job that asks the engine for its model: it ends after the first forward pass.
struct DsModelRun {
  DeepSpeedSpec spec;           ///< the job, its time limits
  std::int64_t ranks = 1;       ///< all of the job
  Configuration configuration;  ///< stage and micro-batch; what it does not name stays as in the user's file
  std::filesystem::path dir;    ///< made here: what the launch was given, and what it said
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

}  // namespace krigtune
