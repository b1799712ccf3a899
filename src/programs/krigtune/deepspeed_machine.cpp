#include "programs/krigtune/deepspeed_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "core/json.h"
#include "core/processor.h"
#include "deepspeed/job/ds_probe.h"
#include "deepspeed/job/ds_ranks.h"
#include "engine/gpu_probe.h"

namespace krigtune::cli {
namespace {

constexpr const char* kLocal = "local";

std::string gpu_id(const engine::GpuProbe& probe) {
  return probe.gpus == 0 ? kLocal : workload::device_id_of(probe.name, Bytes{probe.memory_bytes}).value_or(kLocal);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

deepspeed::DsSurroundings surroundings_of(const engine::GpuProbe& probe) {
  deepspeed::DsSurroundings around;
  around.variable = variable;
  around.directory = std::filesystem::current_path();
  around.hostname = host_name();
  around.gpus = probe.gpus;
  around.cpus = std::max(1U, std::thread::hardware_concurrency());
  return around;
}

// DeepSpeed computes on the GPUs that it sees; without one its ranks are on the CPU, two unless somebody says.
void describe_node(const engine::GpuProbe& probe, bool is_elsewhere, deepspeed::DsMachine& machine) {
  constexpr int kCpuRanks = 2;
  machine.on_cpu = probe.gpus == 0 && !is_elsewhere;
  const std::int64_t ranks = probe.gpus > 0 ? probe.gpus : kCpuRanks;
  machine.cluster = workload::read_cluster({{"gpus_per_node", ranks}, {"gpu", gpu_id(probe)}}, "this node", "");
  if (probe.gpus == 0) return;
  if (probe.memory_bytes > 0) machine.rank_memory = Bytes{probe.memory_bytes};
  workload::ClusterSpec node;
  node.gpus_per_node = machine.cluster.gpus_per_node;
  machine.host_memory = Bytes{workload::memory_limit_per_rank({}, node).count * node.gpus_per_node};
}

std::string remark_on_other_nodes(const deepspeed::DsMachine& machine) {
  if (machine.rank_memory) {
    return fmt::format(
        "the job's nodes are taken for nodes like this one, {} a GPU; \"cluster\" and \"memory\" in a "
        "session say otherwise",
        to_string(*machine.rank_memory));
  }
  return "this node has no GPU: what those of the job hold is not known; write it as \"memory\": {\"limit_gib\": ...} "
         "in a session (krigtune init --deepspeed)";
}

// Between nodes no network is usual: a time would be a guess.
void leave_unnamed(DsWhere& where) {
  if (where.machine.cluster.gpu == kLocal) return;
  workload::ClusterSpec unnamed;
  unnamed.gpus_per_node = where.machine.cluster.gpus_per_node;
  where.machine.cluster = unnamed;
  where.remarks.emplace_back(
      "time is not predicted: the network between the nodes is not known; write \"gpu\" and \"network\" in "
      "\"cluster\" of a session, as h100-80gb and ib-ndr-400");
}

}  // namespace

DsWhere machine_of_job(const Context& context, std::optional<deepspeed::DsCommand>& command) {
  const bool on_cpu = variable("DS_ACCELERATOR") == "cpu";
  const engine::GpuProbe probe = on_cpu ? engine::GpuProbe{} : engine::probe_gpus();
  const deepspeed::DsSurroundings around = surroundings_of(probe);
  DsWhere where;
  if (!command) {
    describe_node(probe, false, where.machine);
    return where;
  }
  const deepspeed::DsRanks found = deepspeed::ranks_around(*command, around);
  command->ranks = found.ranks;
  command->nodes = found.nodes;
  where.missing = found.missing;
  where.is_guess = command->stages.empty();
  if (where.is_guess && found.ranks) {
    where.remarks.push_back(
        fmt::format("the command's launcher is not known: its ranks are taken for the {} GPUs of "
                    "this node; \"cluster\" in a session says otherwise",
                    *found.ranks));
  }
  describe_node(probe, found.is_elsewhere && !on_cpu, where.machine);
  if (found.is_elsewhere && !on_cpu) where.remarks.push_back(remark_on_other_nodes(where.machine));
  if (found.nodes.value_or(1) > 1) leave_unnamed(where);
  where.machine.version = deepspeed::installed_version(*command, around.directory, context.console.clock);
  return where;
}

}  // namespace krigtune::cli
