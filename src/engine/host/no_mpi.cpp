// Linked in place of mpi_processes.cpp in a build without MPI.
#include "core/error.h"
#include "engine/host/mpi_processes.h"

namespace krigtune::engine {

std::unique_ptr<Processes> connect_by_mpi(const Clock& /*clock*/) {
  throw EnvironmentError("started by mpirun, but this krigtune-bench was built without MPI",
                         "install an MPI and configure again with -DKRIGTUNE_MPI=ON, or start its processes with "
                         "torchrun's variables");
}

}  // namespace krigtune::engine
