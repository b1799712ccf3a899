// The compressed plan compared with the clock on the full plan.
#include "cost/time/step_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/json.h"
#include "cost/memory/memory_model.h"
#include "cost/time/virtual_clock.h"
#include "plan/build_plan.h"
#include "plan/op_traits.h"

namespace krigtune::step_cost_test {

template <class T>
const T& one_of(std::mt19937_64& random, const std::vector<T>& values) {
  return values[random() % values.size()];
}

struct Case {
  workload::Workload workload;
  workload::ClusterSpec cluster;
  space::Configuration configuration;
};

workload::DeviceSpec device(std::mt19937_64& random) {
  workload::DeviceSpec device;
  device.id = "test";
  device.fp32_flops_per_s = one_of<double>(random, {1e12, 2e13});
  device.fp16_flops_per_s = device.bf16_flops_per_s = 8.0 * device.fp32_flops_per_s;
  device.memory_bytes_per_s = one_of<double>(random, {2e11, 2e12});
  device.gemm_half_flops = one_of<double>(random, {1e8, 5e9});
  device.launch_s = one_of<double>(random, {0.0, 3e-6});
  device.host_bytes_per_s = 2e10;
  return device;
}

workload::Workload workload(std::mt19937_64& random) {
  workload::Workload workload;
  workload::ModelSpec& model = workload.model;
  const bool llama = random() % 2 == 0;
  model.layers = one_of<std::int64_t>(random, {2, 3, 4, 6, 8});
  model.hidden = one_of<std::int64_t>(random, {64, 256, 512, 1024});
  model.heads = model.kv_heads = 8;
  model.ffn_hidden = 4 * model.hidden;
  model.vocab = one_of<std::int64_t>(random, {1000, 8000, 30001});
  model.seq_len = one_of<std::int64_t>(random, {64, 256, 512});
  model.attention = one_of<workload::Attention>(random, {workload::Attention::kFlash, workload::Attention::kEager});
  model.dropout = one_of<double>(random, {0.0, 0.1});
  if (llama) {
    model.gated_mlp = true;
    model.positions = workload::Positions::kRotary;
    model.norm = workload::Norm::kRmsNorm;
  }
  model.tied_embeddings = random() % 2 == 0;
  workload.precision = one_of<workload::Precision>(
      random, {workload::Precision::kFp32, workload::Precision::kBf16, workload::Precision::kFp16});
  workload.optimizer =
      one_of<workload::OptimizerKind>(random, {workload::OptimizerKind::kAdamW, workload::OptimizerKind::kSgd});
  workload.dialect = one_of<workload::Dialect>(random, {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed});
  workload.gradient_clipping = one_of<double>(random, {0.0, 1.0});
  return workload;
}

space::Configuration configuration(std::mt19937_64& random) {
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

workload::ClusterSpec cluster(std::mt19937_64& random) {
  workload::ClusterSpec cluster;
  cluster.nodes = one_of<std::int64_t>(random, {1, 2});
  cluster.gpus_per_node = one_of<std::int64_t>(random, {4, 8});
  cluster.device = device(random);
  workload::NodeNetwork network;
  network.ranks_per_node = cluster.gpus_per_node;
  network.intra = {"intra", workload::Hop::kNvlink, 1e-6, one_of<double>(random, {2e10, 3e11})};
  network.inter = {"inter", workload::Hop::kNetwork, 1e-6, one_of<double>(random, {1e9, 2.5e10})};
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

// Returns the seconds of all collectives, each running alone.
double communication_s(const plan::StepPlan& plan, const cost::Machine& machine) {
  double sum = 0.0;
  for (const plan::Operation& operation : plan.operations) {
    if (plan::is_collective(operation.kind)) sum += cost::operation_time_s(machine, plan, operation);
  }
  return sum;
}

double sent_bytes(const plan::StepPlan& plan, schedule::Group group) {
  double bytes = 0.0;
  for (const plan::Operation& operation : plan.operations) {
    if (operation.group == group) bytes += static_cast<double>(operation.wire_bytes);
  }
  return bytes;
}

double parts_s(const cost::StepCost& cost) {
  return cost.products_s + cost.memory_bound_s + cost.optimizer_s + cost.exposed_comm_s + cost.offload_s +
         cost.bubble_s + cost.idle_s;
}

// Compares how the time divides; differences may be at most `most` of the step.
void expect_same_breakdown(const cost::StepCost& cost, const plan::StepBreakdown& full, double most) {
  const double kernels_s = std::accumulate(full.compute_s.begin(), full.compute_s.end(), 0.0);
  const double offload_s = full.activities[static_cast<std::size_t>(plan::Activity::kCopies)].exposed_s +
                           full.activities[static_cast<std::size_t>(plan::Activity::kHost)].exposed_s;
  const double step_s = cost.step_time_s;
  EXPECT_LE(std::abs(cost.products_s + cost.memory_bound_s + cost.optimizer_s - kernels_s), most * step_s);
  EXPECT_LE(std::abs(cost.exposed_comm_s - full.exposed_comm_s()), most * step_s);
  EXPECT_LE(std::abs(cost.offload_s - offload_s), most * step_s);
}

/// Compares the step's time and each of its parts; differences may be at most `most` of the step.
Comparison compare(const Case& one, const cost::Machine& machine, double most) {
  const plan::StepPlan plan = plan::build_plan(one.workload, one.cluster, one.configuration);
  const cost::PredictedStep full = cost::predict_step(plan, machine);
  const cost::StepCost cost = cost::StepCostModel(one.workload, one.cluster, machine)(one.configuration);
  const Comparison comparison{full.step_time_s, cost.step_time_s};
  EXPECT_LE(comparison.error(), most);
  EXPECT_EQ(cost.tensor_wire_bytes, sent_bytes(plan, schedule::Group::kTensor));
  EXPECT_EQ(cost.data_wire_bytes, sent_bytes(plan, schedule::Group::kData));
  EXPECT_LE(std::abs(parts_s(cost) / cost.step_time_s - 1.0), 1e-9);
  const double sent_s = communication_s(plan, machine);
  EXPECT_LE(std::abs(cost.tensor_comm_s + cost.data_comm_s - sent_s), 1e-9 * sent_s);
  expect_same_breakdown(cost, full.breakdown, most);
  return comparison;
}

struct Bounds {
  double median = 0.0, almost_all = 0.0;  ///< errors of one half and of 99 % of the cases
  double rank_correlation = 0.0;
};

void expect_within(const std::vector<Comparison>& all, const Bounds& bounds) {
  std::vector<double> errors;
  for (const Comparison& one : all) errors.push_back(one.error());
  EXPECT_LE(quantile(errors, 0.5), bounds.median);
  EXPECT_LE(quantile(errors, 0.99), bounds.almost_all);
  EXPECT_GE(rank_correlation(all), bounds.rank_correlation);
}

// Here and below, the bounds are the observed errors, rounded up.
// Draws cases, which `change` may change, and compares each; none may be off by more than `most`.
template <class Change>
std::vector<Comparison> compared(std::uint64_t seed, int cases, double most, const Change& change) {
  std::mt19937_64 random(seed);
  std::vector<Comparison> all;
  for (int i = 0; i < cases; ++i) {
    Case one{workload(random), cluster(random), configuration(random)};
    change(one, random, i);
    SCOPED_TRACE(std::to_string(i) + ": " + one.configuration.text());
    all.push_back(compare(one, cost::make_machine(one.workload, one.cluster), most));
  }
  return all;
}

TEST(StepCostModel, EqualsTheClockOnTheFullPlan) {
  const auto as_drawn = [](Case&, std::mt19937_64&, int) {};
  expect_within(compared(7, 400, 0.02, as_drawn), {1e-4, 0.006, 0.9999});
}

TEST(StepCostModel, EqualsTheClockForAdaptersToo) {
  const auto with_adapters = [](Case& one, std::mt19937_64& random, int) {
    workload::TrainingSpec& training = one.workload.training;
    training.lora.rank = one_of<std::int64_t>(random, {2, 8, 64});
    for (bool& target : training.lora.targets) target = random() % 2 == 0;
    training.lora.targets.back() = true;
    training.lora.dropout = one_of<double>(random, {0.0, 0.1});
    training.base = one_of<workload::BaseFormat>(
        random, {workload::BaseFormat::kAsModel, workload::BaseFormat::kInt8, workload::BaseFormat::kNf4Double});
  };
  expect_within(compared(9, 200, 0.05, with_adapters), {1e-4, 0.01, 0.9999});
}

TEST(StepCostModel, EqualsTheClockForOtherOptimizersKernelsAndLosses) {
  const auto trained_otherwise = [](Case& one, std::mt19937_64& random, int) {
    workload::TrainingSpec& training = one.workload.training;
    training.kernels = one_of<workload::Kernels>(random, {workload::Kernels::kFused, workload::Kernels::kEager});
    training.loss = one_of<workload::LossKind>(random, {workload::LossKind::kPlain, workload::LossKind::kFused});
    training.states = one_of<workload::OptimizerStates>(
        random, {workload::OptimizerStates::kFp32, workload::OptimizerStates::kAsModel});
    one.workload.optimizer = workload::kOptimizers[random() % workload::kOptimizers.size()].kind;
  };
  expect_within(compared(10, 200, 0.05, trained_otherwise), {1e-4, 0.01, 0.9999});
}

// Few layers without experts, or all but one, or none. The largest errors are those of experts in every layer too.
TEST(StepCostModel, EqualsTheClockForExpertsInSomeLayersToo) {
  const auto with_experts = [](Case& one, std::mt19937_64& random, int) {
    workload::ModelSpec& model = one.workload.model;
    model.experts = {one_of<std::int64_t>(random, {2, 8}), 2, model.hidden, one_of<std::int64_t>(random, {0, 256})};
    model.experts.dense_layers = one_of<std::int64_t>(random, {0, 1, 2, 3, model.layers - 1});
  };
  expect_within(compared(12, 300, 0.05, with_experts), {1e-4, 0.025, 0.9999});
}

TEST(StepCostModel, EqualsItForDeepModelsAndLongSteps) {
  const auto deep_and_long = [](Case& one, std::mt19937_64&, int i) {
    one.workload.model.layers = i % 2 == 0 ? 48 : 24;
    one.configuration.set("gradient_accumulation_steps", std::int64_t{i % 3 == 0 ? 20 : 6});
  };
  expect_within(compared(8, 12, 0.005, deep_and_long), {1e-4, 0.005, 0.99});
}

// Threads on few cores, with an emulated link that carries one collective at a time.
cost::Machine cpu_ranks(std::mt19937_64& random) {
  cost::Machine machine;
  for (workload::ClassRate& rate : machine.rates) rate = {5e-6, 5e10, 1e5, 1e10};
  for (workload::ClassRate& rate : machine.exchanges) rate = {3e-5, std::numeric_limits<double>::infinity(), 0.0, 2e9};
  machine.network = {"test", 1e-4, one_of<double>(random, {2.5e8, 1e10})};
  machine.ranks_per_node = 8;
  machine.one_link = machine.sleeping_network = true;
  machine.cores = one_of<double>(random, {0.5, 1.0, 2.0});
  machine.wake_s = 2e-5;
  machine.overlap_slowdown = 1.1;
  return machine;
}

TEST(StepCostModel, EqualsTheClockOnCpuRanksToo) {
  std::mt19937_64 random(11);
  std::vector<Comparison> all;
  for (int i = 0; i < 200; ++i) {
    Case one{workload(random), cluster(random), configuration(random)};
    one.cluster.nodes = 1;
    SCOPED_TRACE(std::to_string(i) + ": " + one.configuration.text());
    all.push_back(compare(one, cpu_ranks(random), 0.05));
  }
  expect_within(all, {1e-3, 0.03, 0.999});
}

// Offload to NVMe is not modelled: queries return an empty value, both for time and for memory. A caller that requires
// a result gets the reason.
TEST(StepCost, WhatIsNotModelledIsEmptyToWhomeverAsksWhetherItIs) {
  workload::Workload model;
  model.model = workload::model_preset("gpt2-124m");
  model.framework = workload::Framework::kDeepSpeed;
  workload::ClusterSpec machine;
  machine.gpus_per_node = 8;
  workload::DeviceSpec device;
  device.fp32_flops_per_s = 19.5e12;
  device.memory_bytes_per_s = 2.0e12;
  machine.device = device;
  machine.network = workload::NodeNetwork{
      {"nvlink3", workload::Hop::kNvlink, 0.0, 240e9}, {"ib", workload::Hop::kNetwork, 1e-6, 25e9}, 8};
  const space::Configuration stage_2 = {{"zero_stage", std::int64_t{2}}};
  const space::Configuration nvme = {{"zero_stage", std::int64_t{3}}, {"offload_optimizer", std::string("nvme")}};
  const cost::StepCostModel times(model, machine);
  EXPECT_FALSE(times.if_modelled(nvme));
  EXPECT_THROW(times(nvme), UserError);
  ASSERT_TRUE(times.if_modelled(stage_2));
  EXPECT_EQ(times.if_modelled(stage_2)->step_time_s, times(stage_2).step_time_s);
  const cost::MemoryModel memory(model, machine, {});
  const Bytes usable{std::int64_t{80} << 30};
  EXPECT_FALSE(memory.estimate_if_modelled(nvme));
  EXPECT_FALSE(memory.verdict_if_modelled(nvme, usable, usable));
  EXPECT_THROW(memory.estimate(nvme), UserError);
  EXPECT_EQ(memory.estimate_if_modelled(stage_2)->expected.count, memory.estimate(stage_2).expected.count);
  EXPECT_EQ(memory.verdict_if_modelled(stage_2, usable, usable)->predicted.count,
            memory.verdict(stage_2, usable, usable).predicted.count);
}

// Nine nodes of four GPUs in one NVL72 communicate as one node of 36 does. (Only the update of offloaded parameters
// depends on how many share a host.)
TEST(StepCost, OfNodesInOneNvlinkDomainIsThatOfOneNode) {
  workload::Workload job;
  job.model = workload::model_preset("llama-7b");
  job.framework = workload::Framework::kMegatron;
  job.precision = workload::Precision::kBf16;
  const auto seconds = [&](const char* cluster) {
    const auto spec = workload::read_cluster(parse_json(cluster, "s.json"), "s.json", "/cluster");
    return cost::StepCostModel(job, spec)({{"tensor_parallel", std::int64_t{12}}}).step_time_s;
  };
  job.model.heads = job.model.kv_heads = 48;
  job.model.head_dim = 96;
  job.model.hidden = 4608;
  job.model.ffn_hidden = 12288;
  const double rack = seconds(R"({"nodes": 9, "gpus_per_node": 4, "gpu": "GB200"})");
  EXPECT_DOUBLE_EQ(rack, seconds(R"({"nodes": 1, "gpus_per_node": 36, "gpu": "GB200"})"));
  const double apart =
      seconds(R"({"nodes": 9, "gpus_per_node": 4, "gpu": "GB200", "gpus_per_domain": 4, "network": "ib-ndr-400"})");
  EXPECT_GT(apart, 1.5 * rack);
}

}  // namespace krigtune::step_cost_test
