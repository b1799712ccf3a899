#include "executor/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/text.h"
#include "executor/slurm_text.h"

namespace krigtune::executor {

Allocation Allocation::from(const Variables& variables, int gpus_per_node) {
  const std::optional<std::string> list = variables("SLURM_JOB_NODELIST");
  if (!list || !variables("SLURM_JOB_ID")) {
    throw UserError("executor slurm, mode steps: krigtune does not run inside a Slurm allocation (no SLURM_JOB_ID)",
                    "start it with sbatch or salloc, or use \"mode\": \"submit\"");
  }
  const std::vector<int> cores = expand_counts(variables("SLURM_JOB_CPUS_PER_NODE").value_or("1"));
  int gpus = gpus_per_node;
  if (const std::optional<std::string> said = variables("SLURM_GPUS_ON_NODE")) {
    std::from_chars(said->data(), said->data() + said->size(), gpus);
  }
  std::vector<Node> nodes;
  for (const std::string& name : expand_hosts(*list)) {
    const int node_cores = cores.empty() ? 1 : cores[std::min(nodes.size(), cores.size() - 1)];
    nodes.push_back({name, node_cores, gpus, node_cores, gpus, false});
  }
  return Allocation(std::move(nodes));
}

// A rank has its cores. With GPUs, a trial gets the same fraction of a node's cores as of its GPUs, so that trials
// beside it get theirs.
int Allocation::cores_of(const Node& node, const trial::TrialNeeds& needs, int cores_per_rank) const {
  const int count = std::max(needs.nodes, 1);
  const int ranks_a_node = std::max(1, (needs.ranks + count - 1) / count);
  int cores = ranks_a_node * std::max(cores_per_rank, 1);
  if (needs.gpus_per_node > 0 && node.gpus > 0) cores = std::max(cores, node.cores * needs.gpus_per_node / node.gpus);
  return std::min(cores, node.cores);
}

std::optional<Allocation::Share> Allocation::choose(const trial::TrialNeeds& needs, int cores_per_rank) const {
  const auto count = static_cast<std::size_t>(std::max(needs.nodes, 1));
  std::vector<const Node*> able;
  std::vector<const Node*> free;
  for (const Node& node : nodes_) {
    if (node.broken || node.gpus < needs.gpus_per_node) continue;
    able.push_back(&node);
    if (node.free_gpus >= needs.gpus_per_node && node.free_cores >= cores_of(node, needs, cores_per_rank))
      free.push_back(&node);
  }
  if (able.size() < count) {
    throw UserError(
        fmt::format("the trial needs {} node{} with {} GPUs each; {} of the {} nodes of the allocation have as many",
                    count, count == 1 ? "" : "s", needs.gpus_per_node, able.size(), nodes_.size()),
        "ask Slurm for a larger allocation, or use fewer ranks");
  }
  if (free.size() < count) return std::nullopt;
  // Use the fullest nodes first, so that whole nodes stay free for trials that need them.
  std::stable_sort(free.begin(), free.end(), [](const Node* a, const Node* b) {
    return std::pair(a->free_gpus, a->free_cores) < std::pair(b->free_gpus, b->free_cores);
  });
  free.resize(count);
  Share share;
  share.gpus = needs.gpus_per_node;
  share.cores = share.of_cores = free.front()->cores;
  for (const Node* node : free) {
    share.nodes.push_back(node->name);
    share.cores = std::min(share.cores, cores_of(*node, needs, cores_per_rank));
    share.of_cores = std::min(share.of_cores, node->cores);
  }
  return share;
}

void Allocation::take(const Share& share) {
  for (Node& node : nodes_) {
    if (!is_one_of(node.name, share.nodes)) continue;
    node.free_cores -= share.cores;
    node.free_gpus -= share.gpus;
  }
}

void Allocation::give_back(const Share& share) {
  for (Node& node : nodes_) {
    if (!is_one_of(node.name, share.nodes)) continue;
    node.free_cores += share.cores;
    node.free_gpus += share.gpus;
  }
}

void Allocation::note_broken(const std::string& node) {
  for (Node& other : nodes_) other.broken = other.broken || other.name == node;
}

}  // namespace krigtune::executor
