#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "engine/host/processes.h"
#include "engine/host/sockets.h"

namespace krigtune::engine {

/// Returns the value of an environment variable, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// How this process was started.
struct Launch {
  enum class Kind { kAlone, kMpi, kSockets };
  Kind kind = Kind::kAlone;
  std::string by;         ///< for people: "mpirun", "torchrun's variables", "srun"
  int rank = 0;           ///< rank of this process
  int size = 1;           ///< processes of the job
  Rendezvous rendezvous;  ///< for kSockets
};

/// Reads how the process was started from what mpirun, torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) and srun
/// put into the environment. Without MASTER_ADDR the processes meet at loopback_host(), or on the first node of Slurm's
/// list. A job of one process is alone. Throws UserError if a variable is missing or is not a number.
Launch launch_from(const Environment& environment);

/// Returns the variables with which launch_from sees rank `rank` of `size` processes on this machine, however the
/// calling process was started. A variable without a value must be unset.
std::map<std::string, std::optional<std::string>> local_rank_variables(int rank, int size, int port,
                                                                       const std::string& token);

/// Connects to the other processes of the job. Returns null if the process is alone.
std::unique_ptr<Processes> connect(const Launch& launch, const Clock& clock);

/// Returns the first host of a list in Slurm's form: "node07" for "node[07-09,12],gpu3".
std::string first_host(const std::string& slurm_node_list);

}  // namespace krigtune::engine
