#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/command/command.h"

namespace krigtune::jobs {

// Hosts and their slots.

struct HostSlots {
  std::string host;
  std::int64_t slots = 0;
};

/// Lines "host slots=4", as deepspeed and Open MPI write them, "host:4" (MPICH) or a host alone (one slot); comments
/// begin with '#'. Throws UserError with the line for any other, and for a host named twice.
std::vector<HostSlots> read_hostfile(const std::filesystem::path& file);

/// What --include and --exclude of deepspeed leave of the hosts: "host:0,1@other", slots counted from 0; a host without
/// slots stands for all of its. One of both is empty. Throws UserError for a host that is not there.
std::vector<HostSlots> chosen_hosts(std::vector<HostSlots> hosts, std::string_view include, std::string_view exclude);

/// What a job finds around it.
struct Surroundings {
  std::function<std::string(const char* name)> variable;  ///< of the environment; "": not set
  std::filesystem::path directory;                        ///< that the command's paths are relative to
  std::string hostname;                                   ///< of this node
  std::int64_t gpus = 0;                                  ///< that the job would see on this node
  std::int64_t cpus = 1;                                  ///< logical ones of this node
};

/// Where a job's ranks run.
struct JobRanks {
  std::optional<std::int64_t> ranks;  ///< of all nodes
  std::optional<std::int64_t> nodes;
  bool is_elsewhere = false;  ///< on other nodes than this one, too or only
  std::string missing;        ///< where `ranks` is empty: what the command would have to say
};

/// What the command says, and where it leaves it to others what these say:
/// - deepspeed: --hostfile (/job/hostfile where none is named), cut by --include, --exclude, --num_nodes and
/// --num_gpus;
///   without a file this node's GPUs, or LOCAL_SIZE ranks on the CPU;
/// - torchrun: --nproc_per_node gpu, auto, cpu; PET_NPROC_PER_NODE and PET_NNODES;
/// - accelerate launch: num_processes and num_machines of --config_file or its default one; without either this node's
///   GPUs;
/// - srun: SLURM_NTASKS, SLURM_NTASKS_PER_NODE, SLURM_NNODES of the job that it is in, else one rank a node;
/// - mpirun: --hostfile and its like, else the Slurm job;
/// - what is no known launcher: this node's GPUs.
/// Asks no other node. Throws UserError for a hostfile or a choice of hosts that deepspeed would refuse, and for nodes
/// of different numbers of ranks.
JobRanks ranks_around(const Command& command, const Surroundings& around);

}  // namespace krigtune::jobs
