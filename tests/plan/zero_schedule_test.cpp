// Where parameters, gradients and optimizer state are stored, and what is sent in which portions.
#include <gtest/gtest.h>

#include "plan/zero_fixtures.h"

namespace krigtune::zero_schedule_test {

constexpr std::int64_t kHuge = 1'000'000'000;

// The table of schedules, with Psi the padded parameters, k the micro-steps, e bytes per element, all times (N - 1) /
// N:
//
//   stage  canonical                              deepspeed
//   0      all-reduce 2 Psi                       all-reduce 2 Psi
//   1      reduce-scatter Psi, all-gather Psi     all-reduce 2 Psi, all-gather Psi
//   2      reduce-scatter k Psi, all-gather Psi   all-reduce 2 k Psi, all-gather Psi
//   3      reduce-scatter k Psi, all-gather k (forward + backward) of sharded tensors, and once of persistent ones
//
// Forward and backward each use every unit once; the tied table belongs to two units (embedding, head). If tensors that
// are used again soon are kept (deepspeed), at most Psi is gathered in a micro-step.
plan::WireBytes expected_bytes(const plan::StepPlan& plan, workload::Dialect dialect, std::int64_t persistence_elems,
                               std::int64_t reuse_elems) {
  const std::int64_t element =
      schedule::size_bytes(plan.buffers[static_cast<std::size_t>(plan.parameters[0].range.buffer)].type);
  const auto wire = [&](std::int64_t elems) { return elems * element * (plan.ranks - 1) / plan.ranks; };
  const bool canonical = dialect == workload::Dialect::kCanonical;
  const std::int64_t stage = plan.zero_stage;
  const std::int64_t reductions = stage < 2 ? 1 : plan.micro_steps;
  const std::int64_t psi = plan.padded_parameter_elems;
  plan::WireBytes expected;
  const bool scatters = stage == 3 || (canonical && stage > 0);
  (scatters ? expected.reduce_scatter : expected.all_reduce) = (scatters ? 1 : 2) * reductions * wire(psi);
  if (stage == 1 || stage == 2) expected.all_gather = wire(psi);
  if (stage < 3) return expected;
  std::int64_t persistent = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) {
    if (tensor.elems <= persistence_elems) persistent += tensor.padded_elems;
  }
  const schedule::ParameterTensor& table = plan.tensors.front();
  const std::int64_t table_elems = table.elems <= persistence_elems ? 0 : table.padded_elems;
  const bool keeps = !canonical && reuse_elems > 0;
  const std::int64_t a_micro_step = keeps ? psi - persistent : 2 * (psi - persistent + table_elems);
  expected.all_gather = wire(plan.micro_steps * a_micro_step + persistent);
  return expected;
}

// Returns what the data-parallel group sends. Scalars (the gradients' norm) are not counted.
plan::WireBytes sent_among_data_ranks(const plan::StepPlan& plan) {
  plan::WireBytes sent;
  for (const plan::Operation& operation : plan.operations) {
    if (operation.group != schedule::Group::kData || operation.operands.front().range.elems == 1) continue;
    if (operation.kind == schedule::OpKind::kAllReduce) sent.all_reduce += operation.wire_bytes;
    if (operation.kind == schedule::OpKind::kReduceScatter) sent.reduce_scatter += operation.wire_bytes;
    if (operation.kind == schedule::OpKind::kAllGather) sent.all_gather += operation.wire_bytes;
  }
  return sent;
}

