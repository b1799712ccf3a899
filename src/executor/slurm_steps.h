#pragma once
#include <memory>

#include "core/clock.h"
#include "executor/slurm.h"
#include "trial/executor.h"

namespace krigtune::executor {

/// Trials as steps of the allocation that krigtune runs in: srun on nodes that are chosen here, several side by side
/// where they need fewer than there are. Steps end with this process. Throws UserError outside an allocation. `clock`
/// must outlive it.
std::unique_ptr<trial::Executor> make_slurm_steps(const SlurmSpec& spec, const Clock& clock);

}  // namespace krigtune::executor
