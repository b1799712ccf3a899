// Collectives of the tensor group beside products, and tokens that travel to experts beside another micro-batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/cost_fixtures.h"
#include "cost/time/expert_overlap.h"
#include "cost/time/step_cost.h"
#include "cost/time/tensor_overlap.h"
#include "krigtune/rng.h"
#include "plan/build_plan.h"
#include "plan/op_traits.h"

namespace krigtune::overlap_test {
namespace {

// Runs both in small steps of time: the product goes on more slowly while the collective lasts.
double end_in_small_steps_s(double collective_s, double product_s, double slowdown) {
  constexpr double kStep = 1e-4;
  double now_s = 0.0;
  for (double left_s = product_s; left_s > 0.0; now_s += kStep)
    left_s -= kStep / (now_s < collective_s ? slowdown : 1.0);
  return std::max(now_s, collective_s);
}

TEST(Overlap, ACollectiveIsExposedAsFarAsItOutlastsOrSlowsTheProduct) {
  Rng rng(20261129, 7);
  for (int i = 0; i < 200; ++i) {
    const double collective_s = 2.0 * rng.uniform();
    const double product_s = 2.0 * rng.uniform();
    const double slowdown = 1.0 + rng.uniform();
    EXPECT_NEAR(cost::exposed_beside_s(collective_s, product_s, slowdown),
                end_in_small_steps_s(collective_s, product_s, slowdown) - product_s, 1e-3)
        << collective_s << " s beside " << product_s << " s, " << slowdown << " times as long";
  }
}

TEST(Overlap, ByPiecesOneIsAlone) {
  EXPECT_DOUBLE_EQ(cost::exposed_by_pieces_s(1.0, 10.0, 1.0, 4.0), 0.25);
  EXPECT_DOUBLE_EQ(cost::exposed_by_pieces_s(1.0, 0.25, 1.0, 4.0), 0.75);
  EXPECT_DOUBLE_EQ(cost::exposed_by_pieces_s(1.0, 0.0, 1.0, 4.0), 1.0);
}

workload::Workload dense(workload::Framework framework = workload::Framework::kMegatron) {
  workload::Workload workload;
  workload.model = {.layers = 2, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn_hidden = 14336, .vocab = 32000};
  workload.model.seq_len = 4096;
  workload.model.gated_mlp = true;
  workload.model.positions = workload::Positions::kRotary;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  return workload;
}

space::Configuration split_over(std::int64_t ranks, bool sequence_parallel = true) {
  return {{"zero_stage", std::int64_t{0}},
          {"micro_batch", std::int64_t{1}},
          {"tensor_parallel", ranks},
          {"sequence_parallel", sequence_parallel}};
}

// The plan of one rank of one group, which is that of krigtune's own engine.
plan::StepPlan plan_of(bool sequence_parallel) {
  workload::ClusterSpec cluster = gpus(1);
  cluster.gpus_per_node = 2;
  return plan::build_plan(dense(workload::Framework::kKrigtune), cluster, split_over(2, sequence_parallel));
}

bool is_in_layer(const plan::Operation& operation) {
  return plan::is_collective(operation.kind) && operation.group == schedule::Group::kTensor && operation.layer >= 0;
}

struct Pairs {
  int collectives = 0, independent = 0, by_pieces = 0;
};
Pairs pairs_of(const plan::StepPlan& plan, schedule::Phase phase, bool by_pieces) {
  const std::vector<cost::Beside> beside = cost::products_beside_collectives(plan, by_pieces);
  Pairs pairs;
  std::set<plan::OpId> taken;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (!is_in_layer(plan.operations[i]) || plan.operations[i].phase != phase) continue;
    ++pairs.collectives;
    if (beside[i].product < 0) continue;
    ++(beside[i].by_pieces ? pairs.by_pieces : pairs.independent);
    EXPECT_TRUE(taken.insert(beside[i].product).second) << "a product beside two collectives";
  }
  return pairs;
}

// Of each layer: attention's and the MLP's input gathered, their outputs reduced; backward the other way round, and
// both inputs gathered once more.
TEST(Overlap, OfTenCollectivesOfALayerFourRunBesideIndependentProducts) {
  const plan::StepPlan plan = plan_of(true);
  const Pairs forward = pairs_of(plan, schedule::Phase::kForward, false);
  EXPECT_EQ(forward.collectives, 2 * 4);
  EXPECT_EQ(forward.independent, 0);
  const Pairs backward = pairs_of(plan, schedule::Phase::kBackward, false);
  EXPECT_EQ(backward.collectives, 2 * 6);
  EXPECT_EQ(backward.independent, 2 * 4);
  EXPECT_EQ(backward.by_pieces, 0);
}

TEST(Overlap, AllOthersRunByPieces) {
  const plan::StepPlan plan = plan_of(true);
  EXPECT_EQ(pairs_of(plan, schedule::Phase::kForward, true).by_pieces, 2 * 4);
  const Pairs backward = pairs_of(plan, schedule::Phase::kBackward, true);
  EXPECT_EQ(backward.independent, 2 * 4);
  EXPECT_EQ(backward.by_pieces, 2 * 2);
}

TEST(Overlap, WithoutSequenceParallelismTheSumsOfBackwardRunBesideWeightGradients) {
  const plan::StepPlan plan = plan_of(false);
  const std::vector<cost::Beside> beside = cost::products_beside_collectives(plan, true);
  int sums = 0;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (!is_in_layer(plan.operations[i])) continue;
    const bool is_backward = plan.operations[i].phase == schedule::Phase::kBackward;
    ASSERT_EQ(beside[i].product >= 0, is_backward);
    if (!is_backward) continue;
    ++sums;
    EXPECT_EQ(plan.operations[static_cast<std::size_t>(beside[i].product)].kind,
              schedule::OpKind::kLinearBackwardWeight);
  }
  EXPECT_EQ(sums, 2 * 2);
}

