// Context parallelism: the same work as on ranks with sequences of their own, distributed otherwise.
#include "cost/context_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"

namespace krigtune::context_split_test {

constexpr std::int64_t kTokens = 8192;

workload::Workload llama(workload::Framework framework = workload::Framework::kMegatron) {
  workload::Workload workload;
  workload::ModelSpec& model = workload.model;
  model = {.layers = 4, .hidden = 1024, .heads = 16, .kv_heads = 4, .ffn_hidden = 4096, .vocab = 32000};
  model.seq_len = kTokens;
  model.gated_mlp = true;
  model.positions = workload::Positions::kRotary;
  model.norm = workload::Norm::kRmsNorm;
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  workload.train_batch_size = 16;
  return workload;
}

workload::ClusterSpec eight_gpus() {
  workload::ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = 8;
  return cluster;
}

space::Configuration shared_by(std::int64_t ranks, std::int64_t tensor = 1) {
  return {{"zero_stage", std::int64_t{1}},
          {"micro_batch", std::int64_t{1}},
          {"tensor_parallel", tensor},
          {"context_parallel", ranks}};
}

// A machine on which only operations of one class, and collectives at `bytes_per_s`, take time.
cost::Machine machine_of(workload::OpClass of, double flops_per_s,
                         double bytes_per_s = std::numeric_limits<double>::infinity()) {
  cost::Machine machine;
  machine.network.bytes_per_s = bytes_per_s;
  machine.ranks_per_node = 8;
  machine.rates[static_cast<std::size_t>(of)].flops_per_s = flops_per_s;
  return machine;
}

cost::StepCost cost_of(const cost::Machine& machine, const space::Configuration& configuration) {
  return cost::StepCostModel(llama(), eight_gpus(), machine)(configuration);
}

// Counts the nodes of ranks 0, apart, 2 apart, ... one by one.
TEST(GroupSpan, SharesAGroupAmongTheNodesOfItsRanks) {
  for (const std::int64_t per_node : {1, 3, 8}) {
    for (const std::int64_t apart : {1, 2, 8}) {
      for (const std::int64_t ranks : {1, 2, 6, 16}) {
        std::vector<std::int64_t> on_node;
        for (std::int64_t r = 0; r < ranks; ++r) {
          if (r == 0 || r * apart / per_node != (r - 1) * apart / per_node) on_node.push_back(0);
          ++on_node.back();
        }
        const plan::GroupSpan span = cost::group_span(ranks, apart, per_node);
        EXPECT_EQ(span.ranks, ranks);
        EXPECT_EQ(span.nodes, std::ssize(on_node));
        EXPECT_EQ(span.ranks_per_node, *std::ranges::min_element(on_node));
      }
    }
  }
}

TEST(ContextSplit, ComputesAsManyProductsHoweverSequencesAreShared) {
  const cost::Machine machine = machine_of(workload::OpClass::kProduct, 1e12);
  const double alone_s = cost_of(machine, shared_by(1)).products_s;
  ASSERT_GT(alone_s, 0.0);
  for (const std::int64_t ranks : {2, 4, 8}) {
    EXPECT_NEAR(cost_of(machine, shared_by(ranks)).products_s / alone_s, 1.0, 1e-9) << ranks;
  }
}

// A token attends to (s + 1) / 2 tokens on average, and in blocks of s / c tokens to (s + c) / 2.
TEST(ContextSplit, AttendsToTheWholeSequenceInBlocks) {
  const cost::Machine machine = machine_of(workload::OpClass::kAttention, 1e12);
  const double alone_s = cost_of(machine, shared_by(1)).products_s;
  ASSERT_GT(alone_s, 0.0);
  for (const double ranks : {2.0, 4.0, 8.0}) {
    const double tokens = kTokens;
    const double expected = (tokens + ranks) / (tokens + 1.0) / 0.9;
    EXPECT_NEAR(cost_of(machine, shared_by(static_cast<std::int64_t>(ranks))).products_s / alone_s, expected, 1e-6);
  }
}

// (c - 1) blocks of keys and values in forward, and in backward as many with their gradients: 3 (c - 1) blocks of
// 2 s / c kv_heads head_dim numbers for every sequence and layer. 16 / (8 / c) sequences pass each rank.
TEST(ContextSplit, PassesKeysAndValuesRound) {
  constexpr double kBytesPerS = 1e9;
  const cost::Machine machine = machine_of(workload::OpClass::kProduct, 1e15, kBytesPerS);
  EXPECT_EQ(cost_of(machine, shared_by(1)).context_comm_s, 0.0);
  for (const double ranks : {2.0, 8.0}) {
    const double block_bytes = 2.0 * kTokens / ranks * 4.0 * 64.0 * 2.0;
    const double expected_s = 4.0 * (2.0 * ranks) * 3.0 * (ranks - 1.0) * block_bytes / kBytesPerS;
    const cost::StepCost cost = cost_of(machine, shared_by(static_cast<std::int64_t>(ranks)));
    EXPECT_NEAR(cost.context_comm_s / expected_s, 1.0, 1e-9) << ranks;
    EXPECT_GE(cost.exposed_comm_s, expected_s) << ranks;
  }
}

space::Configuration shared_by(std::int64_t ranks, const char* kind) {
  space::Configuration configuration = shared_by(ranks);
  configuration.set("context_parallel_kind", std::string(kind));
  return configuration;
}

// Jacobs et al. 2023, "DeepSpeed Ulysses", section 3.2: of queries, keys, values and output, (c - 1) / c leaves a rank,
// in forward and again in backward.
TEST(ContextSplit, ExchangesTokensForHeads) {
  constexpr double kBytesPerS = 1e9;
  const cost::Machine machine = machine_of(workload::OpClass::kProduct, 1e15, kBytesPerS);
  for (const double ranks : {2.0, 4.0}) {
    const double token_bytes = (2.0 * 1024.0 + 2.0 * 4.0 * 64.0) * 2.0;
    const double sent_bytes = kTokens / ranks * token_bytes * (ranks - 1.0) / ranks;
    const double expected_s = 4.0 * (2.0 * ranks) * 2.0 * sent_bytes / kBytesPerS;
    const cost::StepCost cost = cost_of(machine, shared_by(static_cast<std::int64_t>(ranks), "alltoall"));
    EXPECT_NEAR(cost.context_comm_s / expected_s, 1.0, 1e-9) << ranks;
  }
}

// With all tokens of a head on one rank attention is one piece.
TEST(ContextSplit, AttendsInOnePieceAfterItHasExchangedHeads) {
  const cost::Machine machine = machine_of(workload::OpClass::kAttention, 1e12);
  const double ring_s = cost_of(machine, shared_by(4)).products_s;
  for (const char* kind : {"alltoall", "allgather"}) {
    EXPECT_NEAR(cost_of(machine, shared_by(4, kind)).products_s / ring_s, 0.9, 1e-9) << kind;
  }
}

// The same bytes as a ring, which is hidden where attention takes long.
TEST(ContextSplit, GathersBeforeItAttends) {
  constexpr double kBytesPerS = 1e9;
  const cost::Machine slow = machine_of(workload::OpClass::kAttention, 1e9, kBytesPerS);
  const cost::Machine fast = machine_of(workload::OpClass::kAttention, 1e18, kBytesPerS);
  EXPECT_EQ(cost_of(slow, shared_by(4)).context_comm_s, 0.0);
  const double ring_s = cost_of(fast, shared_by(4)).context_comm_s;
  EXPECT_NEAR(cost_of(slow, shared_by(4, "allgather")).context_comm_s / ring_s, 1.0, 1e-3);
}

// A ring has a buffer for each block that comes, and in backward two for keys, values and both gradients.
TEST(ContextSplit, HoldsWhatIsExchanged) {
  const schedule::Knobs ring = schedule::read_knobs(llama(), eight_gpus(), shared_by(4));
  plan::Operation forward, backward;
  forward.kind = schedule::OpKind::kAttentionForward;
  backward.kind = schedule::OpKind::kAttentionBackward;
  backward.phase = schedule::Phase::kBackward;
  const std::int64_t tokens = kTokens / 4;
  const std::int64_t block_bytes = tokens * 2 * 4 * 64 * 2;
  const cost::ContextExchange round = cost::context_exchange(llama(), ring, 8);
  EXPECT_EQ(cost::exchange_buffer_bytes(round, forward), 3 * block_bytes);
  EXPECT_EQ(cost::exchange_buffer_bytes(round, backward), 4 * block_bytes);
  const auto exchange_of = [](const char* kind) {
    return cost::context_exchange(llama(), schedule::read_knobs(llama(), eight_gpus(), shared_by(4, kind)), 8);
  };
  EXPECT_EQ(cost::exchange_buffer_bytes(exchange_of("allgather"), forward), 4 * block_bytes);
  EXPECT_EQ(cost::exchange_buffer_bytes(exchange_of("allgather"), backward), 8 * block_bytes);
  EXPECT_EQ(cost::exchange_buffer_bytes(exchange_of("alltoall"), forward), tokens * 2 * 1024 * 2 + block_bytes);
  plan::Operation product;
  product.kind = schedule::OpKind::kLinearForward;
  EXPECT_EQ(cost::exchange_buffer_bytes(round, product), 0);
  EXPECT_EQ(cost::exchange_buffer_bytes(cost::ContextExchange(), forward), 0);
}

// With a small head most memory is in use in the layers, and with as many heads of keys as of queries in attention.
TEST(ContextSplit, NeedsMoreMemoryWhereKeysAreGathered) {
  workload::Workload workload = llama();
  workload.model.vocab = 64;
  workload.model.kv_heads = 16;
  const auto workspace = [&](const char* kind) {
    const cost::MemoryEstimate estimate = cost::MemoryModel(workload, eight_gpus(), {}).estimate(shared_by(8, kind));
    return estimate.term_bytes[static_cast<std::size_t>(schedule::Term::kWorkspace)];
  };
  EXPECT_GT(workspace("allgather"), workspace("ring"));
}

std::int64_t head_ranks(std::int64_t ranks, const char* kind, workload::Framework framework, std::int64_t nodes = 1) {
  workload::ClusterSpec cluster = eight_gpus();
  cluster.nodes = nodes;
  cluster.gpus_per_node = 8 / nodes;
  const auto knobs = schedule::knobs_of(llama(framework), cluster, shared_by(ranks, kind));
  return std::holds_alternative<schedule::Knobs>(knobs) ? std::get<schedule::Knobs>(knobs).head_ranks : 0;
}

// 16 heads and 4 of keys: Megatron needs both to be divided, others give several ranks the same keys.
TEST(ContextSplit, NeedsHeadsForAllRanksThatExchangeThem) {
  using enum workload::Framework;
  EXPECT_EQ(head_ranks(4, "alltoall", kMegatron), 4);
  EXPECT_EQ(head_ranks(8, "alltoall", kMegatron), 0);  // refused
  EXPECT_EQ(head_ranks(8, "alltoall", kFsdp), 8);
  EXPECT_EQ(head_ranks(8, "alltoall+ring", kMegatron), 4);
  EXPECT_EQ(head_ranks(8, "alltoall+ring", kMegatron, 4), 2);  // as many as a node has
  EXPECT_EQ(head_ranks(1, "alltoall", kMegatron), 1);
}

// Without attention tensor ranks may be more than there are heads.
TEST(ContextSplit, RefusesHeadsThatTensorRanksDoNotHave) {
  workload::Workload workload = llama(workload::Framework::kFsdp);
  workload.model.kv_heads = 1;
  workload.model.layer_kinds.mamba_mlp = 4;
  workload.model.mamba.heads = 32;
  space::Configuration configuration = shared_by(2, "alltoall");
  configuration.set("tensor_parallel", std::int64_t{2});
  const auto knobs = schedule::knobs_of(workload, eight_gpus(), configuration);
  ASSERT_TRUE(std::holds_alternative<schedule::NotModelled>(knobs));
  EXPECT_NE(std::get<schedule::NotModelled>(knobs).what.find("alltoall"), std::string::npos);
}

// Neighbours exchange heads, and keys and values of all their tokens go round between such groups.
TEST(ContextSplit, ExchangesHeadsWithinNodesAndPassesKeysBetweenThem) {
  workload::ClusterSpec cluster = eight_gpus();
  cluster.nodes = 4;
  cluster.gpus_per_node = 2;
  const schedule::Knobs knobs = schedule::read_knobs(llama(), cluster, shared_by(8, "alltoall+ring"));
  const cost::ContextExchange exchange = cost::context_exchange(llama(), knobs, 2);
  EXPECT_EQ(exchange.rounds, 4);
  EXPECT_EQ(exchange.span.nodes, 4);
  EXPECT_EQ(exchange.head_ranks_per_node, 2);
  EXPECT_EQ(exchange.keys_and_values_bytes, kTokens / 8 * 2 * 4 * 64 * 2);
  EXPECT_EQ(exchange.heads_bytes, kTokens / 8 * (2 * 1024 + 2 * 4 * 64) * 2);
}

// 8 ranks with the 4 heads of keys send each of them twice.
TEST(ContextSplit, SendsKeysAsOftenAsRanksNeedThem) {
  const schedule::Knobs knobs =
      schedule::read_knobs(llama(workload::Framework::kFsdp), eight_gpus(), shared_by(8, "alltoall"));
  const cost::ContextExchange exchange = cost::context_exchange(llama(workload::Framework::kFsdp), knobs, 8);
  EXPECT_EQ(exchange.heads_bytes, kTokens / 8 * (2 * 1024 + 2 * 8 * 64) * 2);
}

TEST(ContextSplit, HidesTheExchangeBehindAttention) {
  const cost::Machine slow = machine_of(workload::OpClass::kAttention, 1e9, 1e9);
  EXPECT_EQ(cost_of(slow, shared_by(4)).context_comm_s, 0.0);
}

TEST(ContextSplit, ReducesGradientsAmongAllRanksOfTheSameParameters) {
  const cost::Machine machine = machine_of(workload::OpClass::kProduct, 1e12, 1e9);
  EXPECT_EQ(cost_of(machine, shared_by(4)).data_wire_bytes, cost_of(machine, shared_by(1)).data_wire_bytes);
}

cost::MemoryEstimate memory_of(const space::Configuration& configuration) {
  return cost::MemoryModel(llama(), eight_gpus(), {}).estimate(configuration);
}

TEST(ContextSplit, DividesActivationsAndNotStates) {
  const auto bytes = [](const cost::MemoryEstimate& estimate, schedule::Term term) {
    return static_cast<double>(estimate.term_bytes[static_cast<std::size_t>(term)]);
  };
  const cost::MemoryEstimate alone = memory_of(shared_by(1));
  const cost::MemoryEstimate shared = memory_of(shared_by(4));
  for (const schedule::Term term :
       {schedule::Term::kParameters, schedule::Term::kGradients, schedule::Term::kOptimizerState}) {
    EXPECT_EQ(bytes(shared, term), bytes(alone, term)) << schedule::to_string(term);
  }
  for (const schedule::Term term : {schedule::Term::kActivations, schedule::Term::kLogits}) {
    EXPECT_NEAR(bytes(shared, term) / bytes(alone, term), 0.25, 0.01) << schedule::to_string(term);
  }
}

TEST(ContextSplit, RoundsTokensUpToWhatTensorRanksDivide) {
  schedule::Knobs knobs;
  knobs.tensor_ranks = 4;
  knobs.context_ranks = 3;
  EXPECT_EQ(cost::share_of_rank(llama(), knobs).model.seq_len, 2731);
  knobs.sequence_parallel = true;
  EXPECT_EQ(cost::share_of_rank(llama(), knobs).model.seq_len, 2732);
  knobs.context_ranks = 1;
  EXPECT_EQ(cost::share_of_rank(llama(), knobs).model, llama().model);
}

// krigtune-bench plans every byte of what it executes, but it does not execute this.
TEST(ContextSplit, IsJudgedWithoutAPlanOfEveryByte) {
  const workload::Workload workload = llama(workload::Framework::kKrigtune);
  const cost::MemoryModel model(workload, eight_gpus(), {});
  const Bytes needed = model.estimate(shared_by(4)).expected;
  EXPECT_EQ(model.verdict(shared_by(4), needed, needed).verdict, plan::Verdict::kFits);
}

// Batch identity: the ranks that share a sequence count once.
TEST(ContextSplit, KeepsTheSequencesOfAStep) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    const schedule::Knobs knobs = schedule::read_knobs(llama(), eight_gpus(), shared_by(ranks));
    EXPECT_EQ(knobs.sequences(), 16) << ranks;
    EXPECT_EQ(knobs.data_ranks, 8) << ranks;
    EXPECT_EQ(knobs.micro_steps, 2 * ranks) << ranks;
  }
}

}  // namespace krigtune::context_split_test
