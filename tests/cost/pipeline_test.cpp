// Pipeline stages, and what frameworks send between them.
#include "cost/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "cost/time/step_cost.h"

namespace krigtune::pipeline_test {

template <class T>
const T& one_of(std::mt19937_64& random, const std::vector<T>& values) {
  return values[random() % values.size()];
}

double parts_s(const cost::StepCost& cost) {
  return cost.products_s + cost.memory_bound_s + cost.optimizer_s + cost.exposed_comm_s + cost.offload_s +
         cost.bubble_s + cost.idle_s;
}

// Simulates stage by stage and task by task: warm-up forwards, then alternating one forward and one backward, then the
// remaining backwards. A task starts when its stage is free and its input has arrived; sending is a part of the task.
double simulated_pipeline_s(const std::vector<cost::StageTime>& stages, int micro_steps, double send_s) {
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
    std::vector<cost::StageTime> stages(p, {1.0, 2.0, 0.5});
    for (cost::StageTime& stage : stages) {
      if (!alike) stage = {uniform(random), 2.0 * uniform(random), uniform(random)};
    }
    const double expected_s = simulated_pipeline_s(stages, k, send_s);
    const double error = cost::one_forward_one_backward_s(stages, k, send_s) / expected_s - 1.0;
    SCOPED_TRACE(std::to_string(p) + " stages, " + std::to_string(k) + " micro-steps");
    EXPECT_LE(std::abs(error), k <= 3 * static_cast<int>(p) ? 1e-12 : 0.015);
    if (!alike || send_s > 0.0) continue;
    EXPECT_NEAR(expected_s, static_cast<double>(k + static_cast<int>(p) - 1) * 3.0 + 0.5, 1e-9);
  }
}

TEST(Pipeline, TellsTheTasksThatMakeUpItsTime) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  for (int i = 0; i < 100; ++i) {
    const auto p = static_cast<std::size_t>(one_of<int>(random, {1, 2, 3, 8}));
    const int k = one_of<int>(random, {1, 2, 4, 12});
    const double send_s = one_of<double>(random, {0.0, 0.05});
    std::vector<cost::StageTime> stages(p);
    for (cost::StageTime& stage : stages) stage = {uniform(random), 2.0 * uniform(random), uniform(random)};
    SCOPED_TRACE(std::to_string(p) + " stages, " + std::to_string(k) + " micro-steps");
    std::vector<double> free_s(p);
    std::vector<double> busy_s(p);
    std::map<std::tuple<bool, std::size_t, std::int64_t>, double> arrived_s;
    const std::vector<cost::StageTask> tasks = cost::one_forward_one_backward(stages, k, send_s);
    EXPECT_EQ(tasks.size(), 2 * p * static_cast<std::size_t>(k));
    for (const cost::StageTask& task : tasks) {
      EXPECT_GE(task.start_s, free_s[task.stage]) << "a stage does one thing at a time";
      const bool waits = task.backward ? task.stage + 1 < p : task.stage > 0;
      if (waits) {
        const std::size_t from = task.backward ? task.stage + 1 : task.stage - 1;
        EXPECT_GE(task.start_s, arrived_s.at({task.backward, from, task.micro_step})) << "what it needs has arrived";
      } else if (task.backward) {
        EXPECT_GE(task.start_s, arrived_s.at({false, task.stage, task.micro_step})) << "the last stage turns round";
      }
      EXPECT_TRUE((arrived_s.emplace(std::tuple(task.backward, task.stage, task.micro_step), task.end_s).second));
      busy_s[task.stage] += task.worked_s - task.start_s;
      free_s[task.stage] = task.end_s;
    }
    double end_s = 0.0;
    for (std::size_t stage = 0; stage < p; ++stage) {
      EXPECT_NEAR(busy_s[stage], k * (stages[stage].forward_s + stages[stage].backward_s), 1e-9);
      end_s = std::max(end_s, free_s[stage] + stages[stage].rest_s);
    }
    EXPECT_NEAR(end_s, simulated_pipeline_s(stages, k, send_s), 1e-9);
  }
}

