// gridsearch takes the configurations in order, and random in an order drawn once. model_based takes the first
// configuration, then one drawn, and from then on the one that boosted trees (space_tuner.h), fitted to all tried ones,
// rank highest; one time in five it takes a drawn one instead. All end after a maximum number of trials, or when a
// number of trials in a row, counting the best one, brought no gain.
//
// Differences from DeepSpeed (0.19):
// - its grid takes its order from a set of strings, which differs in every process; here it is the order of the session
// - its model_based marks its first two points as visited before it runs them, so it measures neither of them and never
//   searches a space of two; here both are measured
// - its random exploration draws a configuration and discards it; here it is used
// - its model has constants as features but no text values; here each parameter is a feature, text by its list position
// - there a failure without "error" in its output ends the tuner; here it is a failure like any other
#include "search/stagewise/space_tuner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
namespace krigtune::search {

// A small version of XGBoost's objective rank:pairwise (Chen and Guestrin 2016; Burges 2010 for the loss). Every pair
// of samples with different labels costs
//
//   log(1 + exp(s_j - s_i))      where i is the better one
//
// where p = 1 / (1 + exp(s_i - s_j)). Its slopes by s_i and s_j are -p and p, its curvature by either is p (1 - p). A
// tree is grown greedily on the sums G of slopes and H of curvatures of a node's rows:
//
//   gain of a split = ((G_l^2 / (H_l + lambda) + G_r^2 / (H_r + lambda) - G^2 / (H + lambda)) / 2 - gamma
//   value of a leaf = -eta G / (H + lambda)
//
// with the settings of DeepSpeed's cost model (autotuning/tuner/cost_model.py): depth 3, eta 0.3, lambda 1, gamma 1e-4,
// least curvature of a leaf 1, 10 rounds. XGBoost draws pairs, while here all pairs count. Curvatures are doubled, as
// in XGBoost.

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
  Eigen::Index feature = -1;  ///< -1: no split gains
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

namespace {

constexpr double kExploration = 0.2;
constexpr std::uint64_t kStreamsPerSpace = std::uint64_t{1} << 32;

/// The results of a tuner's trials so far.
struct Tally {
  std::optional<double> best;
  std::size_t best_at = 0;

  void tell(const Tried& tried, std::size_t at, const session::Objective& objective) {
    if (!tried.ran || (best && !objective.better(tried.value, *best))) return;
    best = tried.value;
    best_at = at;
  }
  bool ends(std::size_t at, const session::StagewiseOptions& options) const {
    return at >= static_cast<std::size_t>(options.tuner_trials) ||
           at >= best_at + static_cast<std::size_t>(options.early_stopping);
  }
};

std::optional<std::optional<double>> best_in_order(const TuningSpace& space, const std::vector<std::size_t>& order,
                                                   const session::Objective& objective,
                                                   const session::StagewiseOptions& options, Answers& answers) {
  Tally progress;
  bool is_open = false;
  // Whatever the pending results are, a better one can only lengthen the search, so everything within its present
  // length is asked too.
  for (std::size_t at = 0; at < order.size() && !progress.ends(at, options); ++at) {
    const std::optional<Tried> tried = answers(*space.configurations[order[at]]);
    if (tried) progress.tell(*tried, at, objective);
    is_open = is_open || !tried;
  }
  if (is_open) return std::nullopt;
  return progress.best;
}

double feature_of(const space::Parameter& parameter, const space::Configuration& configuration) {
  const space::Value* value = configuration.find(parameter.name);
  if (value == nullptr) return -1.0;
  return parameter.categorical ? parameter.index_of(*value) : space::as_number(*value);
}

Eigen::MatrixXd features_of(const TuningSpace& space, const space::Space& parameters) {
  const std::vector<space::Parameter>& list = parameters.parameters();
  Eigen::MatrixXd features(static_cast<Eigen::Index>(space.configurations.size()),
                           static_cast<Eigen::Index>(list.size()));
  for (Eigen::Index row = 0; row < features.rows(); ++row) {
    for (Eigen::Index column = 0; column < features.cols(); ++column) {
      features(row, column) =
          feature_of(list[static_cast<std::size_t>(column)], *space.configurations[static_cast<std::size_t>(row)]);
    }
  }
  return features;
}

class ModelBased {
 public:
  ModelBased(const TuningSpace& space, const space::Space& parameters, const session::Objective& objective,
             const SpaceTunerOptions& options)
      : space_(space),
        objective_(objective),
        options_(options),
        features_(features_of(space, parameters)),
        visited_(space.configurations.size(), false) {}

  std::optional<std::optional<double>> tune(Answers& answers) {
    Tally progress;
    bool is_open = false;
    const std::size_t count = space_.configurations.size();
    for (std::size_t at = 0; at < count && !progress.ends(at, options_.stagewise); ++at) {
      if (at >= 2 && is_open) return std::nullopt;
      const std::size_t index = pick(at);
      visited_[index] = true;
      const std::optional<Tried> tried = answers(*space_.configurations[index]);
      if (tried) {
        progress.tell(*tried, at, objective_);
        tried_.emplace_back(index, *tried);
      }
      is_open = is_open || !tried;
    }
    if (is_open) return std::nullopt;
    return progress.best;
  }

 private:
  std::size_t pick(std::size_t at) const {
    if (at == 0) return 0;
    Rng rng(options_.seed, options_.stream * kStreamsPerSpace + at);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < visited_.size(); ++i) {
      if (!visited_[i]) left.push_back(i);
    }
    if (at == 1 || rng.uniform() < kExploration) return left[rng.below(left.size())];
    const Eigen::VectorXd scores = fitted().scores(features_);
    return *std::max_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
      return scores(static_cast<Eigen::Index>(a)) < scores(static_cast<Eigen::Index>(b));
    });
  }

  // Only the order of labels matters, and failures are the worst.
  RankTrees fitted() const {
    double worst = 0.0;
    for (const auto& [index, tried] : tried_) {
      const double label = objective_.maximize ? tried.value : -tried.value;
      if (tried.ran) worst = std::min(worst, label - 1.0);
    }
    Eigen::MatrixXd rows(static_cast<Eigen::Index>(tried_.size()), features_.cols());
    Eigen::VectorXd labels(rows.rows());
    for (Eigen::Index row = 0; row < rows.rows(); ++row) {
      const auto& [index, tried] = tried_[static_cast<std::size_t>(row)];
      rows.row(row) = features_.row(static_cast<Eigen::Index>(index));
      labels(row) = !tried.ran ? worst : objective_.maximize ? tried.value : -tried.value;
    }
    return {rows, labels};
  }

  const TuningSpace& space_;
  const session::Objective& objective_;
  const SpaceTunerOptions& options_;
  Eigen::MatrixXd features_;
  std::vector<bool> visited_;
  std::vector<std::pair<std::size_t, Tried>> tried_;
};

}  // namespace

std::optional<std::optional<double>> tune_space(const TuningSpace& space, const space::Space& parameters,
                                                const session::Objective& objective, const SpaceTunerOptions& options,
                                                Answers& answers) {
  if (options.stagewise.tuner == session::SpaceTuner::kModelBased) {
    return ModelBased(space, parameters, objective, options).tune(answers);
  }
  std::vector<std::size_t> order(space.configurations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.stagewise.tuner == session::SpaceTuner::kRandom) {
    Rng rng(options.seed, options.stream * kStreamsPerSpace);
    rng.shuffle(order);
  }
  return best_in_order(space, order, objective, options.stagewise, answers);
}

}  // namespace krigtune::search
