// Models with layers of several kinds: what the stages of a pipeline hold of them, their memory and time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cost/memory/memory_model.h"
#include "cost/memory/memory_profile.h"
#include "cost/pipeline.h"
#include "cost/time/step_cost.h"
#include "plan/random_hybrids.h"

namespace krigtune::hybrids_test {
namespace {

using workload::FeedForward;
using workload::Mixer;

TEST(Hybrids, StagesAndRanksHoldEveryParameterOnce) {
  RandomHybrids hybrids(5);
  Rng rng(5, 2);
  for (int i = 0; i < 300; ++i) {
    PlanCase drawn = hybrids.next();
    const workload::ModelSpec& model = drawn.workload.model;
    schedule::Knobs knobs;
    knobs.tensor_ranks = 1;
    const auto stages = static_cast<std::int64_t>(1 + rng.below(static_cast<std::uint64_t>(model.layers)));
    const schedule::UnitTensors tensors = schedule::unit_tensors(drawn.workload, knobs);
    std::int64_t elems = 0;
    for (const schedule::StageParts& stage :
         cost::parts_of_ranks(model, cost::stage_layers(model.layers, stages, rng.below(2) == 1, 0.5), {stages})) {
      for (const schedule::UnitTensor& tensor : tensors.tensors) {
        const std::int64_t units = schedule::is_block(tensor.unit)        ? stage.layers_of(tensor.unit)
                                   : tensor.unit == schedule::Unit::kHead ? std::int64_t{stage.head}
                                                                          : std::int64_t{stage.embedding};
        elems += units * tensor.elems;
      }
    }
    EXPECT_EQ(elems, parameter_count(model)) << drawn.text();
  }
}

double error_of(const PlanCase& drawn) {
  const plan::MemoryReport planned = plan::explain(drawn.plan());
  const auto expected = cost::MemoryModel(drawn.workload, drawn.cluster, {}).estimate(drawn.configuration).expected;
  return std::abs(static_cast<double>(expected.count) / static_cast<double>(planned.lower_bound_bytes) - 1.0);
}

// As memory_model_test.cpp does for models of one kind.
TEST(Hybrids, MemoryFollowsThePlanOfRandomConfigurations) {
  RandomHybrids hybrids(17);
  std::vector<double> errors;
  for (int i = 0; i < sweep(400); ++i) {
    const PlanCase drawn = hybrids.next();
    const bool from_host = schedule::read_knobs(drawn.workload, drawn.cluster, drawn.configuration).offload_parameters;
    errors.push_back(error_of(drawn));
    EXPECT_LE(errors.back(), from_host ? 0.25 : 0.06) << drawn.text();
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(errors[errors.size() * 9 / 10], 0.0);
}

// The compressed step has the work of all operations of the whole plan.
TEST(Hybrids, StepsHaveTheWorkOfTheirPlan) {
  RandomHybrids hybrids(19);
  for (int i = 0; i < sweep(200); ++i) {
    const PlanCase drawn = hybrids.next();
    workload::ClusterSpec cluster = drawn.cluster;
    cost::Machine machine;
    for (workload::ClassRate& rate : machine.rates) rate = {1e-6, 1e9, 1e3, 1e9};
    machine.network.bytes_per_s = 1e9;
    machine.ranks_per_node = cluster.ranks();
    const plan::StepPlan plan = drawn.plan();
    double work_s = 0.0;
    for (const plan::Operation& operation : plan.operations) {
      if (operation.stream == schedule::Stream::kCompute && operation.phase != schedule::Phase::kOptimizer &&
          !plan::is_collective(operation.kind))
        work_s += cost::operation_time_s(machine, plan, operation);
    }
    const cost::StepCost cost = cost::StepCostModel(drawn.workload, cluster, machine)(drawn.configuration);
    EXPECT_NEAR((cost.products_s + cost.memory_bound_s) / work_s, 1.0, 0.02) << drawn.text();
  }
}

}  // namespace
}  // namespace krigtune::hybrids_test
