#pragma once
#include <memory>

#include "core/clock.h"
#include "executor/slurm.h"
#include "trial/executor.h"

namespace krigtune::executor {

/// Runs trials as steps of the allocation in which krigtune runs: srun on nodes that are chosen here, several side by
/// side if they fit. Steps end with this process. Throws UserError outside an allocation. `clock` must outlive the
/// executor.
std::unique_ptr<trial::Executor> make_slurm_steps(const SlurmSpec& spec, const Clock& clock);

}  // namespace krigtune::executor
