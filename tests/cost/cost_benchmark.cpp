// The cost of a prediction by StepCostModel and MemoryModel, and by the full plan.
//
//   cmake --preset release && ninja -C build/release benchmarks
//   build/release/bin/benchmark_cost
#include <benchmark/benchmark.h>

#include <random>

#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "cost/time/virtual_clock.h"
#include "plan/build_plan.h"
#include "plan/memory.h"

namespace krigtune {
namespace {

// Two nodes of eight A100s: the numbers of experiments/data/gpus.csv, rounded.
workload::ClusterSpec cluster() {
  workload::ClusterSpec cluster;
  cluster.nodes = 2;
  cluster.gpus_per_node = 8;
  workload::DeviceSpec device;
  device.fp32_flops_per_s = 19.5e12;
  device.fp16_flops_per_s = device.bf16_flops_per_s = 312e12;
  device.memory_bytes_per_s = 2.0e12;
  device.host_bytes_per_s = 25e9;
  cluster.device = device;
  cluster.network = workload::NodeNetwork{{"nvlink3", workload::Hop::kNvlink, 0.0, 240e9},
                                          {"ib-hdr-200", workload::Hop::kNetwork, 1e-6, 25e9},
                                          cluster.gpus_per_node};
  return cluster;
}

workload::Workload benchmark_workload(workload::Dialect dialect) {
  workload::Workload workload;
  workload.model = workload::model_preset("gpt2-1.5b");
  workload.precision = workload::Precision::kBf16;
  workload.gradient_clipping = 1.0;
  workload.dialect = dialect;
  return workload;
}

template <class T>
T one_of(std::mt19937_64& random, const std::vector<T>& values) {
  return values[random() % values.size()];
}

space::Configuration configuration(std::mt19937_64& random) {
  const auto elems = [&] { return one_of<std::int64_t>(random, {5'000'000, 50'000'000, 500'000'000}); };
  return {{"zero_stage", static_cast<std::int64_t>(random() % 4)},
          {"micro_batch", one_of<std::int64_t>(random, {1, 2, 4, 8})},
          {"gradient_accumulation_steps", one_of<std::int64_t>(random, {1, 2, 4, 8, 16})},
          {"reduce_bucket_size", elems()},
          {"allgather_bucket_size", elems()},
          {"overlap_comm", random() % 2 == 0},
          {"tensor_parallel", one_of<std::int64_t>(random, {1, 5})},
          {"activation_checkpointing", one_of<std::string>(random, {"none", "selective", "full"})},
          {"offload_optimizer", one_of<std::string>(random, {"none", "cpu"})},
          {"stage3_prefetch_bucket_size", elems()},
          {"stage3_max_reuse_distance", elems()}};
}

// Times `model` on 2000 configurations in turn, of one ZeRO stage, or of all stages for -1.
template <class Model>
void ask_in_turn(benchmark::State& state, const Model& model) {
  std::mt19937_64 random(1);
  std::vector<space::Configuration> configurations;
  for (int i = 0; i < 2000; ++i) {
    configurations.push_back(configuration(random));
    const std::int64_t stage = state.range(0);
    if (stage >= 0) configurations.back().set("zero_stage", stage);
    benchmark::DoNotOptimize(model(configurations.back()));
  }
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(model(configurations[next++ % configurations.size()]));
  state.SetItemsProcessed(state.iterations());
}

workload::ClusterSpec forty_ranks() {  // GPT-2 1.5B has 25 heads: five tensor ranks
  workload::ClusterSpec machines = cluster();
  machines.nodes = 5;
  return machines;
}

void predict(benchmark::State& state, workload::Dialect dialect) {
  ask_in_turn(state, cost::StepCostModel(benchmark_workload(dialect), forty_ranks()));
}
BENCHMARK_CAPTURE(predict, canonical, workload::Dialect::kCanonical)->Arg(-1)->Arg(0)->Arg(1)->Arg(2)->Arg(3);
BENCHMARK_CAPTURE(predict, deepspeed, workload::Dialect::kDeepSpeed)->Arg(-1)->Arg(0)->Arg(1)->Arg(2)->Arg(3);

// Memory of krigtune-bench.
void estimate_memory(benchmark::State& state, workload::Dialect dialect) {
  const cost::MemoryModel model(benchmark_workload(dialect), forty_ranks(), {});
  ask_in_turn(state, [&](const space::Configuration& of) { return model.estimate(of); });
}
BENCHMARK_CAPTURE(estimate_memory, canonical, workload::Dialect::kCanonical)->Arg(-1)->Arg(0)->Arg(1)->Arg(2)->Arg(3);
BENCHMARK_CAPTURE(estimate_memory, deepspeed, workload::Dialect::kDeepSpeed)->Arg(-1)->Arg(0)->Arg(1)->Arg(2)->Arg(3);

// A new model for each prediction, including the templates of its blocks.
void predict_first(benchmark::State& state) {
  const space::Configuration configuration = {{"zero_stage", std::int64_t{2}}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        cost::StepCostModel(benchmark_workload(workload::Dialect::kCanonical), cluster())(configuration));
  }
}
BENCHMARK(predict_first)->Unit(benchmark::kMicrosecond);

space::Configuration long_step() {
  return {{"zero_stage", std::int64_t{2}}, {"gradient_accumulation_steps", std::int64_t{8}}};
}

void plan_gpt2_xl(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        plan::build_plan(benchmark_workload(workload::Dialect::kCanonical), cluster(), long_step()));
  }
}
BENCHMARK(plan_gpt2_xl)->Unit(benchmark::kMillisecond);

// Two micro-steps of GPT-2 1.5B with more layers. Arguments: ZeRO stage, layers.
void lay_out_layers(benchmark::State& state) {
  workload::Workload deep = benchmark_workload(workload::Dialect::kCanonical);
  deep.model.layers = state.range(1);
  plan::StepPlan plan = plan::build_plan(
      deep, cluster(), {{"zero_stage", state.range(0)}, {"gradient_accumulation_steps", std::int64_t{2}}});
  for (auto _ : state) plan::lay_out(plan);
}
BENCHMARK(lay_out_layers)->ArgsProduct({{0, 2, 3}, {48, 192, 768}})->Unit(benchmark::kMillisecond);

void clock_gpt2_xl(benchmark::State& state) {
  const plan::StepPlan plan =
      plan::build_plan(benchmark_workload(workload::Dialect::kCanonical), cluster(), long_step());
  const cost::Machine machine = cost::make_machine(benchmark_workload(workload::Dialect::kCanonical), cluster());
  for (auto _ : state) benchmark::DoNotOptimize(cost::predict_step(plan, machine));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(plan.operations.size()));
}
BENCHMARK(clock_gpt2_xl)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace krigtune

BENCHMARK_MAIN();
