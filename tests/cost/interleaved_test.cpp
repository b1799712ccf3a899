// Interleaved 1F1B: several stages of the model on each pipeline rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/json.h"
#include "cost/cost_fixtures.h"
#include "cost/memory/memory_model.h"
#include "cost/pipeline.h"
#include "cost/time/step_cost.h"

namespace krigtune::interleaved_test {

template <class T>
const T& one_of(std::mt19937_64& random, const std::vector<T>& values) {
  return values[random() % values.size()];
}

/// What an execution of the schedule shows.
struct Executed {
  double step_s = 0.0;
  std::vector<int> most_kept;  ///< by rank: passes of one stage
};

// Writes down the table of passes as Megatron-LM does (get_schedule_table), gives each rank the list of its tasks, and
// executes them at their times. Sending is a part of a task.
Executed execute(const std::vector<cost::StageTime>& stages, int ranks, int micro_steps, double send_s) {
  const int v = static_cast<int>(stages.size()) / ranks;
  const int group = micro_steps / std::max(1, micro_steps / ranks);
  std::vector<std::pair<int, int>> table;  // micro-step, turn
  for (int first = 0; first < micro_steps; first += group) {
    for (int turn = 0; turn < v; ++turn) {
      for (int m = first; m < first + group; ++m) table.emplace_back(m, turn);
    }
  }
  const int count = static_cast<int>(table.size());
  std::vector<std::vector<std::tuple<bool, int, int>>> tasks;  // backward, stage, micro-step
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::tuple<bool, int, int>> list;
    const auto add = [&](bool backward, int n) {
      const auto [m, turn] = table[static_cast<std::size_t>(n)];
      list.emplace_back(backward, (backward ? v - 1 - turn : turn) * ranks + rank, m);
    };
    const int warm_up = std::min(count, 2 * (ranks - 1 - rank) + (v - 1) * group);
    for (int n = 0; n < warm_up; ++n) add(false, n);
    for (int n = warm_up; n < count; ++n) {
      add(false, n);
      add(true, n - warm_up);
    }
    for (int n = count - warm_up; n < count; ++n) add(true, n);
    tasks.push_back(list);
  }
  Executed executed{0.0, std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  std::map<std::tuple<bool, int, int>, double> arrived_s;
  std::vector<std::size_t> next(tasks.size(), 0);
  std::vector<double> free_s(tasks.size(), 0.0);
  std::vector<int> kept(tasks.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
      if (next[rank] == tasks[rank].size()) continue;
      const auto [backward, stage, m] = tasks[rank][next[rank]];
      const int from = backward ? stage + 1 : stage - 1;
      double start_s = free_s[rank];
      if (from >= 0 && from < static_cast<int>(stages.size())) {
        const auto found = arrived_s.find({backward, from, m});
        if (found == arrived_s.end()) continue;
        start_s = std::max(start_s, found->second);
      }
      const cost::StageTime& time = stages[static_cast<std::size_t>(stage)];
      const bool sends_on = backward ? stage > 0 : stage + 1 < static_cast<int>(stages.size());
      free_s[rank] = start_s + (backward ? time.backward_s : time.forward_s) + (sends_on ? send_s : 0.0);
      arrived_s[{backward, stage, m}] = free_s[rank];
      kept[rank] += backward ? -1 : 1;
      executed.most_kept[rank] = std::max(executed.most_kept[rank], kept[rank]);
      ++next[rank];
      progress = true;
    }
  }
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    EXPECT_EQ(next[rank], tasks[rank].size());
    executed.step_s = std::max(executed.step_s, free_s[rank] + stages[rank].rest_s);
  }
  return executed;
}

// Micro-steps in equal groups, as PyTorch takes them; Megatron-LM takes multiples of the ranks only.
int some_micro_steps(std::mt19937_64& random, int ranks) {
  for (;;) {
    const int steps = 1 + static_cast<int>(random() % 40);
    if (steps % std::max(1, steps / ranks) == 0) return steps;
  }
}