TEST(Pipeline, SharesLayersEvenlyOrByWhatTheHeadCosts) {
  EXPECT_EQ(cost::stage_layers(10, 4, true, 2.0), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(cost::stage_layers(10, 4, false, 2.0), (std::vector<std::int64_t>{3, 3, 3, 1}));
  EXPECT_EQ(cost::stage_layers(8, 1, false, 9.0), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(cost::stage_layers(4, 4, false, 9.0), (std::vector<std::int64_t>{1, 1, 1, 1}));
}

workload::Workload gpt(workload::Framework framework) {
  workload::Workload workload;
  workload.model = {
      .layers = 8, .hidden = 1024, .heads = 16, .kv_heads = 16, .ffn_hidden = 4096, .vocab = 128, .seq_len = 512};
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  return workload;
}

workload::ClusterSpec fast_cluster() {
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = 8;
  cluster.device = workload::DeviceSpec{};
  cluster.device->fp32_flops_per_s = 2e13;
  cluster.device->bf16_flops_per_s = 3e14;
  cluster.device->memory_bytes_per_s = 2e12;
  cluster.device->host_bytes_per_s = 2e10;
  cluster.network = workload::NodeNetwork{
      {"intra", workload::Hop::kNvlink, 0.0, 2e11}, {"inter", workload::Hop::kNetwork, 1e-6, 2e10}, 8};
  return cluster;
}

TEST(StepCostModel, LeavesPipelineStagesTheBubbleOfTheTextbook) {
  for (const std::int64_t p : {2, 4}) {
    for (const std::int64_t k : {4, 16}) {
      const space::Configuration configuration = {
          {"pipeline_parallel", p}, {"gradient_accumulation_steps", k}, {"micro_batch", std::int64_t{4}}};
      const cost::StepCost cost =
          cost::StepCostModel(gpt(workload::Framework::kMegatron), fast_cluster())(configuration);
      const double fraction = static_cast<double>(p - 1) / static_cast<double>(k + p - 1);
      const double once_s = cost.optimizer_s + cost.idle_s + cost.data_comm_s;
      EXPECT_LE(std::abs(cost.bubble_s / (cost.step_time_s - once_s) - fraction), 0.1 * fraction);
      EXPECT_LE(std::abs(parts_s(cost) / cost.step_time_s - 1.0), 1e-9);
      EXPECT_GT(cost.pipeline_comm_s, 0.0);
    }
  }
}

TEST(StepCostModel, TellsWhatEachStageDoesInTheTimeThatItPredicts) {
  const cost::StepCostModel model(gpt(workload::Framework::kMegatron), fast_cluster());
  for (const std::int64_t p : {2, 4}) {
    const space::Configuration configuration = {
        {"pipeline_parallel", p}, {"gradient_accumulation_steps", std::int64_t{4}}, {"micro_batch", std::int64_t{2}}};
    const std::optional<cost::PipelineStep> step = model.pipeline_step(configuration);
    ASSERT_TRUE(step.has_value());
    EXPECT_EQ(step->layers.size(), static_cast<std::size_t>(p));
    EXPECT_EQ(std::accumulate(step->layers.begin(), step->layers.end(), std::int64_t{0}), 8);
    EXPECT_EQ(step->tasks.size(), static_cast<std::size_t>(2 * p * 4));
    double end_s = 0.0;
    for (const cost::StageTask& task : step->tasks) {
      end_s = std::max(end_s, task.end_s + step->stages[task.stage].rest_s);
    }
    EXPECT_EQ(step->step_time_s, model(configuration).step_time_s);
    const double once_s = cost::make_machine(gpt(workload::Framework::kMegatron), fast_cluster()).step_overhead_s;
    EXPECT_NEAR(end_s + step->tie_s + once_s, step->step_time_s, 1e-9);
  }
  EXPECT_FALSE(model.pipeline_step({{"micro_batch", std::int64_t{2}}}).has_value()) << "there is one stage";
}

// 4 P of fp32 gradients are reduce-scattered, and 2 P of bf16 parameters gathered, each times 7/8.
TEST(StepCostModel, ReducesInTheFrameworksTypeAndWhenItDoes) {
  const space::Configuration stage1 = {{"zero_stage", std::int64_t{1}},
                                       {"gradient_accumulation_steps", std::int64_t{4}}};
  const auto parameters = static_cast<double>(workload::parameter_count(gpt(workload::Framework::kFsdp).model));
  const auto sent = [&](workload::Framework framework, std::int64_t stage) {
    space::Configuration configuration = stage1;
    configuration.set("zero_stage", stage);
    return cost::StepCostModel(gpt(framework), fast_cluster())(configuration).data_wire_bytes /
           (parameters * 7.0 / 8.0);
  };
  EXPECT_LE(std::abs(sent(workload::Framework::kNanotron, 1) - 6.0), 0.01);
  EXPECT_LE(std::abs(sent(workload::Framework::kMegatron, 1) - 6.0), 0.01);
  EXPECT_LE(std::abs(sent(workload::Framework::kDeepSpeed, 1) - 6.0), 0.01);
  EXPECT_LE(std::abs(sent(workload::Framework::kDeepSpeed, 2) - 18.0), 0.01);
  EXPECT_LE(std::abs(sent(workload::Framework::kFsdp, 2) - 10.0), 0.01);
  EXPECT_LE(std::abs(sent(workload::Framework::kKrigtune, 0) - 4.0), 0.01);
}

}  // namespace krigtune::pipeline_test
