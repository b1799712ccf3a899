#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trial/executor.h"

namespace krigtune::executor {

/// The nodes of the Slurm job that krigtune runs in, and what of them is free. Trials take cores and GPUs of as many
/// nodes as they need; on each node those that use GPUs take their share of its cores as well.
class Allocation {
 public:
  struct Node {
    std::string name;
    int cores = 1;
    int gpus = 0;
    int free_cores = 1;
    int free_gpus = 0;
    bool broken = false;  ///< it failed: nothing more is begun there
  };
  /// What a trial took: the same on each of its nodes.
  struct Share {
    std::vector<std::string> nodes;
    int cores = 0;
    int gpus = 0;
    int of_cores = 0;  ///< that each of these nodes has, the smallest
  };

  explicit Allocation(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}

  /// Of SLURM_JOB_NODELIST, SLURM_JOB_CPUS_PER_NODE and SLURM_GPUS_ON_NODE; `gpus_per_node` where the last is missing.
  /// Throws UserError outside an allocation.
  using Variables = std::function<std::optional<std::string>(const std::string& name)>;
  static Allocation from(const Variables& variables, int gpus_per_node);

  /// `cores_per_rank`: at least 1. Empty: not now. Throws UserError where it never can, and says why.
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