TEST(InterleavedPipeline, TakesAndKeepsWhatAnExecutionOfItsTasksDoes) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  for (int i = 0; i < 400; ++i) {
    const int p = one_of<int>(random, {2, 3, 4, 8});
    const int v = one_of<int>(random, {2, 3, 4});
    const int m = some_micro_steps(random, p);
    const double send_s = one_of<double>(random, {0.0, 0.05, 2.0});
    std::vector<cost::StageTime> stages(static_cast<std::size_t>(p * v));
    for (cost::StageTime& stage : stages) stage = {uniform(random), 2.0 * uniform(random), 0.0};
    for (int rank = 0; rank < p; ++rank) stages[static_cast<std::size_t>(rank)].rest_s = uniform(random);
    SCOPED_TRACE(testing::Message() << p << " ranks, " << v << " stages each, " << m << " micro-steps");
    const Executed executed = execute(stages, p, m, send_s);
    if (2 * m * p * v <= 2048) {
      EXPECT_NEAR(cost::one_forward_one_backward_s(stages, m, send_s, v), executed.step_s, 1e-9 * executed.step_s);
    }
    for (int rank = 0; rank < p; ++rank) {
      EXPECT_EQ(cost::in_flight(rank, p, m, v).passes, executed.most_kept[static_cast<std::size_t>(rank)]) << rank;
    }
    double busy_s = 0.0;
    double all_s = 0.0;
    double end_s = 0.0;
    for (const cost::StageTask& task : cost::one_forward_one_backward(stages, m, send_s, v)) {
      const bool is_first = task.stage < static_cast<std::size_t>(p);
      busy_s += task.worked_s - task.start_s;
      end_s = std::max(end_s, task.end_s + (is_first && task.backward ? stages[task.stage].rest_s : 0.0));
    }
    for (const cost::StageTime& stage : stages) all_s += m * (stage.forward_s + stage.backward_s);
    EXPECT_NEAR(busy_s, all_s, 1e-9 * all_s);
    EXPECT_NEAR(end_s, executed.step_s, 1e-9 * end_s);
  }
}

// Of many micro-steps only some are executed.
TEST(InterleavedPipeline, TakesWhatAnExecutionOfManyMicroStepsDoes) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> uniform(0.95, 1.05);
  for (int i = 0; i < 20; ++i) {
    const int p = one_of<int>(random, {4, 8});
    const int v = one_of<int>(random, {2, 4});
    const double send_s = one_of<double>(random, {0.0, 0.05});
    std::vector<cost::StageTime> stages(static_cast<std::size_t>(p * v));
    for (cost::StageTime& stage : stages) stage = {uniform(random), 2.0 * uniform(random), 0.0};
    const double expected_s = execute(stages, p, 40 * p, send_s).step_s;
    EXPECT_LE(std::abs(cost::one_forward_one_backward_s(stages, 40 * p, send_s, v) / expected_s - 1.0), 0.005);
  }
}

// Narayanan et al. 2021, section 2.2: the bubble is (p - 1) / v micro-steps of a rank.
TEST(InterleavedPipeline, IdlesForTheVthPartOfTheBubble) {
  for (const int p : {2, 4, 8}) {
    for (const int v : {1, 2, 3, 6}) {
      for (const int m : {p, 2 * p, 7 * p}) {
        const std::vector<cost::StageTime> stages(static_cast<std::size_t>(p * v), {1.0 / v, 2.0 / v, 0.0});
        EXPECT_NEAR(cost::one_forward_one_backward_s(stages, m, 0.0, v), 3.0 * (m + (p - 1.0) / v), 1e-9)
            << p << " " << v << " " << m;
      }
    }
  }
}

// Korthikanti et al. 2022, section 4.2.3: the first rank keeps 1 + (p - 1) / (p v) times as much as with one stage.
TEST(InterleavedPipeline, KeepsWhatThePaperSays) {
  for (const std::int64_t p : {2, 8, 35}) {
    for (const std::int64_t v : {2, 3}) {
      const cost::InFlight first = cost::in_flight(0, p, 4 * p, v);
      EXPECT_EQ(first.passes, p * v + p - 1);
      EXPECT_EQ(first.of_first, 2 * p - 1);
      EXPECT_EQ(cost::in_flight(p - 1, p, 4 * p, v).passes, (v - 1) * p + 1);
      EXPECT_EQ(cost::in_flight(0, p, p, v).passes, p * v) << "no more than there are";
    }
    EXPECT_EQ(cost::in_flight(0, p, 4 * p).passes, p);
    EXPECT_EQ(cost::in_flight(p - 1, p, 4 * p).passes, 1);
  }
}

// Llama 3 405B has 126 layers on 16 ranks of 8 stages: the first and the last one have none.
TEST(InterleavedPipeline, GivesTheEndsALayerLess) {
  EXPECT_EQ(cost::interleaved_layers(12, 6), std::vector<std::int64_t>(6, 2));
  EXPECT_EQ(cost::interleaved_layers(10, 6), (std::vector<std::int64_t>{1, 2, 2, 2, 2, 1}));
  EXPECT_EQ(cost::interleaved_layers(11, 6), (std::vector<std::int64_t>{2, 2, 2, 2, 2, 1}));
  EXPECT_EQ(cost::interleaved_layers(8, 6), (std::vector<std::int64_t>{2, 2, 1, 1, 1, 1}));
  // Megatron-Bridge's layouts of DeepSeek-V3 with one layer that predicts a second token.
  EXPECT_EQ(cost::interleaved_layers(61, 16, 1),
            (std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}));
  std::vector<std::int64_t> deepseek(32, 2);
  deepseek.front() = 1;
  deepseek.back() = 0;
  EXPECT_EQ(cost::interleaved_layers(61, 32, 1), deepseek);
  EXPECT_EQ(cost::interleaved_layers(8, 4, 1), std::vector<std::int64_t>(4, 2));
  const std::vector<std::int64_t> llama = cost::interleaved_layers(126, 128);
  EXPECT_EQ(llama.front(), 0);
  EXPECT_EQ(llama.back(), 0);
  EXPECT_EQ(cost::layers_of_rank(llama, 0, {16, 8}), 7);
  EXPECT_EQ(cost::layers_of_rank(llama, 1, {16, 8}), 8);
}

