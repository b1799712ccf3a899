// What optimizers keep and how long they take in frameworks: Muon, and states of other types.
#include <gtest/gtest.h>

#include <cstdint>

#include "cost/cost_fixtures.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "plan/build_plan.h"
#include "plan/op_traits.h"

namespace krigtune::optimizer_states_test {
namespace {

using workload::Framework;
using workload::OptimizerKind;
using workload::StateType;

workload::Workload job(Framework framework) {
  workload::Workload workload;
  workload.model = {
      .layers = 4, .hidden = 1024, .heads = 8, .kv_heads = 8, .ffn_hidden = 4096, .vocab = 32000, .seq_len = 512};
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.model.positions = workload::Positions::kRotary;
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  return workload;
}

const space::Configuration kSharded = {{"zero_stage", std::int64_t{1}}, {"micro_batch", std::int64_t{1}}};

double bytes_of(const workload::Workload& workload, schedule::Term term) {
  const cost::MemoryEstimate estimate = cost::MemoryModel(workload, gpus(1), {}).estimate(kSharded);
  return static_cast<double>(estimate.term_bytes.at(static_cast<std::size_t>(term)));
}

// Matrices have 4 bytes of momentum instead of the 8 of AdamW, on each of the eight ranks an eighth.
TEST(OptimizerStates, MuonHasNoSecondMomentsOfMatrices) {
  constexpr double kMatrices = 4.0 * 12.0 * 1024.0 * 1024.0;
  for (const Framework framework : {Framework::kMegatron, Framework::kFsdp, Framework::kDeepSpeed}) {
    workload::Workload workload = job(framework);
    const double adamw = bytes_of(workload, schedule::Term::kOptimizerState);
    workload.optimizer = OptimizerKind::kMuon;
    EXPECT_NEAR(adamw - bytes_of(workload, schedule::Term::kOptimizerState), 4.0 * kMatrices / 8.0, 1e3);
  }
}

// Megatron's distributed optimizer: 4 bytes of gradients, and 12 shared by the ranks; with its precision-aware one
// 2 bytes and 2 + 1 + 2.
TEST(OptimizerStates, MegatronsMayBeNarrower) {
  workload::Workload workload = job(Framework::kMegatron);
  const auto parameters = static_cast<double>(parameter_count(workload.model));
  EXPECT_NEAR(bytes_of(workload, schedule::Term::kGradients) / parameters, 4.0, 1e-4);
  EXPECT_NEAR(bytes_of(workload, schedule::Term::kOptimizerState) / parameters, 12.0 / 8.0, 1e-4);
  workload.training.state_types = {StateType::kBf16, StateType::kFp8, StateType::kFp16, StateType::kBf16};
  EXPECT_NEAR(bytes_of(workload, schedule::Term::kGradients) / parameters, 2.0, 1e-4);
  EXPECT_NEAR(bytes_of(workload, schedule::Term::kOptimizerState) / parameters, 5.0 / 8.0, 1e-4);
}

// The update of matrices takes the time of its products beside that of memory, as in the plan.
TEST(OptimizerStates, TheUpdateTakesTheTimeOfItsOperations) {
  for (const OptimizerKind optimizer : {OptimizerKind::kAdamW, OptimizerKind::kMuon, OptimizerKind::kSgdPlain}) {
    workload::Workload workload = job(Framework::kKrigtune);
    workload.optimizer = optimizer;
    cost::Machine machine;
    for (workload::ClassRate& rate : machine.rates) rate = {0.0, 1e12, 1e3, 1e11};
    machine.network.bytes_per_s = 1e12;
    machine.ranks_per_node = 8;
    const plan::StepPlan plan = plan::build_plan(workload, gpus(1), kSharded);
    double planned_s = 0.0;
    for (const plan::Operation& operation : plan.operations) {
      const bool computes = operation.stream == schedule::Stream::kCompute && !plan::is_collective(operation.kind);
      if (operation.phase == schedule::Phase::kOptimizer && computes)
        planned_s += cost::operation_time_s(machine, plan, operation);
    }
    const cost::StepCost cost = cost::StepCostModel(workload, gpus(1), machine)(kSharded);
    EXPECT_NEAR(cost.optimizer_s / planned_s, 1.0, 0.02) << workload::traits_of(optimizer).name;
  }
}

// Gradients that are sent in 16 bits are half as many bytes.
TEST(OptimizerStates, NarrowGradientsAreSentAsTheyAre) {
  workload::Workload workload = job(Framework::kMegatron);
  const auto sent = [&] {
    return cost::StepCostModel(workload, gpus(1), links_of(1e11, 1e10))(kSharded).data_wire_bytes;
  };
  const double wide = sent();
  workload.training.state_types.gradients = StateType::kBf16;
  const double parameters = static_cast<double>(parameter_count(workload.model));
  EXPECT_NEAR((wide - sent()) / (2.0 * parameters * 7.0 / 8.0), 1.0, 0.01);
}

}  // namespace
}  // namespace krigtune::optimizer_states_test
