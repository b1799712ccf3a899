#include <gtest/gtest.h>

#include <cmath>

#include "search/fixtures.h"
#include "search/model/objective_model.h"

namespace krigtune::belief_weights_test {

/// Has no values: only its position matters.
class Silent final : public forecast::Prior {
 public:
  Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const override {
    return Eigen::VectorXd::Zero(static_cast<Eigen::Index>(configurations.size()));
  }
  Coefficient coefficient() const override { return {}; }
};

std::shared_ptr<const forecast::Prior> silent() { return std::make_shared<const Silent>(); }

surrogate::Points points_with(const Eigen::MatrixXd& features) {
  surrogate::Points points = surrogate::Points::zero(features.rows(), 1, 0, features.cols());
  points.features = features;
  return points;
}

// Two priors, the first with two alternatives. The columns are prior 0, prior 1, and the alternatives of 0.
TEST(BeliefWeights, FollowBayesRule) {
  search::BeliefWeights weights({{silent(), {{silent(), 0.3}, {silent(), 0.1}}}, {silent()}});
  Eigen::MatrixXd features(2, 4);
  features << 1.0, 10.0, 2.0, 3.0,  //
      4.0, 20.0, 5.0, 8.0;
  const surrogate::Points points = points_with(features);
  EXPECT_EQ(weights.mixed(points).features, features.leftCols(2)) << "before anything is learned";

  // Each hypothesis is identified by the value that the first prior has at the first point under it.
  const auto log_evidence = [](const surrogate::Observations& latent) {
    EXPECT_DOUBLE_EQ(latent.points.features(0, 1), 10.0);
    return std::log(latent.points.features(0, 0) == 2.0 ? 4.0 : 1.0);
  };
  weights.learn({points, Eigen::Vector2d(0.0, 0.0), Eigen::Vector2d(0.0, 0.0)}, log_evidence);
  const Eigen::Vector3d posterior = Eigen::Vector3d(0.6, 0.3 * 4.0, 0.1) / (0.6 + 0.3 * 4.0 + 0.1);
  const surrogate::Points mixed = weights.mixed(points);
  EXPECT_NEAR(mixed.features(0, 0), posterior.dot(Eigen::Vector3d(1.0, 2.0, 3.0)), 1e-12);
  EXPECT_NEAR(mixed.features(1, 0), posterior.dot(Eigen::Vector3d(4.0, 5.0, 8.0)), 1e-12);
  EXPECT_EQ(mixed.features.col(1), features.col(1));
}

// 8 GPUs behind PCIe, so that links decide.
session::Session slow_links() {
  return session::read_session(parse_json(R"({
      "workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50304, "seq_len": 2048},
                   "precision": "bf16", "framework": "deepspeed", "train_batch_size": 256},
      "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-80gb", "interconnect": "pcie4"}, "baseline": null,
      "space": {"zero_stage": [0, 1, 2, 3], "tensor_parallel": [1, 2, 4, 8],
                "micro_batch": {"min": 1, "max": 32, "scale": "log2"}},
      "runner": {"kind": "command", "argv": ["true", "{config}"]}})",
                                          "s"),
                               "s", ".");
}

// Largest error of the predictions after six trials on a machine whose links take four times as long as believed.
double error_on_slow_links(const Problem& problem, std::vector<forecast::Belief> beliefs,
                           const forecast::Prior& truth) {
  const search::CandidateList& list = *problem.candidates.to_score({}, 0);
  const auto count = static_cast<Eigen::Index>(list.size());
  std::vector<Eigen::Index> asked;
  for (Eigen::Index k = 0; k < 6; ++k) asked.push_back(k * (count - 1) / 5);
  const Eigen::VectorXd values = truth.log_values(list.configurations);
  surrogate::Points points = list.points;
  if (beliefs.front().alternatives.empty()) points.features.conservativeResize(Eigen::NoChange, 1);
  const surrogate::Points known = points.rows(asked);
  search::ObjectiveModel model(beliefs, true);
  Rng rng(1, 0);
  model.fit({known, values(asked), Eigen::VectorXd::Zero(known.size())}, rng, std::nullopt);
  return (model.predict(points).mean - values).cwiseAbs().mean();
}

TEST(BeliefWeights, TellWrongLinksByAFewTrials) {
  const Problem problem(slow_links(), Problem::WithPhysics{});
  const forecast::Belief& physics = problem.candidates.beliefs().front();
  ASSERT_EQ(physics.alternatives.size(), 4U);
  for (const std::size_t h : {0U, 3U}) {  // a quarter, four times
    const forecast::Prior& truth = *physics.alternatives[h].prior;
    const double doubting = error_on_slow_links(problem, {physics}, truth);
    const double certain = error_on_slow_links(problem, {{physics.prior}}, truth);
    EXPECT_LE(doubting, 0.5 * certain) << h;
  }
}

TEST(BeliefWeights, OneRankHasNoLinksToDoubt) {
  session::Session session = slow_links();
  session.cluster.gpus_per_node = 1;
  const auto prior = forecast::make_physics_prior(session, session::MemoryFilter(session));
  ASSERT_TRUE(prior);
  EXPECT_TRUE(prior->alternatives().empty());
}

}  // namespace krigtune::belief_weights_test