constexpr std::int64_t kLayers = 16;

workload::Workload gpt(workload::Framework framework = workload::Framework::kMegatron) {
  workload::Workload workload;
  workload.model = {
      .layers = kLayers, .hidden = 1024, .heads = 16, .kv_heads = 16, .ffn_hidden = 4096, .vocab = 128, .seq_len = 512};
  workload.model.tied_embeddings = false;
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  return workload;
}

// A machine on which only products and what is sent take time.
cost::Machine machine_of(double bytes_per_s) {
  cost::Machine machine;
  machine.network.bytes_per_s = bytes_per_s;
  machine.ranks_per_node = 8;
  machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = 1e14;
  return machine;
}

space::Configuration split(std::int64_t ranks, std::int64_t stages_of_rank, std::int64_t micro_steps) {
  return {{"pipeline_parallel", ranks},
          {"virtual_pipeline", stages_of_rank},
          {"gradient_accumulation_steps", micro_steps},
          {"micro_batch", std::int64_t{1}}};
}

TEST(InterleavedPipeline, HasTheTextbooksBubbleInAPredictedStep) {
  const cost::StepCostModel model(gpt(), gpus(1), machine_of(1e30));
  for (const std::int64_t p : {2, 4}) {
    const double work_s = model(split(1, 1, 8)).products_s / static_cast<double>(p);
    for (const std::int64_t v : {1, 2, 4}) {
      const cost::StepCost cost = model(split(p, v, 8));
      const auto part = static_cast<double>(p - 1) / static_cast<double>(8 * v);
      EXPECT_NEAR(cost.bubble_s / work_s, part, 0.05 * part) << p << " " << v;
    }
  }
}

// Rank 0 and rank 3 send once less in a micro-step than the others: nothing comes before the first stage, and nothing
// behind the last one.
TEST(InterleavedPipeline, SendsVTimesAsOftenAndRoundTheRanks) {
  const auto comm_s = [](std::int64_t v) {
    return cost::StepCostModel(gpt(), gpus(1), machine_of(1e10))(split(4, v, 8)).pipeline_comm_s;
  };
  const double once_s = 2.0 * 512.0 * 1024.0 / 1e10;
  EXPECT_EQ(cost::sends(0, 4), 1.0);
  EXPECT_EQ(cost::sends(1, 4), 2.0);
  for (const std::int64_t v : {1, 2, 4}) {
    const double sent = comm_s(v) / (8.0 * once_s);
    EXPECT_TRUE(std::abs(sent - 2.0 * static_cast<double>(v)) < 1e-6 ||
                std::abs(sent - 2.0 * static_cast<double>(v) + 1.0) < 1e-6)
        << v << " " << sent;
    EXPECT_EQ(cost::sends(0, 4, v), 2.0 * static_cast<double>(v) - 1.0);
    EXPECT_EQ(cost::sends(2, 4, v), 2.0 * static_cast<double>(v));
  }
}

TEST(InterleavedPipeline, TellsWhatEachStageDoesInTheTimeThatItPredicts) {
  const cost::StepCostModel model(gpt(), gpus(1), machine_of(1e10));
  const std::optional<cost::PipelineStep> step = model.pipeline_step(split(4, 2, 8));
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->layers, std::vector<std::int64_t>(8, 2));
  EXPECT_EQ(step->shape.stages_of_rank, 2);
  EXPECT_EQ(step->tasks.size(), 2U * 8U * 8U);
  double end_s = 0.0;
  for (const cost::StageTask& task : step->tasks) {
    end_s = std::max(end_s, task.end_s + step->stages[task.stage].rest_s);
  }
  EXPECT_NEAR(end_s + step->tie_s, step->step_time_s, 1e-9 * step->step_time_s);
  EXPECT_EQ(step->step_time_s, model(split(4, 2, 8)).step_time_s);
}

