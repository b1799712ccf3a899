// Copies of what the ZeRO stage shards, and the second copy of parameters, against closed forms.
#include <gtest/gtest.h>

#include <cstdint>

#include "cost/cost_fixtures.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "schedule/knobs.h"

namespace krigtune::hybrid_shard_test {
namespace {

constexpr double kRanks = 32.0;

workload::Workload dense(workload::Framework framework) {
  workload::Workload workload;
  workload.model = {.layers = 4, .hidden = 1024, .heads = 16, .kv_heads = 16, .ffn_hidden = 4096, .vocab = 32000};
  workload.model.seq_len = 1024;
  workload.model.tied_embeddings = false;
  workload.model.positions = workload::Positions::kRotary;
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  return workload;
}

// `shard`: data-parallel ranks that share states; 0: all.
space::Configuration sharded(std::int64_t stage, std::int64_t shard, std::int64_t steps = 1) {
  return {{"zero_stage", stage}, {"hybrid_shard", shard}, {"gradient_accumulation_steps", steps}};
}

double parameters_of(const workload::Workload& workload) {
  return static_cast<double>(workload::parameter_count(workload.model));
}

double term_bytes(const workload::Workload& workload, const space::Configuration& configuration, schedule::Term term) {
  const cost::MemoryModel memory(workload, gpus(4), {});
  return static_cast<double>(memory.estimate(configuration).term_bytes[static_cast<std::size_t>(term)]);
}

double wire_bytes(const workload::Workload& workload, const space::Configuration& configuration) {
  return cost::StepCostModel(workload, gpus(4), links_of(100e9, 10e9))(configuration).data_wire_bytes;
}

// FSDP: 4 bytes each of parameters and gradients, and 8 of moments, divided by the ranks of a group and not by all.
TEST(HybridShard, StatesAreThoseOfAGroup) {
  const workload::Workload workload = dense(workload::Framework::kFsdp);
  const double p = parameters_of(workload);
  for (const std::int64_t shard : {1, 4, 8, 16, 32}) {
    const space::Configuration configuration = sharded(3, shard);
    const auto q = static_cast<double>(shard);
    EXPECT_NEAR(term_bytes(workload, configuration, schedule::Term::kParameters) / (4.0 * p / q), 1.0, 1e-4) << shard;
    EXPECT_NEAR(term_bytes(workload, configuration, schedule::Term::kGradients) / (4.0 * p / q), 1.0, 1e-4) << shard;
    EXPECT_NEAR(term_bytes(workload, configuration, schedule::Term::kOptimizerState) / (8.0 * p / q), 1.0, 1e-4);
  }
  EXPECT_EQ(term_bytes(workload, sharded(3, 0), schedule::Term::kParameters),
            term_bytes(workload, sharded(3, 32), schedule::Term::kParameters))
      << "0 is all ranks";
}

// Megatron's distributed optimizer of several instances: 12 bytes over the ranks of an instance.
TEST(HybridShard, AnOptimizerOfSeveralInstancesIsSharedByFewer) {
  const workload::Workload workload = dense(workload::Framework::kMegatron);
  const double p = parameters_of(workload);
  for (const std::int64_t shard : {4, 16}) {
    const double bytes = term_bytes(workload, sharded(1, shard), schedule::Term::kOptimizerState);
    EXPECT_NEAR(bytes / (12.0 * p / static_cast<double>(shard)), 1.0, 1e-4) << shard;
    EXPECT_NEAR(term_bytes(workload, sharded(1, shard), schedule::Term::kParameters) / (2.0 * p), 1.0, 1e-4) << "whole";
  }
  EXPECT_EQ(term_bytes(workload, sharded(0, 4), schedule::Term::kOptimizerState),
            term_bytes(workload, sharded(0, 0), schedule::Term::kOptimizerState))
      << "nothing is sharded at stage 0";
}

// All of Muon's work on a matrix is shared by those that share the matrix.
TEST(HybridShard, MuonsProductsAreSharedByAGroup) {
  workload::Workload workload = dense(workload::Framework::kMegatron);
  workload.optimizer = workload::OptimizerKind::kMuon;
  workload.model.hidden = 8192;  // so that launches take next to no time
  workload.model.ffn_hidden = 32768;
  const workload::ClusterSpec cluster = workload::read_cluster(
      Json{{"nodes", 4}, {"gpus_per_node", 8}, {"gpu", "h100-80gb"}, {"network", "ib-ndr-400"}}, "test", "/cluster");
  const auto optimizer_s = [&](std::int64_t shard) {
    return cost::StepCostModel(workload, cluster)(sharded(1, shard)).optimizer_s;
  };
  EXPECT_NEAR(optimizer_s(4) / optimizer_s(16), 4.0, 0.4);
}

// Stage 3 in bf16, a micro-step: 2 P are gathered forward and backward (but the head's, which are still there) and 2 P
// reduced within a group of q, and the q-th part of them is summed over the r copies. FSDP does so in every micro-step.
TEST(HybridShard, GradientsAreReducedInAGroupAndSummedOverCopies) {
  const workload::Workload workload = dense(workload::Framework::kFsdp);
  const double p = parameters_of(workload);
  for (const std::int64_t steps : {1, 2, 5}) {
    const double whole = wire_bytes(workload, sharded(3, 0, steps)) / ((kRanks - 1.0) / kRanks);
    EXPECT_GT(whole, static_cast<double>(steps) * 4.0 * p);
    EXPECT_LT(whole, static_cast<double>(steps) * 6.0 * p * 1.001);
    for (const std::int64_t shard : {1, 4, 8, 16}) {
      const auto q = static_cast<double>(shard);
      const double copies = kRanks / q;
      const double sums = static_cast<double>(steps) * 2.0 * (copies - 1.0) / copies * 2.0 * p / q;
      EXPECT_NEAR(wire_bytes(workload, sharded(3, shard, steps)) / (whole * (q - 1.0) / q + sums), 1.0, 1e-3)
          << shard << " of " << kRanks << ", " << steps;
    }
  }
}

// Megatron, stage 1: 4 P reduced and 2 P gathered in a group once a step, and 4 P / q summed over copies. MiCS sums at
// the end of the accumulation, too.
TEST(HybridShard, CopiesAreSummedOnceAStep) {
  const workload::Workload megatron = dense(workload::Framework::kMegatron);
  const double p = parameters_of(megatron);
  const double bytes = 6.0 * p * 7.0 / 8.0 + 2.0 * 3.0 / 4.0 * 4.0 * p / 8.0;
  for (const std::int64_t steps : {1, 4}) {
    EXPECT_NEAR(wire_bytes(megatron, sharded(1, 8, steps)) / bytes, 1.0, 1e-3) << steps;
  }
  const workload::Workload deepspeed = dense(workload::Framework::kDeepSpeed);
  const auto grown = [&](std::int64_t shard) {
    return wire_bytes(deepspeed, sharded(3, shard, 5)) - wire_bytes(deepspeed, sharded(3, shard, 4));
  };
  EXPECT_NEAR(grown(8) / (7.0 / 8.0) / (grown(0) / (31.0 / 32.0)), 1.0, 1e-4) << "a micro-step sums no copies";
  EXPECT_NEAR((wire_bytes(deepspeed, sharded(3, 8, 4)) - 4.0 * grown(8)) / (2.0 * 3.0 / 4.0 * 2.0 * p / 8.0), 1.0,
              0.01);
}

TEST(HybridShard, AGroupWithinANodeIsFasterWhereTheNetworkIsSlow) {
  const workload::Workload workload = dense(workload::Framework::kFsdp);
  const auto seconds = [&](std::int64_t shard, double network) {
    return cost::StepCostModel(workload, gpus(4), links_of(300e9, network))(sharded(3, shard)).data_comm_s;
  };
  EXPECT_LT(seconds(8, 5e9), 0.75 * seconds(0, 5e9));
}

TEST(HybridShard, ItIsRefusedWhereGroupsWouldNotBeEqual) {
  const auto is_modelled = [](workload::Workload workload, const space::Configuration& configuration) {
    return std::holds_alternative<schedule::Knobs>(schedule::knobs_of(workload, gpus(4), configuration));
  };
  const workload::Workload workload = dense(workload::Framework::kFsdp);
  EXPECT_TRUE(is_modelled(workload, sharded(3, 8)));
  EXPECT_FALSE(is_modelled(workload, sharded(3, 5)));
  EXPECT_FALSE(is_modelled(workload, sharded(3, 64)));
  space::Configuration split = sharded(3, 16);
  split.set("tensor_parallel", std::int64_t{4});
  EXPECT_FALSE(is_modelled(workload, split)) << "16 of 8 data-parallel ranks";
  split.set("hybrid_shard", std::int64_t{4});
  EXPECT_TRUE(is_modelled(workload, split));
  EXPECT_TRUE(is_modelled(dense(workload::Framework::kDeepSpeed), sharded(2, 8))) << "MiCS is stage 3's alone";
  EXPECT_EQ(schedule::read_knobs(dense(workload::Framework::kDeepSpeed), gpus(4), sharded(2, 8)).copies, 1);
}

// Ranks that share sequences hold the same parameters, so that a group of q data-parallel ranks has c times as many.
TEST(HybridShard, RanksOfASequenceShareToo) {
  const workload::Workload workload = dense(workload::Framework::kFsdp);
  space::Configuration configuration = sharded(3, 4);
  configuration.set("context_parallel", std::int64_t{2});
  const schedule::Knobs knobs = schedule::read_knobs(workload, gpus(4), configuration);
  EXPECT_EQ(knobs.copies, 4);
  EXPECT_EQ(knobs.shard_ranks(), 8);
}

// hpZ (ZeRO++): 2 P / z more, and the backward pass gathers among z ranks.
TEST(SecondaryShard, BackwardGathersFromACopyInTheNode) {
  const workload::Workload workload = dense(workload::Framework::kDeepSpeed);
  const double p = parameters_of(workload);
  space::Configuration configuration = sharded(3, 0);
  configuration.set("stage3_param_persistence_threshold", std::int64_t{0});
  configuration.set("stage3_max_reuse_distance", std::int64_t{0});
  const double plain_bytes = term_bytes(workload, configuration, schedule::Term::kParameters);
  const double plain_wire = wire_bytes(workload, configuration);
  EXPECT_NEAR(plain_wire / (6.0 * p * 31.0 / 32.0), 1.0, 1e-3) << "2 P twice, and 2 P of gradients";
  for (const std::int64_t ranks : {2, 8}) {
    configuration.set("secondary_shard", ranks);
    const auto z = static_cast<double>(ranks);
    const double more = term_bytes(workload, configuration, schedule::Term::kParameters) - plain_bytes;
    EXPECT_NEAR(more / (2.0 * p / z), 1.0, 1e-3) << ranks;
    EXPECT_NEAR(wire_bytes(workload, configuration) / (4.0 * p * 31.0 / 32.0 + 2.0 * p * (z - 1.0) / z), 1.0, 1e-3);
  }
  configuration.set("secondary_shard", std::int64_t{5});
  EXPECT_TRUE(std::holds_alternative<schedule::NotModelled>(schedule::knobs_of(workload, gpus(4), configuration)));
}

}  // namespace
}  // namespace krigtune::hybrid_shard_test