// Products of 500 TFLOP/s.
cost::Machine machine() {
  cost::Machine machine = links_of(200e9, 40e9);
  machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = 5e14;
  return machine;
}

cost::StepCost cost_of(const workload::Workload& workload, const space::Configuration& configuration,
                       std::int64_t nodes = 1) {
  return cost::StepCostModel(workload, gpus(nodes), machine())(configuration);
}

TEST(Overlap, MegatronExposesWhatNoProductHides) {
  const cost::StepCost hidden = cost_of(dense(), split_over(8));
  const cost::StepCost exposed = cost_of(dense(workload::Framework::kNanotron), split_over(8));
  EXPECT_DOUBLE_EQ(hidden.tensor_wire_bytes, exposed.tensor_wire_bytes);
  EXPECT_NEAR(hidden.tensor_comm_s / exposed.tensor_comm_s, 1.0, 0.02) << "as long, but for nanotron's own latency";
  EXPECT_LT(hidden.exposed_comm_s, exposed.exposed_comm_s);
}

TEST(Overlap, ByPiecesLeavesLessButNotNothing) {
  space::Configuration configuration = split_over(8);
  const cost::StepCost usual = cost_of(dense(), configuration);
  configuration.set("tp_comm_overlap", true);
  const cost::StepCost pieces = cost_of(dense(), configuration);
  EXPECT_LT(pieces.step_time_s, usual.step_time_s);
  EXPECT_GT(pieces.exposed_comm_s, usual.tensor_comm_s * 0.6 / 8.0) << "a piece of six in ten collectives is alone";
  EXPECT_DOUBLE_EQ(pieces.tensor_wire_bytes, usual.tensor_wire_bytes);
}

TEST(Overlap, ByPiecesNeedsOwnTokens) {
  space::Configuration configuration = split_over(8, false);
  const double usual_s = cost_of(dense(), configuration).step_time_s;
  configuration.set("tp_comm_overlap", true);
  EXPECT_DOUBLE_EQ(cost_of(dense(), configuration).step_time_s, usual_s);
}

cost::TemplateOperation work(double seconds) {
  cost::TemplateOperation operation;
  operation.segment = cost::single(seconds, 0.0);
  return operation;
}

cost::TemplateOperation exchange(double seconds) {
  cost::TemplateOperation operation;
  operation.collective = true;
  operation.link_s = seconds;
  operation.segment = cost::single(seconds, 0.0, true);
  return operation;
}

TEST(Overlap, TokensTravelBesideTheOtherPass) {
  cost::Pass forward;
  forward.operations = {work(1.0), exchange(2.0), work(3.0), exchange(5.0), work(0.5)};
  const std::vector<std::size_t> exchanges = {1, 3};
  const cost::PassWithExchanges pass{forward, exchanges};
  EXPECT_DOUBLE_EQ(cost::time_around(pass).outside_s, 1.5);
  EXPECT_DOUBLE_EQ(cost::time_around(pass).between_s, 3.0);
  cost::hide(pass, 4.0, 4.0, 1.0);
  const double first_s = 2.0 - cost::kHiddenShare * 2.0;
  const double second_s = 5.0 - cost::kHiddenShare * 4.0;
  EXPECT_DOUBLE_EQ(forward.operations[1].segment.work_s, first_s) << "2 s beside 4 s";
  EXPECT_DOUBLE_EQ(forward.operations[3].segment.work_s, second_s) << "5 s beside 4 s";
  EXPECT_DOUBLE_EQ(forward.all.work_s, 4.5 + first_s + second_s);
  EXPECT_DOUBLE_EQ(forward.all.comm_s, first_s + second_s);
}

TEST(Overlap, ExchangesWithExpertsAreHiddenByAnotherMicroBatch) {
  workload::Workload mixture = dense();
  mixture.model.experts = {16, 4, 2048, 0};
  mixture.train_batch_size = 64;
  space::Configuration configuration = {
      {"zero_stage", std::int64_t{1}}, {"micro_batch", std::int64_t{1}}, {"expert_parallel", std::int64_t{16}}};
  const cost::StepCost alone = cost_of(mixture, configuration, 2);
  configuration.set("moe_overlap", true);
  const cost::StepCost beside = cost_of(mixture, configuration, 2);
  EXPECT_DOUBLE_EQ(alone.expert_comm_s, beside.expert_comm_s);
  EXPECT_LT(beside.step_time_s, alone.step_time_s - 0.2 * cost::kHiddenShare * alone.expert_comm_s);
  EXPECT_GE(beside.step_time_s, alone.step_time_s - alone.expert_comm_s);
}

}  // namespace
}  // namespace krigtune::overlap_test
