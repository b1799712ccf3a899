#include "plan/build_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"
#include "schedule/knobs.h"
#include "space/well_known.h"

namespace krigtune::build_plan_test {

TEST(BuildPlan, CountsTheModelsParametersExactly) {
  for_each_plan([](const plan::StepPlan& plan) {
    std::int64_t elems = 0;
    std::int64_t padded = 0;
    for (const schedule::ParameterTensor& tensor : plan.tensors) {
      EXPECT_EQ(tensor.begin_elems, padded) << tensor.name;
      EXPECT_EQ(tensor.begin_elems / plan.ranks * 4 % schedule::kAlignmentBytes, 0) << tensor.name;
      elems += tensor.elems;
      padded += tensor.padded_elems;
    }
    EXPECT_EQ(elems, workload::parameter_count(small_workload().model));
    EXPECT_EQ(padded, plan.padded_parameter_elems);
  });
}

// ZeRO paper (Rajbhandari et al. 2020), section 7, with k micro-steps: stage 0 all-reduces 2 Psi once, stage 1 moves
// Psi + Psi, stage 2 reduce-scatters in every micro-step, stage 3 gathers every unit for forward and again for
// backward. The tied table belongs to two units (embedding, head) and is gathered for both. All times (N - 1) / N, 4
// bytes per element.
TEST(BuildPlan, SendsTheBytesOfTheZeroPaperExactly) {
  for_each_plan([](const plan::StepPlan& plan) {
    const std::int64_t psi = plan.padded_parameter_elems * 4 * (plan.ranks - 1) / plan.ranks;
    const std::int64_t table = plan.tensors[0].padded_elems * 4 * (plan.ranks - 1) / plan.ranks;
    const std::int64_t k = plan.micro_steps;
    const plan::WireBytes sent = plan::wire_bytes(plan);
    EXPECT_EQ(sent.all_reduce, plan.zero_stage == 0 ? 2 * psi : 0);
    EXPECT_EQ(sent.reduce_scatter, plan.zero_stage == 0 ? 0 : plan.zero_stage == 1 ? psi : k * psi);
    EXPECT_EQ(sent.all_gather, plan.zero_stage == 0 ? 0 : plan.zero_stage == 3 ? 2 * k * (psi + table) : psi);
  });
}

TEST(BuildPlan, OrdersEveryPairOfAccessesOfWhichOneWrites) {
  for_each_plan([](const plan::StepPlan& plan) {
    const Reachability order(plan);
    const auto end_elems = [&](const plan::Range& r) {
      return r.begin_elems + r.rank_stride_elems * (plan.ranks - 1) + r.elems;
    };
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      for (std::size_t j = i + 1; j < plan.operations.size(); ++j) {
        for (const plan::Operand& a : plan.operations[i].operands) {
          for (const plan::Operand& b : plan.operations[j].operands) {
            const bool meet = a.range.buffer == b.range.buffer && a.range.begin_elems < end_elems(b.range) &&
                              b.range.begin_elems < end_elems(a.range);
            const bool conflict = meet && (a.access != plan::Access::kRead || b.access != plan::Access::kRead);
            ASSERT_TRUE(!conflict || order.before(i, j))
                << plan::to_string(plan.operations[i].kind) << " " << i << ", " << j;
          }
        }
      }
    }
  });
}

TEST(BuildPlan, StaysInsideItsBuffersAndWritesThemBeforeReadingThem) {
  for_each_plan([](const plan::StepPlan& plan) {
    std::set<plan::BufferId> written;
    for (const plan::Operation& operation : plan.operations) {
      for (const plan::Operand& operand : operation.operands) {
        const plan::Range& range = operand.range;
        const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(range.buffer)];
        ASSERT_GE(range.begin_elems, 0);
        ASSERT_GT(range.elems, 0);
        ASSERT_LE(range.begin_elems + (plan.ranks - 1) * range.rank_stride_elems + range.elems, buffer.elems);
        const bool needs_data = !buffer.persistent && operand.access != plan::Access::kWrite;
        ASSERT_TRUE(!needs_data || written.count(range.buffer) == 1) << buffer.name;
        if (operand.access != plan::Access::kRead) written.insert(range.buffer);
      }
    }
  });
}

