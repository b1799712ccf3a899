#pragma once
#include <Eigen/Core>
#include <vector>

#include "search/stagewise/stage_cells.h"

namespace krigtune::search {

// Boosted trees that learn a ranking:

/// Scores whose order follows labels: gradient-boosted trees of depth three with a pairwise logistic loss.
class RankTrees {
 public:
  /// `features` has one row per sample; larger labels are better. Deterministic.
  RankTrees(const Eigen::MatrixXd& features, const Eigen::VectorXd& labels);

  /// Larger is better; all equal while nothing was learned.
  Eigen::VectorXd scores(const Eigen::MatrixXd& features) const;

 private:
  struct Node {
    Eigen::Index feature = -1;  ///< -1: a leaf
    double threshold = 0.0;     ///< below it: left
    std::size_t left = 0;
    std::size_t right = 0;
    double value = 0.0;  ///< of a leaf
  };
  using Tree = std::vector<Node>;
  struct Slopes;
  struct Split;

  static Split best_split(const Eigen::MatrixXd& features, const Slopes& slopes, const std::vector<Eigen::Index>& rows);
  static std::size_t grow(Tree& tree, const Eigen::MatrixXd& features, const Slopes& slopes,
                          const std::vector<Eigen::Index>& rows, int depth);
  static double value_at(const Tree& tree, const Eigen::MatrixXd& features, Eigen::Index row);

  std::vector<Tree> trees_;
};

// The three tuners of DeepSpeed's autotuner (autotuning/tuner).

struct SpaceTunerOptions {
  session::StagewiseOptions stagewise;
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  ///< stream of random numbers: one per tuning space
};

/// Searches the space with the results in `answers`. Empty while a result is missing. Otherwise returns the best value
/// found, or nothing inside if no configuration ran.
std::optional<std::optional<double>> tune_space(const TuningSpace& space, const space::Space& parameters,
                                                const session::Objective& objective, const SpaceTunerOptions& options,
                                                Answers& answers);

}  // namespace krigtune::search
