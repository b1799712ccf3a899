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

/// Looks an environment variable up.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// How this process was started.
struct Launch {
  enum class Kind { kAlone, kMpi, kSockets };
  Kind kind = Kind::kAlone;
  std::string by;         ///< for people: "mpirun", "torchrun's variables", "srun"
  int rank = 0;           ///< of this process
  int size = 1;           ///< processes of the job
  Rendezvous rendezvous;  ///< of kSockets
};

/// From what mpirun, torchrun (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT) and srun put into the environment. Without
/// MASTER_ADDR the processes meet at loopback_host(), or on Slurm's first node. A job of one process is alone. Throws
/// UserError where a variable is missing or is no number.
Launch launch_from(const Environment& environment);

/// What makes launch_from see rank `rank` of `size` processes of this machine, whatever else started the one that asks:
/// variables, and without a value those that must not be there.
std::map<std::string, std::optional<std::string>> local_rank_variables(int rank, int size, int port,
                                                                       const std::string& token);

/// The other processes of the job; null when alone.
std::unique_ptr<Processes> connect(const Launch& launch, const Clock& clock);

/// "node[07-09,12],gpu3" -> "node07": the first host of a list as Slurm writes it.
std::string first_host(const std::string& slurm_node_list);

}  // namespace krigtune::engine