// A product has 2 m n k FLOPs, once in forward and twice in backward. Attention has two products in forward and five in
// backward (Q K^T again).
TEST(BuildPlan, CarriesTheModelsFlops) {
  for_each_plan([](const plan::StepPlan& plan) {
    const workload::ModelSpec model = small_workload().model;
    double linear = 0.0;
    double attention = 0.0;
    for (const plan::Operation& operation : plan.operations) {
      const std::string kind = plan::to_string(operation.kind);
      if (kind.starts_with("linear")) linear += operation.flops;
      if (kind.starts_with("attention")) attention += operation.flops;
    }
    const double tokens = static_cast<double>(plan.micro_batch * plan.micro_steps * model.seq_len);
    const auto h = static_cast<double>(model.hidden);
    const auto layers = static_cast<double>(model.layers);
    const double matrix_elems = 12.0 * layers * h * h + static_cast<double>(model.vocab) * h;
    EXPECT_DOUBLE_EQ(linear, 6.0 * matrix_elems * tokens);
    EXPECT_DOUBLE_EQ(attention, 7.0 * layers * h * tokens * (static_cast<double>(model.seq_len) + 1.0));
    const double samples = static_cast<double>(plan.samples() / plan.ranks);
    EXPECT_DOUBLE_EQ(workload::model_flops(model, static_cast<std::int64_t>(samples)), linear + attention * 6.0 / 7.0);
  });
}

std::int64_t count_kind(const plan::StepPlan& plan, schedule::OpKind kind) {
  std::int64_t count = 0;
  for (const plan::Operation& operation : plan.operations) count += operation.kind == kind ? 1 : 0;
  return count;
}

TEST(BuildPlan, PutsWholeTensorsIntoBucketsAndLargerOnesIntoTheirOwn) {
  const auto reduces = [](std::int64_t stage, std::int64_t bucket_elems) {
    return count_kind(plan::build_plan(small_workload(), cpu_ranks(2), knobs(stage, 1, 1, bucket_elems, true)),
                      stage == 0 ? schedule::OpKind::kAllReduce : schedule::OpKind::kReduceScatter);
  };
  const auto tensors = static_cast<std::int64_t>(4 + 12 * small_workload().model.layers);
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    EXPECT_EQ(reduces(stage, 1), tensors);
    EXPECT_EQ(reduces(stage, workload::parameter_count(small_workload().model)), 1);
    EXPECT_GT(reduces(stage, 5'000), reduces(stage, 20'000));
  }
}

TEST(BuildPlan, NeverHoldsMoreThanTwoGatheredUnits) {
  const plan::StepPlan plan = plan::build_plan(small_workload(), cpu_ranks(2), knobs(3, 1, 2, 5'000, true));
  const Reachability order(plan);
  // The gather of use j + 2 may start only when every operation of use j is done.
  std::vector<std::size_t> gathers;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    if (plan.operations[i].kind == schedule::OpKind::kAllGather) gathers.push_back(i);
  }
  ASSERT_EQ(gathers.size(), 2U * 2U * 5U);
  for (std::size_t g = 2; g < gathers.size(); ++g) {
    const plan::BufferId held = plan.operations[gathers[g - 2]].operands[1].range.buffer;
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      for (const plan::Operand& operand : plan.operations[i].operands) {
        EXPECT_TRUE(operand.range.buffer != held || order.before(i, gathers[g])) << g;
      }
    }
  }
}

TEST(BuildPlan, WithoutOverlapComputeWaitsForEveryCollective) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const plan::StepPlan plan = plan::build_plan(small_workload(), cpu_ranks(2), knobs(stage, 1, 2, 5'000, false));
    const Reachability order(plan);
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      for (std::size_t j = 0; j < plan.operations.size(); ++j) {
        const bool pair =
            plan::is_collective(plan.operations[i].kind) && plan.operations[j].stream == schedule::Stream::kCompute;
        EXPECT_TRUE(!pair || order.ordered(i, j)) << "stage " << stage << ": " << i << ", " << j;
      }
    }
  }
}

