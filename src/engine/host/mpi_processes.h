#pragma once
#include <memory>

#include "core/clock.h"
#include "engine/host/processes.h"

namespace krigtune::engine {

/// Returns the processes that mpirun (or srun --mpi) has started. Call it once in a process. Throws EnvironmentError in
/// a build without MPI. `clock` must outlive the result.
std::unique_ptr<Processes> connect_by_mpi(const Clock& clock);

}  // namespace krigtune::engine
