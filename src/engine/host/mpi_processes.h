#pragma once
#include <memory>

#include "core/clock.h"
#include "engine/host/processes.h"

namespace krigtune::engine {

/// The processes that mpirun (or srun --mpi) has started. Throws EnvironmentError in a build without MPI. Once in a
/// process; `clock` must outlive it.
std::unique_ptr<Processes> connect_by_mpi(const Clock& clock);

}  // namespace krigtune::engine