TEST(BuildPlan, WithOverlapBackwardGoesOnWhileBucketsTravel) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const plan::StepPlan plan = plan::build_plan(small_workload(), cpu_ranks(2), knobs(stage, 1, 1, 5'000, true));
    const Reachability order(plan);
    std::int64_t concurrent = 0;
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      for (std::size_t j = 0; j < plan.operations.size(); ++j) {
        const bool pair = plan.operations[i].stream == schedule::Stream::kReduce &&
                          plan.operations[j].stream == schedule::Stream::kCompute;
        if (pair && plan.operations[j].phase == schedule::Phase::kBackward && !order.ordered(i, j)) ++concurrent;
      }
    }
    EXPECT_GT(concurrent, 0) << "stage " << stage;
  }
}

TEST(BuildPlan, DerivesTheMicroStepsFromTheBatch) {
  workload::Workload workload = small_workload();
  workload.train_batch_size = 24;
  EXPECT_EQ(plan::build_plan(workload, cpu_ranks(2), {{"micro_batch", std::int64_t{3}}}).micro_steps, 4);
  EXPECT_THROW(plan::build_plan(workload, cpu_ranks(2), {{"micro_batch", std::int64_t{5}}}), UserError);
  EXPECT_THROW(plan::build_plan(workload, cpu_ranks(2), knobs(0, 3, 5, 1, false)), UserError);
}

TEST(BuildPlan, RefusesWhatItDoesNotModel) {
  const auto refuses = [](const space::Configuration& configuration) {
    EXPECT_THROW(plan::build_plan(small_workload(), cpu_ranks(2), configuration), UserError) << configuration.text();
  };
  refuses({{"zero_stage", std::int64_t{4}}});
  refuses({{"micro_batch", std::int64_t{0}}});
  refuses({{"reduce_bucket_size", std::int64_t{0}}});
  refuses({{"tensor_parallel", std::int64_t{3}}});  // with 2 ranks
  refuses({{"pipeline_parallel", std::int64_t{2}}});
  refuses({{"offload_optimizer", std::string("nvme")}});
  refuses({{"activation_checkpointing", std::string("some")}});
  refuses({{"zero_stgae", std::int64_t{1}}});
  refuses({{"overlap_comm", std::string("yes")}});
  const auto refuses_model = [](auto change) {
    workload::Workload workload = small_workload();
    change(workload);
    EXPECT_THROW(plan::build_plan(workload, cpu_ranks(2), space::Configuration{}), UserError);
  };
  refuses_model([](workload::Workload& w) { w.model.heads = 5; });     // with hidden 32
  refuses_model([](workload::Workload& w) { w.model.kv_heads = 3; });  // with 4 heads
  refuses_model([](workload::Workload& w) { w.model.seq_len = 1; });
  refuses_model([](workload::Workload& w) {
    w.model.heads = w.model.kv_heads = 32;
    w.model.positions = workload::Positions::kRotary;  // rotates pairs, but the heads have width 1
  });
}

TEST(PlannedParameters, AreThoseThatAPlanTakes) {
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    const std::vector<std::string>& planned = schedule::planned_parameters();
    const bool is_planned = std::find(planned.begin(), planned.end(), known.name) != planned.end();
    if (!is_planned) continue;
    const space::Configuration at_default{{known.name, known.default_value}};
    EXPECT_NO_THROW(schedule::check_knobs(small_workload(), cpu_ranks(2), at_default)) << known.name;
    // Parameters that a configuration omits have the default of the table.
    EXPECT_EQ(plan::build_plan(small_workload(), cpu_ranks(2), at_default).arena_bytes,
              plan::build_plan(small_workload(), cpu_ranks(2), space::Configuration{}).arena_bytes);
  }
  EXPECT_EQ(schedule::planned_parameters().size(), 29U);
}

TEST(PlannedParameters, AreRefusedByTheCheckWhereThePlanRefusesThem) {
  for (const space::Configuration& wrong :
       {space::Configuration{{"zero_stage", std::int64_t{4}}}, space::Configuration{{"micro_batch", 1.5}},
        space::Configuration{{"zero_stgae", std::int64_t{1}}}}) {
    EXPECT_THROW(schedule::check_knobs(small_workload(), cpu_ranks(2), wrong), UserError) << wrong.text();
  }
  workload::Workload uneven = small_workload();
  uneven.model.kv_heads = 3;
  EXPECT_THROW(schedule::check_knobs(uneven, cpu_ranks(2), space::Configuration{}), UserError);
}

}  // namespace krigtune::build_plan_test