void expect_the_table(const workload::Workload& workload, std::int64_t data_ranks, std::int64_t tensor_ranks,
                      const space::Configuration& knobs, std::int64_t persistence, std::int64_t reuse) {
  const space::Configuration now = with(knobs, {{"tensor_parallel", tensor_ranks},
                                                {"stage3_param_persistence_threshold", persistence},
                                                {"stage3_prefetch_bucket_size", std::int64_t{20'000}},
                                                {"stage3_max_reuse_distance", reuse}});
  const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(data_ranks * tensor_ranks), now);
  const plan::WireBytes sent = tensor_ranks == 1 ? plan::wire_bytes(plan) : sent_among_data_ranks(plan);
  const plan::WireBytes expected = expected_bytes(plan, workload.dialect, persistence, reuse);
  EXPECT_EQ(sent.all_reduce, expected.all_reduce) << now.text();
  EXPECT_EQ(sent.reduce_scatter, expected.reduce_scatter) << now.text();
  EXPECT_EQ(sent.all_gather, expected.all_gather) << now.text();
}

TEST(WireBytes, EqualTheTableOfSchedulesExactly) {
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    for (const workload::Precision precision : {workload::Precision::kFp32, workload::Precision::kFp16}) {
      const workload::Workload workload = workload_in(dialect, precision, 1.0);
      for (const std::int64_t stage : {0, 1, 2, 3}) {
        for (const std::int64_t ranks : {1, 2, 3, 8}) {
          for (const std::int64_t k : {1, 4}) {
            const space::Configuration now = knobs(stage, 1, k, 5'000, true);
            expect_the_table(workload, ranks, 2, now, 0, kHuge);
            for (const std::int64_t persistence : {std::int64_t{0}, std::int64_t{128}, kHuge}) {
              if (stage < 3 && persistence > 0) continue;
              for (const std::int64_t reuse : {std::int64_t{0}, kHuge}) {
                expect_the_table(workload, ranks, 1, now, persistence, reuse);
              }
            }
          }
        }
      }
    }
  }
}

// Under sequence parallelism, every tensor rank has a part of the gradients of tensors that are not split. They are
// summed by one all-reduce, 2 (t - 1) / t of their bytes, as often as gradients are reduced.
TEST(WireBytes, OfPartialGradientsAreCountedOnce) {
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    for (const std::int64_t stage : {0, 1, 2, 3}) {
      const space::Configuration now =
          with(knobs(stage, 1, 3, 5'000, true), {{"tensor_parallel", std::int64_t{2}}, {"sequence_parallel", true}});
      const plan::StepPlan plan = plan::build_plan(workload_in(dialect), cpu_ranks(4), now);
      std::int64_t sent = 0;
      for (const plan::Operation& operation : plan.operations) {
        const bool counts =
            operation.group == schedule::Group::kTensor && operation.stream == schedule::Stream::kReduce;
        if (counts) sent += operation.wire_bytes;
      }
      std::int64_t partial = 0;
      for (const schedule::ParameterTensor& tensor : plan.tensors) {
        if (tensor.split == schedule::Split::kNone) partial += tensor.padded_elems;
      }
      EXPECT_EQ(sent, (stage < 2 ? 4 : 12) * partial) << "stage " << stage;
    }
  }
}

// A rank's shard of gradients goes to the host in every reduction, its updated parameters come back once, and its
// sharded parameters for every gather: e Psi / N each.
TEST(Offload, CopiesTheShardsThatTheHostOwns) {
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    for (const std::int64_t stage : {0, 1, 2, 3}) {
      const space::Configuration now = with(
          knobs(stage, 1, 2, 5'000, true),
          {{"offload_optimizer", "cpu"}, {"offload_param", "cpu"}, {"stage3_max_reuse_distance", std::int64_t{0}}});
      const plan::StepPlan plan = plan::build_plan(workload_in(dialect, workload::Precision::kBf16), cpu_ranks(2), now);
      std::int64_t copied = 0;
      for (const plan::Operation& operation : plan.operations) {
        if (operation.stream == schedule::Stream::kCopy) copied += operation.bytes_written;
      }
      const std::int64_t part = 2 * plan.padded_parameter_elems / (stage == 0 ? 1 : 2);
      const std::int64_t table = 2 * plan.tensors.front().padded_elems / 2;
      const std::int64_t gathered = 4 * (part + table);
      EXPECT_EQ(copied, stage == 3 ? 2 * part + gathered : stage == 2 ? 3 * part : 2 * part) << "stage " << stage;
      const plan::MemoryReport report = plan::explain(plan);
      EXPECT_EQ(report.term_bytes[static_cast<std::size_t>(schedule::Term::kOptimizerState)], 0);
      EXPECT_EQ(report.host.term_bytes[static_cast<std::size_t>(schedule::Term::kOptimizerState)], 6 * part);
    }
  }
}

TEST(Clipping, UpdatesNothingBeforeTheNormOfAllGradients) {
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    for (const std::int64_t stage : {0, 1, 2, 3}) {
      const plan::StepPlan plan = plan::build_plan(workload_in(dialect, workload::Precision::kBf16, 1.0), cpu_ranks(2),
                                                   knobs(stage, 1, 1, 5'000, true));
      const Reachability order(plan);
      ASSERT_GE(plan.control, 0);
      for (std::size_t i = 0; i < plan.operations.size(); ++i) {
        if (plan.operations[i].kind != schedule::OpKind::kAdamW) continue;
        EXPECT_EQ(plan.operations[i].operands.back().range.buffer, plan.control);
        for (std::size_t j = 0; j < plan.operations.size(); ++j) {
          const schedule::OpKind kind = plan.operations[j].kind;
          const bool reduces = kind == schedule::OpKind::kAllReduce || kind == schedule::OpKind::kReduceScatter;
          EXPECT_TRUE((!reduces && kind != schedule::OpKind::kLossScale) || order.before(j, i));
        }
      }
    }
  }
  EXPECT_EQ(plan::build_plan(workload_in(workload::Dialect::kCanonical, workload::Precision::kBf16), cpu_ranks(2),
                             space::Configuration{})
                .control,
            -1);
  EXPECT_GE(plan::build_plan(workload_in(workload::Dialect::kCanonical, workload::Precision::kFp16), cpu_ranks(2),
                             space::Configuration{})
                .control,
            0);
}

}  // namespace krigtune::zero_schedule_test
