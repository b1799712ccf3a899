// Expert parallelism: the same tokens and experts, distributed otherwise.
#include "cost/expert_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <string>

#include "core/csv.h"
#include "core/files.h"
#include "cost/cost_fixtures.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "krigtune/rng.h"
#include "scores.h"
#include "workload/hub_models.h"

namespace krigtune::expert_split_test {
namespace {

constexpr std::int64_t kExperts = 16;
constexpr std::int64_t kPerToken = 4;

workload::Workload mixture(workload::Framework framework = workload::Framework::kMegatron) {
  workload::Workload workload;
  workload::ModelSpec& model = workload.model;
  model = {.layers = 4, .hidden = 1024, .heads = 16, .kv_heads = 4, .ffn_hidden = 2048, .vocab = 32000};
  model.seq_len = 2048;
  model.gated_mlp = true;
  model.positions = workload::Positions::kRotary;
  model.norm = workload::Norm::kRmsNorm;
  model.experts = {kExperts, kPerToken, 512, 0};
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  return workload;
}

space::Configuration spread_over(std::int64_t ranks, std::int64_t stage = 1) {
  return {{"zero_stage", stage}, {"micro_batch", std::int64_t{1}}, {"expert_parallel", ranks}};
}

cost::Machine links() { return links_of(100e9, 10e9); }

double elems_of_experts(const workload::ModelSpec& model) {
  return static_cast<double>(model.layers * model.experts.count * 3 * model.hidden * model.experts.ffn_hidden);
}

// Megatron: 2 bytes of parameters and 4 of gradients for what a rank has, and 12 of optimizer states shared by all that
// have the same (its distributed optimizer, which has a group of its own for experts).
TEST(ExpertSplit, StatesAreThoseOfTheExpertsThatARankHas) {
  const workload::Workload workload = mixture();
  const double experts = elems_of_experts(workload.model);
  const double others = static_cast<double>(parameter_count(workload.model)) - experts;
  const cost::MemoryModel memory(workload, gpus(2), {});
  for (const std::int64_t ranks : {1, 2, 8, 16}) {
    const auto of = [&](schedule::Term term) {
      return static_cast<double>(memory.estimate(spread_over(ranks)).term_bytes[static_cast<std::size_t>(term)]);
    };
    const double own = others + experts / static_cast<double>(ranks);
    EXPECT_NEAR(of(schedule::Term::kParameters) / (2.0 * own), 1.0, 1e-6) << ranks;
    EXPECT_NEAR(of(schedule::Term::kGradients) / (4.0 * own), 1.0, 1e-6) << ranks;
    EXPECT_NEAR(of(schedule::Term::kOptimizerState) / (12.0 * (others + experts) / 16.0), 1.0, 1e-6) << ranks;
  }
}

// Four times in a step without recomputation: to the experts and back, forward and backward. Each time a rank sends
// k h bytes of each token to the others, and those of its own node over faster links.
TEST(ExpertSplit, TokensGoToTheirExpertsAndBack) {
  const workload::Workload workload = mixture();
  const double bytes = 2.0 * 2048.0 * static_cast<double>(kPerToken) * 1024.0;
  const auto seconds = [&](std::int64_t ranks) {
    return cost::StepCostModel(workload, gpus(2), links())(spread_over(ranks)).expert_comm_s;
  };
  EXPECT_EQ(seconds(1), 0.0);
  const double within_s = 4.0 * 4.0 * bytes * (7.0 / 8.0) / 100e9;
  const double between_s = 4.0 * 4.0 * bytes * (8.0 / 16.0) / 10e9;
  EXPECT_GT(seconds(8), within_s);  // and the latency of sixteen exchanges
  EXPECT_LT(seconds(8), within_s + 16.0 * 100e-6);
  EXPECT_GT(seconds(16), between_s);
  EXPECT_LT(seconds(16), between_s + 16.0 * 200e-6);
  const cost::StepCost again = cost::StepCostModel(workload, gpus(2), links())(
      {{"zero_stage", std::int64_t{1}}, {"expert_parallel", std::int64_t{8}}, {"activation_checkpointing", "full"}});
  EXPECT_NEAR(again.expert_comm_s / seconds(8), 1.5, 1e-9) << "recomputation sends them again";
}

// Megatron sends 4 bytes of a gradient and 2 of an updated parameter, each once around the ranks that share it. Nobody
// shares an expert that one rank has.
TEST(ExpertSplit, GradientsOfAnExpertGoRoundTheRanksThatHaveIt) {
  const workload::Workload workload = mixture();
  const double experts = elems_of_experts(workload.model);
  const double others = static_cast<double>(parameter_count(workload.model)) - experts;
  for (const std::int64_t ranks : {1, 2, 8, 16}) {
    const double sharing = 16.0 / static_cast<double>(ranks);
    const double own = experts / static_cast<double>(ranks);
    const double bytes = 6.0 * (others * 15.0 / 16.0 + own * (sharing - 1.0) / sharing);
    const cost::StepCost step = cost::StepCostModel(workload, gpus(2), links())(spread_over(ranks));
    EXPECT_NEAR(step.data_wire_bytes / bytes, 1.0, 1e-4) << ranks;
  }
}

// With eight ranks of a node for eight parts of the experts, each of them exchanges gradients by its own card; the
// others' gradients go round all ranks, by all cards.
TEST(ExpertSplit, GradientsOfAnExpertCrossTheNetworkByOneCard) {
  const workload::Workload workload = mixture();
  const double own = elems_of_experts(workload.model) / 8.0;
  const auto seconds = [&](std::int64_t ranks) {
    return cost::StepCostModel(workload, gpus(2), links())(spread_over(ranks)).data_comm_s;
  };
  EXPECT_GT(seconds(8) - seconds(16), 6.0 * own / 2.0 / 10e9);
}

space::Configuration of_two_tensor_ranks(std::int64_t expert_ranks, std::int64_t expert_tensor_ranks) {
  space::Configuration configuration = spread_over(expert_ranks);
  configuration.set("tensor_parallel", std::int64_t{2});
  configuration.set("sequence_parallel", true);
  configuration.set("expert_tensor_parallel", expert_tensor_ranks);
  return configuration;
}

// Of whole experts a rank has one part in expert_parallel, and the tensor ranks share their states too (folded
// parallelism: arXiv:2504.14960).
TEST(ExpertSplit, WholeExpertsAreSharedByDataAndTensorRanks) {
  const workload::Workload workload = mixture();
  const double experts = elems_of_experts(workload.model);
  const cost::MemoryModel memory(workload, gpus(2), {});
  const auto bytes = [&](std::int64_t ranks, std::int64_t expert_tensor_ranks, schedule::Term term) {
    return static_cast<double>(
        memory.estimate(of_two_tensor_ranks(ranks, expert_tensor_ranks)).term_bytes[static_cast<std::size_t>(term)]);
  };
  const auto parameters = [&](std::int64_t ranks, std::int64_t expert_tensor_ranks) {
    return bytes(ranks, expert_tensor_ranks, schedule::Term::kParameters);
  };
  EXPECT_NEAR((parameters(4, 1) - parameters(16, 1)) / (2.0 * experts * (1.0 / 4.0 - 1.0 / 16.0)), 1.0, 1e-6);
  EXPECT_NEAR(parameters(8, 1) / parameters(4, 2), 1.0, 1e-6) << "a quarter of half experts is an eighth of whole ones";
  EXPECT_EQ(parameters(4, 0), parameters(4, 2)) << "0 is as many as tensor_parallel";
  for (const std::int64_t ranks : {1, 2, 16}) {
    EXPECT_NEAR(bytes(ranks, 1, schedule::Term::kOptimizerState) / bytes(4, 2, schedule::Term::kOptimizerState), 1.0,
                1e-6)
        << ranks;
  }
}

TEST(ExpertSplit, WholeExpertsComputeAsMuch) {
  cost::Machine machine = links();
  machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = 1e14;
  workload::Workload workload = mixture();
  workload.model.experts.shared_ffn_hidden = 512;
  const auto seconds = [&](std::int64_t expert_tensor_ranks) {
    return cost::StepCostModel(workload, gpus(2), machine)(of_two_tensor_ranks(8, expert_tensor_ranks)).products_s;
  };
  // But for half a tile of each expert, which has half as many tokens, and for products over half as many numbers.
  EXPECT_NEAR(seconds(1) / seconds(2), 1.0, 0.1);
}

// A token that several experts of a rank or of a node want goes there once.
TEST(ExpertSplit, TokensThatAreSentOnceToANodeAreFewer) {
  const workload::Workload workload = mixture();
  Rng rng(20261129, 0);
  constexpr int kTokens = 200'000;
  double ranks_reached = 0.0;
  double nodes_reached = 0.0;
  for (int token = 0; token < kTokens; ++token) {
    std::set<std::int64_t> ranks, nodes;
    for (std::int64_t k = 0; k < kPerToken; ++k) {
      const auto rank = static_cast<std::int64_t>(rng.below(16));
      ranks.insert(rank);
      nodes.insert(rank / 8);
    }
    ranks_reached += static_cast<double>(ranks.size()) / kTokens;
    nodes_reached += static_cast<double>(nodes.size()) / kTokens;
  }
  const auto seconds = [&](const char* dispatch, std::int64_t ranks) {
    space::Configuration configuration = spread_over(ranks);
    configuration.set("moe_dispatch", std::string(dispatch));
    return cost::StepCostModel(workload, gpus(2), links())(configuration).expert_comm_s;
  };
  const double token_bytes = 2.0 * 2048.0 * 1024.0;
  const double beyond_s = 16.0 * token_bytes * nodes_reached / 2.0 / 10e9;
  EXPECT_NEAR(seconds("flex", 16) / beyond_s, 1.0, 0.1) << nodes_reached << " nodes, " << ranks_reached << " ranks";
  EXPECT_NEAR(seconds("flex", 16) / seconds("alltoall", 16), nodes_reached / 4.0, 0.02);
  const double gathered_s = 16.0 * token_bytes * 7.0 / 100e9;
  EXPECT_GT(seconds("allgather", 8), gathered_s);  // and the latency of sixteen exchanges
  EXPECT_LT(seconds("allgather", 8), gathered_s + 16.0 * 200e-6);
}

TEST(ExpertSplit, WholeExpertsNeedOwnTokens) {
  space::Configuration configuration = of_two_tensor_ranks(8, 1);
  configuration.set("sequence_parallel", false);
  const auto knobs = schedule::knobs_of(mixture(), gpus(2), configuration);
  ASSERT_TRUE(std::holds_alternative<schedule::NotModelled>(knobs));
  EXPECT_NE(std::get<schedule::NotModelled>(knobs).what.find("needs sequence_parallel"), std::string::npos);
  EXPECT_TRUE(
      std::holds_alternative<schedule::NotModelled>(schedule::knobs_of(mixture(), gpus(2), of_two_tensor_ranks(8, 4))))
      << "neither 1 nor 2";
  EXPECT_TRUE(
      std::holds_alternative<schedule::Knobs>(schedule::knobs_of(mixture(), gpus(2), of_two_tensor_ranks(16, 1))))
      << "sixteen ranks of both kinds share the experts";
}

TEST(ExpertSplit, IsModelledWhereRanksDivideIt) {
  const auto is_modelled = [](const workload::Workload& workload, std::int64_t ranks) {
    const auto knobs = schedule::knobs_of(workload, gpus(1), spread_over(ranks));
    return std::holds_alternative<schedule::Knobs>(knobs);
  };
  EXPECT_TRUE(is_modelled(mixture(), 8));
  EXPECT_FALSE(is_modelled(mixture(), 16)) << "there are 8 ranks";
  workload::Workload twelve = mixture();
  twelve.model.experts.count = 12;
  EXPECT_FALSE(is_modelled(twelve, 8)) << "12 experts";
  workload::Workload dense = mixture();
  dense.model.experts = {};
  EXPECT_TRUE(is_modelled(dense, 8)) << "without experts it changes nothing";
}

// How a whole space of one job, as SimuMax computes it, compares with predictions (experiments/data/worlds).
struct Agreement {
  std::size_t rows = 0;
  double rank_correlation = 0.0;            ///< of step times
  double log_mean = 0.0, log_stddev = 0.0;  ///< of predicted over computed peaks
};

// `fixed`: what the table does not vary. Rows that run out of memory have no time.
Agreement agreement(const std::string& world, workload::Workload workload, const workload::ClusterSpec& cluster,
                    const space::Configuration& fixed) {
  workload.precision = workload::Precision::kBf16;
  workload.framework = workload::Framework::kMegatron;
  const cost::StepCostModel cost(workload, cluster);
  const cost::MemoryModel memory(workload, cluster, {});
  const std::string path = std::string(KRIGTUNE_EXPERIMENTS_DATA) + "/worlds/" + world + ".csv";
  const CsvTable table = parse_csv(read_text(path), path);
  std::vector<double> predicted, theirs;
  double log_ratios = 0.0;
  double squares = 0.0;
  for (const std::vector<std::string>& row : table.rows) {
    const auto cell = [&](const char* name) { return row[static_cast<std::size_t>(table.column(name))]; };
    if (cell("status") != "ok") continue;
    space::Configuration configuration = fixed;
    for (const char* name :
         {"tensor_parallel", "pipeline_parallel", "virtual_pipeline", "expert_parallel", "micro_batch"}) {
      if (table.column(name) >= 0) configuration.set(name, static_cast<std::int64_t>(std::stoll(cell(name))));
    }
    configuration.set("activation_checkpointing", cell("activation_checkpointing"));
    const auto step = cost.if_modelled(configuration);
    if (!step) continue;
    predicted.push_back(step->step_time_s);
    theirs.push_back(std::stod(cell("step_time_s")));
    const double log_ratio = std::log(static_cast<double>(memory.estimate(configuration).expected.count) /
                                      std::stod(cell("peak_memory_bytes")));
    log_ratios += log_ratio;
    squares += log_ratio * log_ratio;
  }
  const auto rows = static_cast<double>(predicted.size());
  const Agreement found{predicted.size(), accuracy::spearman(predicted, theirs), log_ratios / rows,
                        std::sqrt(squares / rows - log_ratios * log_ratios / (rows * rows))};
  std::printf("%s, %zu rows: rank correlation of times %.3f, logarithm of peaks %.3f +- %.3f\n", world.c_str(),
              found.rows, found.rank_correlation, found.log_mean, found.log_stddev);
  return found;
}

// DeepSeek-V2-Lite (with 28 layers) on two nodes of 8 B200. No number was fitted to it, but how products of experts
// share a device was chosen with it.
TEST(ExpertSplit, RanksAWholeSpaceAsSimuMaxDoes) {
  workload::Workload workload;
  workload.training.fused_experts = true;  // SimuMax has one kernel for the products of all experts
  workload.model = workload::hub_model("deepseek-v2-lite")->sizes;
  workload.model.layers = 28;
  workload.model.seq_len = 4096;
  workload.train_batch_size = 512;
  const workload::ClusterSpec cluster = workload::read_cluster(
      Json{{"nodes", 2}, {"gpus_per_node", 8}, {"gpu", "b200-180gb"}, {"network", "ib-ndr-400"}}, "test", "/cluster");
  const Agreement found = agreement("deepseekv2lite_16xb200", workload, cluster, {{"zero_stage", std::int64_t{1}}});
  EXPECT_GT(found.rows, 80U);
  EXPECT_GT(found.rank_correlation, 0.94);
  EXPECT_NEAR(found.log_mean, 0.0, 0.08);
  EXPECT_LT(found.log_stddev, 0.12);
}

// Mixtral 8x7B on four nodes of 8 B200, with which nothing was chosen. SimuMax has whole experts on tensor ranks, so
// these predictions are better than with experts that tensor parallelism splits.
TEST(ExpertSplit, RanksASpaceOfWholeExpertsAsSimuMaxDoes) {
  workload::Workload workload;
  workload.training.fused_experts = true;
  workload.model = workload::hub_model("mixtral-8x7b")->sizes;
  workload.model.seq_len = 4096;
  workload.train_batch_size = 256;
  const workload::ClusterSpec cluster = workload::read_cluster(
      Json{{"nodes", 4}, {"gpus_per_node", 8}, {"gpu", "b200-180gb"}, {"network", "ib-ndr-400"}}, "test", "/cluster");
  const auto with = [&](std::int64_t expert_tensor_ranks) {
    return agreement("mixtral8x7b_32xb200", workload, cluster,
                     {{"zero_stage", std::int64_t{1}},
                      {"sequence_parallel", true},
                      {"expert_tensor_parallel", expert_tensor_ranks}});
  };
  const Agreement whole = with(1);
  const Agreement split = with(0);
  EXPECT_GT(whole.rows, split.rows);
  EXPECT_GT(whole.rank_correlation, split.rank_correlation);
  EXPECT_GT(whole.rank_correlation, 0.85);
}

// Published runs of Megatron-Bridge, which nothing here was fitted to, with its dispatchers. Times are rough: the
// host's work for small kernels is not modelled. So the limits are wide.
TEST(ExpertSplit, PublishedRunsAreForeseenWithinAFactor) {
  const std::string path = std::string(KRIGTUNE_EXPERIMENTS_DATA) + "/experts_runs.csv";
  const CsvTable table = parse_csv(read_text(path), path);
  ASSERT_EQ(table.rows.size(), 6U);
  for (const std::vector<std::string>& row : table.rows) {
    const auto cell = [&](const char* name) { return row[static_cast<std::size_t>(table.column(name))]; };
    const auto count = [&](const char* name) { return static_cast<std::int64_t>(std::stoll(cell(name))); };
    workload::Workload workload;
    workload.model = workload::hub_model(cell("model"))->sizes;
    workload.model.seq_len = count("seq_len");
    workload.precision = workload::Precision::kBf16;
    workload.framework = workload::Framework::kMegatron;
    workload.train_batch_size = count("train_batch_size");
    const workload::ClusterSpec cluster = workload::read_cluster(
        Json{{"nodes", count("gpus") / 8}, {"gpus_per_node", 8}, {"gpu", cell("gpu")}, {"network", "ib-ndr-400"}},
        "test", "/cluster");
    space::Configuration configuration = {{"zero_stage", std::int64_t{1}}, {"overlap_comm", true}};
    configuration.set("moe_dispatch", std::string("flex"));
    for (const char* name : {"micro_batch", "pipeline_parallel", "expert_parallel"})
      configuration.set(name, count(name));
    configuration.set("activation_checkpointing", cell("checkpointing"));
    const double step_s = cost::StepCostModel(workload, cluster)(configuration).step_time_s;
    const double tokens = static_cast<double>(*workload.train_batch_size * workload.model.seq_len) /
                          (step_s * static_cast<double>(count("gpus")));
    const double ratio = tokens / std::stod(cell("tokens_per_s_per_gpu"));
    const double peak_gib =
        static_cast<double>(cost::MemoryModel(workload, cluster, {}).estimate(configuration).expected.count) /
        (1024.0 * 1024.0 * 1024.0);
    std::printf("%s on %s %s, expert_parallel %s: tokens/s predicted / measured %.2f, peak %.1f GiB\n",
                cell("model").c_str(), cell("gpus").c_str(), cell("gpu").c_str(), cell("expert_parallel").c_str(),
                ratio, peak_gib);
    EXPECT_GT(ratio, 0.55);
    EXPECT_LT(ratio, 1.75);
    if (cell("peak_gib").empty()) continue;
    EXPECT_NEAR(peak_gib / std::stod(cell("peak_gib")), 1.0, 0.1);
  }
}

}  // namespace
}  // namespace krigtune::expert_split_test
