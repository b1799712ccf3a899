// What XGBoost's objective rank:pairwise does (Chen and Guestrin 2016; Burges 2010 for the loss), in small: every pair
// of samples with different labels costs
//
//   log(1 + exp(s_j - s_i))      where i is the better one
//
// with p = 1 / (1 + exp(s_i - s_j)): its slopes by s_i and s_j are -p and p, its curvature by either p (1 - p). A tree
// is grown greedily on the sums G of slopes and H of curvatures of a node's rows:
//
//   gain of a split = ((G_l^2 / (H_l + lambda) + G_r^2 / (H_r + lambda) - G^2 / (H + lambda)) / 2 - gamma
//   value of a leaf = -eta G / (H + lambda)
//
// with the settings of DeepSpeed's cost model (autotuning/tuner/cost_model.py): depth 3, eta 0.3, lambda 1, gamma 1e-4,
// least curvature of a leaf 1, 10 rounds. XGBoost draws the pairs, here all count; like XGBoost, curvatures are
// doubled.
#include "stagewise/rank_trees.h"

#include <algorithm>
#include <cmath>

namespace krigtune {
namespace {

constexpr int kRounds = 10;
constexpr int kDepth = 3;
constexpr double kEta = 0.3;
constexpr double kLambda = 1.0;
constexpr double kGamma = 1e-4;
constexpr double kLeastCurvature = 1.0;

double strength(double slope, double curvature) { return slope * slope / (curvature + kLambda); }

}  // namespace

struct RankTrees::Slopes {
  Eigen::VectorXd first, second;

  Slopes(const Eigen::VectorXd& labels, const Eigen::VectorXd& scores)
      : first(Eigen::VectorXd::Zero(labels.size())), second(Eigen::VectorXd::Zero(labels.size())) {
    for (Eigen::Index i = 0; i < labels.size(); ++i) {
      for (Eigen::Index j = 0; j < labels.size(); ++j) {
        if (!(labels(i) > labels(j))) continue;
        const double p = 1.0 / (1.0 + std::exp(scores(i) - scores(j)));
        first(i) -= p;
        first(j) += p;
        second(i) += 2.0 * p * (1.0 - p);
        second(j) += 2.0 * p * (1.0 - p);
      }
    }
  }
};

struct RankTrees::Split {
  Eigen::Index feature = -1;  ///< -1: none gains
  double threshold = 0.0;
  double gain = 0.0;
};

RankTrees::Split RankTrees::best_split(const Eigen::MatrixXd& features, const Slopes& slopes,
                                       const std::vector<Eigen::Index>& rows) {
  double slope = 0.0;
  double curvature = 0.0;
  for (const Eigen::Index row : rows) {
    slope += slopes.first(row);
    curvature += slopes.second(row);
  }
  Split best;
  for (Eigen::Index feature = 0; feature < features.cols(); ++feature) {
    std::vector<Eigen::Index> order = rows;
    std::stable_sort(order.begin(), order.end(),
                     [&](Eigen::Index a, Eigen::Index b) { return features(a, feature) < features(b, feature); });
    double slope_left = 0.0;
    double curvature_left = 0.0;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      slope_left += slopes.first(order[i]);
      curvature_left += slopes.second(order[i]);
      const double below = features(order[i], feature);
      const double above = features(order[i + 1], feature);
      if (below == above) continue;
      if (std::min(curvature_left, curvature - curvature_left) < kLeastCurvature) continue;
      const double gained =
          0.5 * (strength(slope_left, curvature_left) + strength(slope - slope_left, curvature - curvature_left) -
                 strength(slope, curvature)) -
          kGamma;
      if (gained > best.gain) best = {feature, 0.5 * (below + above), gained};
    }
  }
  return best;
}

std::size_t RankTrees::grow(Tree& tree, const Eigen::MatrixXd& features, const Slopes& slopes,
                            const std::vector<Eigen::Index>& rows, int depth) {
  const std::size_t index = tree.size();
  tree.emplace_back();
  const Split split = depth < kDepth ? best_split(features, slopes, rows) : Split{};
  if (split.feature < 0) {
    double slope = 0.0;
    double curvature = 0.0;
    for (const Eigen::Index row : rows) {
      slope += slopes.first(row);
      curvature += slopes.second(row);
    }
    tree[index].value = -kEta * slope / (curvature + kLambda);
    return index;
  }
  std::vector<Eigen::Index> below;
  std::vector<Eigen::Index> above;
  for (const Eigen::Index row : rows) {
    (features(row, split.feature) < split.threshold ? below : above).push_back(row);
  }
  tree[index].feature = split.feature;
  tree[index].threshold = split.threshold;
  const std::size_t left = grow(tree, features, slopes, below, depth + 1);
  const std::size_t right = grow(tree, features, slopes, above, depth + 1);
  tree[index].left = left;
  tree[index].right = right;
  return index;
}

double RankTrees::value_at(const Tree& tree, const Eigen::MatrixXd& features, Eigen::Index row) {
  const Node* node = &tree.front();
  while (node->feature >= 0) node = &tree[features(row, node->feature) < node->threshold ? node->left : node->right];
  return node->value;
}

RankTrees::RankTrees(const Eigen::MatrixXd& features, const Eigen::VectorXd& labels) {
  std::vector<Eigen::Index> rows(static_cast<std::size_t>(labels.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Eigen::Index>(i);
  Eigen::VectorXd learned = Eigen::VectorXd::Zero(labels.size());
  for (int round = 0; round < kRounds && !rows.empty(); ++round) {
    const Slopes slopes(labels, learned);
    Tree tree;
    grow(tree, features, slopes, rows, 0);
    for (Eigen::Index row = 0; row < learned.size(); ++row) learned(row) += value_at(tree, features, row);
    trees_.push_back(std::move(tree));
  }
}

Eigen::VectorXd RankTrees::scores(const Eigen::MatrixXd& features) const {
  Eigen::VectorXd result = Eigen::VectorXd::Zero(features.rows());
  for (const Tree& tree : trees_) {
    for (Eigen::Index row = 0; row < features.rows(); ++row) result(row) += value_at(tree, features, row);
  }
  return result;
}

}  // namespace krigtune
