#pragma once
#include <memory>

#include "host/processes.h"
#include "krigtune/core/clock.h"

namespace krigtune {

/// The processes that mpirun (or srun --mpi) has started. Throws EnvironmentError in a build without MPI. Once in a
/// process; `clock` must outlive it.
std::unique_ptr<Processes> connect_by_mpi(const Clock& clock);

}  // namespace krigtune