double activation_bytes(const space::Configuration& configuration) {
  const cost::MemoryEstimate estimate = cost::MemoryModel(gpt(), gpus(1), {}).estimate(configuration);
  EXPECT_NE(estimate.peak_at.find("first stage"), std::string::npos);
  return static_cast<double>(estimate.term_bytes[static_cast<std::size_t>(schedule::Term::kActivations)]);
}

TEST(InterleavedPipeline, KeepsMoreActivationsOnTheFirstRank) {
  for (const std::int64_t p : {2, 4}) {
    const double plain = activation_bytes(split(p, 1, 4 * p));
    for (const std::int64_t v : {2, 4}) {
      const double factor = 1.0 + static_cast<double>(p - 1) / static_cast<double>(p * v);
      EXPECT_NEAR(activation_bytes(split(p, v, 4 * p)) / plain, factor, 0.03 * factor) << p << " " << v;
    }
  }
}

TEST(InterleavedPipeline, ChangesNothingOnOneRank) {
  const cost::StepCostModel model(gpt(), gpus(1), machine_of(1e10));
  EXPECT_EQ(model(split(1, 4, 8)).step_time_s, model(split(1, 1, 8)).step_time_s);
}

TEST(InterleavedPipeline, IsNotPredictedWhereTheFrameworkRefusesIt) {
  const cost::StepCostModel megatron(gpt(), gpus(1), machine_of(1e10));
  EXPECT_TRUE(megatron.if_modelled(split(4, 2, 8)).has_value());
  EXPECT_FALSE(megatron.if_modelled(split(4, 2, 6)).has_value()) << "4 does not divide 6";
  EXPECT_TRUE(megatron.if_modelled(split(4, 1, 6)).has_value());
  EXPECT_FALSE(megatron.if_modelled(split(8, 3, 8)).has_value()) << "fewer layers than stages";
  const cost::StepCostModel pytorch(gpt(workload::Framework::kFsdp), gpus(1), machine_of(1e10));
  EXPECT_TRUE(pytorch.if_modelled(split(4, 2, 6)).has_value()) << "PyTorch takes one group of 6";
  EXPECT_FALSE(pytorch.if_modelled(split(4, 2, 9)).has_value()) << "but no two groups of 4.5";
}

struct PublishedStep {
  std::int64_t layers, hidden, heads, micro_batch, ranks, stages_of_rank, micro_steps;
  double plain_s, interleaved_s;  ///< the batch over samples/s
};
// Qi et al. 2024, "Zero bubble pipeline parallelism" (arXiv:2401.10241), table 4: 1F1B and interleaved 1F1B on A100s.
constexpr PublishedStep kPublished[] = {
    {22, 2304, 24, 6, 8, 3, 24, 1.525, 1.374},  {22, 2304, 24, 6, 8, 3, 64, 3.529, 3.453},
    {30, 4096, 32, 3, 8, 4, 24, 2.571, 2.244},  {30, 4096, 32, 3, 8, 4, 64, 5.955, 5.728},
    {46, 5120, 40, 1, 16, 3, 48, 2.143, 1.948}, {46, 5120, 40, 1, 16, 3, 128, 4.878, 4.819},
    {62, 6144, 48, 1, 32, 2, 96, 3.947, 3.659}, {62, 6144, 48, 1, 32, 2, 256, 9.091, 8.889},
};

// Interleaving is predicted to gain a little more than it does; the signs and the order are right.
TEST(InterleavedPipeline, GainsWhatWasPublishedToAFewPercent) {
  for (const PublishedStep& step : kPublished) {
    workload::Workload workload = gpt();
    workload.model = {.layers = step.layers,
                      .hidden = step.hidden,
                      .heads = step.heads,
                      .kv_heads = step.heads,
                      .ffn_hidden = 4 * step.hidden,
                      .vocab = 50304,
                      .seq_len = 1024};
    workload.model.attention = workload::Attention::kEager;
    const std::string cluster =
        R"({"gpus_per_node": 8, "gpu": "a100-80gb", "interconnect": "nvlink3", "network": "ib-hdr-200",
                                    "nodes": )" +
        std::to_string(step.ranks / 8) + "}";
    const cost::StepCostModel model(workload, workload::read_cluster(parse_json(cluster, "c"), "c", ""));
    const auto step_s = [&](std::int64_t stages_of_rank) {
      space::Configuration configuration = split(step.ranks, stages_of_rank, step.micro_steps);
      configuration.set("micro_batch", step.micro_batch);
      return model(configuration).step_time_s;
    };
    const double predicted = step_s(step.stages_of_rank) / step_s(1);
    const double measured = step.interleaved_s / step.plain_s;
    EXPECT_LE(predicted / measured, 1.0) << step.hidden << " " << step.micro_steps;
    EXPECT_GE(predicted / measured, 0.93) << step.hidden << " " << step.micro_steps;
  }
}

}  // namespace krigtune::interleaved_test
