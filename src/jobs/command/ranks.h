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

/// Reads lines "host slots=4", as deepspeed and Open MPI write them, "host:4" (MPICH) or a host alone (one slot);
/// comments begin with '#'. Throws UserError with the line for anything else, and for a duplicate host.
std::vector<HostSlots> read_hostfile(const std::filesystem::path& file);

/// Returns the hosts selected by deepspeed's --include or --exclude: "host:0,1@other", with slots counted from 0; a
/// host without slots means all its slots. At least one of the two must be empty. Throws UserError for an unknown host.
std::vector<HostSlots> chosen_hosts(std::vector<HostSlots> hosts, std::string_view include, std::string_view exclude);

/// Returns the value of "key: value" or "key": value at any depth of a file that accelerate wrote, YAML or JSON,
/// without quotes. Empty if it has no such line.
std::optional<std::string> accelerate_setting(const std::string& text, std::string_view key);

/// Returns the number of GPUs that a value of CUDA_VISIBLE_DEVICES lists.
std::int64_t listed_devices(std::string_view list);

/// The environment of a job.
struct Surroundings {
  std::function<std::string(const char* name)> variable;  ///< environment variable; "" if not set
  std::filesystem::path directory;                        ///< base of the command's relative paths
  std::string hostname;                                   ///< of this node
  std::int64_t gpus = 0;                                  ///< GPUs of this node that the job would see
  std::int64_t cpus = 1;                                  ///< logical CPUs of this node
};

/// Where a job's ranks run.
struct JobRanks {
  std::optional<std::int64_t> ranks;  ///< on all nodes together
  std::optional<std::int64_t> nodes;
  bool is_elsewhere = false;  ///< at least some run on nodes other than this one
  std::string missing;        ///< if `ranks` is empty: what the command would have to state
  std::string assumption;     ///< one sentence, if the command leaves the number of its nodes open; "" if not
  bool has_this_node = true;  ///< at least some run on this node
};

/// Returns the ranks that the command states or, if it leaves them open, those that follow from its surroundings:
/// - deepspeed: --hostfile (default /job/hostfile), restricted by --include, --exclude, --num_nodes and --num_gpus;
/// without a file, this node's GPUs, or LOCAL_SIZE ranks on the CPU;
/// - torchrun: --nproc_per_node gpu, auto, cpu; PET_NPROC_PER_NODE and PET_NNODES; of --nnodes 1:4 the fewest, because
/// a trial starts no others;
/// - accelerate launch: num_processes and num_machines of --config_file or its default file; without either, this
/// node's GPUs;
/// - srun: SLURM_NTASKS, SLURM_NTASKS_PER_NODE, SLURM_NNODES of the surrounding job, otherwise one rank per node;
/// - mpirun: --hostfile, -H and similar options, otherwise the Slurm job;
/// - tune run: as torchrun;
/// - composer: -n or LOCAL_WORLD_SIZE ranks a node, otherwise this node's GPUs; --world_size or WORLD_SIZE in all;
/// - litgpt: --devices and --num_nodes, of the command or of its --config file; otherwise one rank, or this node's GPUs
/// for pretrain;
/// - colossalai run: --nproc_per_node on --num_nodes, or on the hosts of --host or --hostfile;
/// - unknown launchers: NPROC_PER_NODE and NNODES, which llamafactory-cli, swift and megatron (ms-swift) read,
/// otherwise this node's GPUs.
///
/// Variables before the command (env CUDA_VISIBLE_DEVICES=0,1 deepspeed ...) count like those of the environment.
///
/// Does not contact other nodes. Throws UserError for a hostfile or a choice of hosts that deepspeed would refuse, and
/// for nodes with different numbers of ranks.
JobRanks ranks_around(const Command& command, const Surroundings& around);

}  // namespace krigtune::jobs
