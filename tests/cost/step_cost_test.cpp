// The compressed plan against the clock on the full plan.
#include "krigtune/cost/step_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "krigtune/cost/virtual_clock.h"
#include "krigtune/plan/build_plan.h"
#include "pipeline.h"

namespace krigtune {
namespace {

template <class T>
const T& one_of(std::mt19937_64& random, const std::vector<T>& values) {
  return values[random() % values.size()];
}

struct Case {
  Workload workload;
  ClusterSpec cluster;
  Configuration configuration;
};

DeviceSpec device(std::mt19937_64& random) {
  DeviceSpec device;
  device.id = "test";
  device.fp32_flops_per_s = one_of<double>(random, {1e12, 2e13});
  device.fp16_flops_per_s = device.bf16_flops_per_s = 8.0 * device.fp32_flops_per_s;
  device.memory_bytes_per_s = one_of<double>(random, {2e11, 2e12});
  device.gemm_half_flops = one_of<double>(random, {1e8, 5e9});
  device.launch_s = one_of<double>(random, {0.0, 3e-6});
  device.host_bytes_per_s = 2e10;
  return device;
}

Workload workload(std::mt19937_64& random) {
  Workload workload;
  ModelSpec& model = workload.model;
  const bool llama = random() % 2 == 0;
  model.layers = one_of<std::int64_t>(random, {2, 3, 4, 6, 8});
  model.hidden = one_of<std::int64_t>(random, {64, 256, 512, 1024});
  model.heads = model.kv_heads = 8;
  model.ffn_hidden = 4 * model.hidden;
  model.vocab = one_of<std::int64_t>(random, {1000, 8000, 30001});
  model.seq_len = one_of<std::int64_t>(random, {64, 256, 512});
  model.attention = one_of<Attention>(random, {Attention::kFlash, Attention::kEager});
  model.dropout = one_of<double>(random, {0.0, 0.1});
  if (llama) {
    model.gated_mlp = true;
    model.positions = Positions::kRotary;
    model.norm = Norm::kRmsNorm;
  }
  model.tied_embeddings = random() % 2 == 0;
  workload.precision = one_of<Precision>(random, {Precision::kFp32, Precision::kBf16, Precision::kFp16});
  workload.optimizer = one_of<OptimizerKind>(random, {OptimizerKind::kAdamW, OptimizerKind::kSgd});
  workload.dialect = one_of<Dialect>(random, {Dialect::kCanonical, Dialect::kDeepSpeed});
  workload.gradient_clipping = one_of<double>(random, {0.0, 1.0});
  return workload;
}

Configuration configuration(std::mt19937_64& random) {
  const auto size = [&] { return one_of<std::int64_t>(random, {1000, 100'000, 1'000'000, 10'000'000, 500'000'000}); };
  return {{"zero_stage", static_cast<std::int64_t>(random() % 4)},
          {"micro_batch", one_of<std::int64_t>(random, {1, 2, 4})},
          {"gradient_accumulation_steps", one_of<std::int64_t>(random, {1, 2, 3, 5, 8})},
          {"reduce_bucket_size", size()},
          {"allgather_bucket_size", size()},
          {"overlap_comm", random() % 3 != 0},
          {"tensor_parallel", one_of<std::int64_t>(random, {1, 1, 2, 4})},
          {"sequence_parallel", random() % 2 == 0},
          {"activation_checkpointing", one_of<std::string>(random, {"none", "selective", "full"})},
          {"activation_checkpointing_layers", one_of<std::int64_t>(random, {1, 2, 3})},
          {"offload_optimizer", one_of<std::string>(random, {"none", "none", "cpu"})},
          {"offload_param", one_of<std::string>(random, {"none", "none", "cpu"})},
          {"stage3_prefetch_bucket_size", size()},
          {"stage3_param_persistence_threshold", one_of<std::int64_t>(random, {0, 1000, 100'000})},
          {"stage3_max_live_parameters", size()},
          {"stage3_max_reuse_distance", size()}};
}

ClusterSpec cluster(std::mt19937_64& random) {
  ClusterSpec cluster;
  cluster.nodes = one_of<std::int64_t>(random, {1, 2});
  cluster.gpus_per_node = one_of<std::int64_t>(random, {4, 8});
  cluster.device = device(random);
  NodeNetwork network;
  network.ranks_per_node = cluster.gpus_per_node;
  network.intra = {"intra", Hop::kNvlink, 1e-6, one_of<double>(random, {2e10, 3e11})};
  network.inter = {"inter", Hop::kNetwork, 1e-6, one_of<double>(random, {1e9, 2.5e10})};
  cluster.network = network;
  return cluster;
}

struct Comparison {
  double full_s = 0.0;
  double compressed_s = 0.0;
  double error() const { return std::abs(compressed_s / full_s - 1.0); }
};

double rank_correlation(const std::vector<Comparison>& all) {
  const auto ranks = [&](auto value) {
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return value(all[a]) < value(all[b]); });
    std::vector<double> rank(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
    return rank;
  };
  const std::vector<double> a = ranks([](const Comparison& one) { return one.full_s; });
  const std::vector<double> b = ranks([](const Comparison& one) { return one.compressed_s; });
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  const auto n = static_cast<double>(a.size());
  return 1.0 - 6.0 * squares / (n * (n * n - 1.0));
}

double quantile(std::vector<double> values, double level) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(level * static_cast<double>(values.size() - 1))];
}

// Of collectives, each alone.
double communication_s(const StepPlan& plan, const Machine& machine) {
  double sum = 0.0;
  for (const Operation& operation : plan.operations) {
    if (is_collective(operation.kind)) sum += operation_time_s(machine, plan, operation);
  }
  return sum;
}

double sent_bytes(const StepPlan& plan, Group group) {
  double bytes = 0.0;
  for (const Operation& operation : plan.operations) {
    if (operation.group == group) bytes += static_cast<double>(operation.wire_bytes);
  }
  return bytes;
}

double parts_s(const StepCost& cost) {
  return cost.products_s + cost.memory_bound_s + cost.optimizer_s + cost.exposed_comm_s + cost.offload_s +
         cost.bubble_s + cost.idle_s;
}

// Where the time goes, beside how much of it there is. Of the step: `most`.
void expect_same_breakdown(const StepCost& cost, const StepBreakdown& full, double most) {
  const double kernels_s = std::accumulate(full.compute_s.begin(), full.compute_s.end(), 0.0);
  const double offload_s = full.activities[static_cast<std::size_t>(Activity::kCopies)].exposed_s +
                           full.activities[static_cast<std::size_t>(Activity::kHost)].exposed_s;
  const double step_s = cost.step_time_s;
  EXPECT_LE(std::abs(cost.products_s + cost.memory_bound_s + cost.optimizer_s - kernels_s), most * step_s);
  EXPECT_LE(std::abs(cost.exposed_comm_s - full.exposed_comm_s()), most * step_s);
  EXPECT_LE(std::abs(cost.offload_s - offload_s), most * step_s);
}

// The bounds are what it reaches, rounded up.
TEST(StepCostModel, EqualsTheClockOnTheFullPlan) {
  std::mt19937_64 random(7);
  std::vector<Comparison> all;
  std::vector<double> errors;
  for (int i = 0; i < 400; ++i) {
    const Case one{workload(random), cluster(random), configuration(random)};
    const StepPlan plan = build_plan(one.workload, one.cluster, one.configuration);
    const Machine machine = make_machine(one.workload, one.cluster);
    const PredictedStep full = predict_step(plan, machine);
    const StepCost cost = StepCostModel(one.workload, one.cluster)(one.configuration);
    all.push_back({full.step_time_s, cost.step_time_s});
    errors.push_back(all.back().error());
    SCOPED_TRACE(std::to_string(i) + ": " + one.configuration.text());
    EXPECT_LE(errors.back(), 0.02);
    EXPECT_EQ(cost.tensor_wire_bytes, sent_bytes(plan, Group::kTensor));
    EXPECT_EQ(cost.data_wire_bytes, sent_bytes(plan, Group::kData));
    EXPECT_LE(std::abs(parts_s(cost) / cost.step_time_s - 1.0), 1e-9);
    const double sent_s = communication_s(plan, machine);
    EXPECT_LE(std::abs(cost.tensor_comm_s + cost.data_comm_s - sent_s), 1e-9 * sent_s);
    expect_same_breakdown(cost, full.breakdown, 0.02);
  }
  EXPECT_LE(quantile(errors, 0.5), 1e-4);
  EXPECT_LE(quantile(errors, 0.99), 0.005);
  EXPECT_GE(rank_correlation(all), 0.9999);
}

// Stage by stage, task by task: warm-up forwards, then one forward and one backward, then the backwards that are left.
// A task starts when its stage is free and what it needs has arrived; sending is a part of the task.
double simulated_pipeline_s(const std::vector<StageTime>& stages, int micro_steps, double send_s) {
  const int p = static_cast<int>(stages.size());
  std::vector<std::vector<std::pair<bool, int>>> tasks(stages.size());  // backward, micro-step
  for (int i = 0; i < p; ++i) {
    const int warm_up = std::min(micro_steps, p - i - 1);
    auto& of_stage = tasks[static_cast<std::size_t>(i)];
    for (int m = 0; m < warm_up; ++m) of_stage.emplace_back(false, m);
    for (int m = warm_up; m < micro_steps; ++m) {
      of_stage.emplace_back(false, m);
      of_stage.emplace_back(true, m - warm_up);
    }
    for (int m = micro_steps - warm_up; m < micro_steps; ++m) of_stage.emplace_back(true, m);
  }
  std::map<std::tuple<int, bool, int>, double> done;
  std::vector<std::size_t> next(stages.size());
  std::vector<double> free_s(stages.size());
  for (bool progress = true; progress;) {
    progress = false;
    for (int i = 0; i < p; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (next[at] == tasks[at].size()) continue;
      const auto [backward, m] = tasks[at][next[at]];
      double ready_s = free_s[at];
      const int neighbour = backward ? i + 1 : i - 1;
      if (neighbour >= 0 && neighbour < p) {
        const auto arrived = done.find({neighbour, backward, m});
        if (arrived == done.end()) continue;
        ready_s = std::max(ready_s, arrived->second);
      }
      const bool sends_on = backward ? i > 0 : i + 1 < p;
      free_s[at] = ready_s + (backward ? stages[at].backward_s : stages[at].forward_s) + (sends_on ? send_s : 0.0);
      done[{i, backward, m}] = free_s[at];
      ++next[at];
      progress = true;
    }
  }
  for (std::size_t i = 0; i < stages.size(); ++i) free_s[i] += stages[i].rest_s;
  return *std::max_element(free_s.begin(), free_s.end());
}

TEST(Pipeline, TakesWhatASimulationOfItsTasksTakes) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  for (int i = 0; i < 300; ++i) {
    const bool alike = i % 2 == 0;
    const auto p = static_cast<std::size_t>(one_of<int>(random, {2, 3, 4, 8}));
    const int k = one_of<int>(random, {1, 2, 4, 8, 32});
    const double send_s = one_of<double>(random, {0.0, 0.05});
    std::vector<StageTime> stages(p, {1.0, 2.0, 0.5});
    for (StageTime& stage : stages) {
      if (!alike) stage = {uniform(random), 2.0 * uniform(random), uniform(random)};
    }
    const double expected_s = simulated_pipeline_s(stages, k, send_s);
    const double error = one_forward_one_backward_s(stages, k, send_s) / expected_s - 1.0;
    SCOPED_TRACE(std::to_string(p) + " stages, " + std::to_string(k) + " micro-steps");
    EXPECT_LE(std::abs(error), k <= 3 * static_cast<int>(p) ? 1e-12 : 0.015);
    if (!alike || send_s > 0.0) continue;
    EXPECT_NEAR(expected_s, static_cast<double>(k + static_cast<int>(p) - 1) * 3.0 + 0.5, 1e-9);
  }
}

TEST(Pipeline, SharesLayersEvenlyOrByWhatTheHeadCosts) {
  EXPECT_EQ(stage_layers(10, 4, true, 2.0), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(stage_layers(10, 4, false, 2.0), (std::vector<std::int64_t>{3, 3, 3, 1}));
  EXPECT_EQ(stage_layers(8, 1, false, 9.0), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(stage_layers(4, 4, false, 9.0), (std::vector<std::int64_t>{1, 1, 1, 1}));
}

Workload gpt(Framework framework) {
  Workload workload;
  workload.model = {
      .layers = 8, .hidden = 1024, .heads = 16, .kv_heads = 16, .ffn_hidden = 4096, .vocab = 128, .seq_len = 512};
  workload.precision = Precision::kBf16;
  workload.framework = framework;
  return workload;
}

ClusterSpec fast_cluster() {
  ClusterSpec cluster;
  cluster.gpus_per_node = 8;
  cluster.device = DeviceSpec{};
  cluster.device->fp32_flops_per_s = 2e13;
  cluster.device->bf16_flops_per_s = 3e14;
  cluster.device->memory_bytes_per_s = 2e12;
  cluster.device->host_bytes_per_s = 2e10;
  cluster.network = NodeNetwork{{"intra", Hop::kNvlink, 0.0, 2e11}, {"inter", Hop::kNetwork, 1e-6, 2e10}, 8};
  return cluster;
}

TEST(StepCostModel, LeavesPipelineStagesTheBubbleOfTheTextbook) {
  for (const std::int64_t p : {2, 4}) {
    for (const std::int64_t k : {4, 16}) {
      const Configuration configuration = {
          {"pipeline_parallel", p}, {"gradient_accumulation_steps", k}, {"micro_batch", std::int64_t{4}}};
      const StepCost cost = StepCostModel(gpt(Framework::kMegatron), fast_cluster())(configuration);
      const double fraction = static_cast<double>(p - 1) / static_cast<double>(k + p - 1);
      const double once_s = cost.optimizer_s + cost.idle_s + cost.data_comm_s;
      EXPECT_LE(std::abs(cost.bubble_s / (cost.step_time_s - once_s) - fraction), 0.1 * fraction);
      EXPECT_LE(std::abs(parts_s(cost) / cost.step_time_s - 1.0), 1e-9);
      EXPECT_GT(cost.pipeline_comm_s, 0.0);
    }
  }
}

// 4 P of fp32 gradients reduced and scattered, 2 P of bf16 parameters gathered, each times 7/8.
TEST(StepCostModel, ReducesInTheFrameworksTypeAndWhenItDoes) {
  const Configuration stage1 = {{"zero_stage", std::int64_t{1}}, {"gradient_accumulation_steps", std::int64_t{4}}};
  const auto parameters = static_cast<double>(parameter_count(gpt(Framework::kFsdp).model));
  const auto sent = [&](Framework framework, std::int64_t stage) {
    Configuration configuration = stage1;
    configuration.set("zero_stage", stage);
    return StepCostModel(gpt(framework), fast_cluster())(configuration).data_wire_bytes / (parameters * 7.0 / 8.0);
  };
  EXPECT_LE(std::abs(sent(Framework::kNanotron, 1) - 6.0), 0.01);
  EXPECT_LE(std::abs(sent(Framework::kMegatron, 1) - 6.0), 0.01);
  EXPECT_LE(std::abs(sent(Framework::kDeepSpeed, 1) - 6.0), 0.01);
  EXPECT_LE(std::abs(sent(Framework::kDeepSpeed, 2) - 18.0), 0.01);
  EXPECT_LE(std::abs(sent(Framework::kFsdp, 2) - 10.0), 0.01);
  EXPECT_LE(std::abs(sent(Framework::kKrigtune, 0) - 4.0), 0.01);
}

}  // namespace
}  // namespace krigtune
