#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trial/executor.h"

namespace krigtune::executor {

/// The nodes of the Slurm job in which krigtune runs, with their free cores and GPUs. A trial takes cores and GPUs on
/// as many nodes as it needs. On each node, a trial with GPUs also takes a proportional share of the cores.
class Allocation {
 public:
  struct Node {
    std::string name;
    int cores = 1;
    int gpus = 0;
    int free_cores = 1;
    int free_gpus = 0;
    bool broken = false;  ///< it failed: no further trial begins there
  };
  /// What a trial took; the same amount on each of its nodes.
  struct Share {
    std::vector<std::string> nodes;
    int cores = 0;
    int gpus = 0;
    int of_cores = 0;  ///< how many cores the smallest of these nodes has
  };

  explicit Allocation(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}

  /// Reads SLURM_JOB_NODELIST, SLURM_JOB_CPUS_PER_NODE and SLURM_GPUS_ON_NODE. `gpus_per_node` is used if the last one
  /// is missing. Throws UserError outside an allocation.
  using Variables = std::function<std::optional<std::string>(const std::string& name)>;
  static Allocation from(const Variables& variables, int gpus_per_node);

  /// Chooses nodes for a trial. `cores_per_rank`: at least 1. Empty if there is no room now. Throws UserError with the
  /// reason if there never can be.
  std::optional<Share> choose(const trial::TrialNeeds& needs, int cores_per_rank) const;
  void take(const Share& share);
  void give_back(const Share& share);
  void note_broken(const std::string& node);
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  int cores_of(const Node& node, const trial::TrialNeeds& needs, int cores_per_rank) const;

  std::vector<Node> nodes_;
};

}  // namespace krigtune::executor
