// Pipelines that make gradients of weights apart from those of inputs, and GPipe.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cost/cost_fixtures.h"
#include "cost/memory/memory_model.h"
#include "cost/memory/memory_profile.h"
#include "cost/pipeline.h"
#include "cost/time/step_cost.h"
#include "schedule/knobs.h"

namespace krigtune::zero_bubble_test {

using schedule::PipelineSchedule;

constexpr PipelineSchedule kSplit[] = {PipelineSchedule::kZeroBubbleH1, PipelineSchedule::kZeroBubbleH2,
                                       PipelineSchedule::kZeroBubbleV,  PipelineSchedule::kVHalf,
                                       PipelineSchedule::kVMin,         PipelineSchedule::kDualPipeV};

cost::PipelineShape shape_of(PipelineSchedule schedule, std::int64_t ranks, std::int64_t stages_of_rank = 1) {
  return {ranks, schedule::is_vee(schedule) ? 2 : stages_of_rank, schedule};
}

// Stages of one size on each rank, whose ranks need the given times for a micro-step.
std::vector<cost::StageTime> equal_stages(const cost::PipelineShape& shape, double f, double b, double w) {
  const auto v = static_cast<double>(shape.stages_of_rank);
  return std::vector<cost::StageTime>(static_cast<std::size_t>(shape.ranks * shape.stages_of_rank),
                                      {f / v, (b + w) / v, 0.0, w / v});
}

std::vector<cost::StageTime> random_stages(const cost::PipelineShape& shape, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  std::vector<cost::StageTime> stages(static_cast<std::size_t>(shape.ranks * shape.stages_of_rank));
  for (cost::StageTime& stage : stages) {
    stage.forward_s = uniform(random);
    stage.weights_s = uniform(random);
    stage.backward_s = stage.weights_s + uniform(random);
  }
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    const double rest_s = uniform(random);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (shape.rank_of(i) == static_cast<std::size_t>(rank)) stages[i].rest_s = rest_s;
    }
  }
  return stages;
}

// "F0 B0 W0": the tasks of a rank; with two stages the second one's are "f", "b", "w".
std::string written(const std::vector<cost::StageTask>& tasks, const cost::PipelineShape& shape, std::size_t rank) {
  std::string text;
  for (const cost::StageTask& task : tasks) {
    if (shape.rank_of(task.stage) != rank) continue;
    const bool second = task.stage >= static_cast<std::size_t>(shape.ranks);
    const char* letters = second ? "fbw" : "FBW";
    text += letters[task.weights ? 2 : task.backward ? 1 : 0] + std::to_string(task.micro_step) + " ";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

// Written by hand after figure 3 and figure 5 of arXiv:2401.10241, for two ranks.
TEST(ZeroBubble, HasTheOrdersOfThePaper) {
  const auto order = [](PipelineSchedule schedule, std::int64_t micro_steps, std::size_t rank) {
    const cost::PipelineShape shape = shape_of(schedule, 2);
    return written(cost::pipeline_tasks(equal_stages(shape, 1.0, 1.0, 1.0), micro_steps, 0.0, shape), shape, rank);
  };
  EXPECT_EQ(order(PipelineSchedule::kZeroBubbleH1, 3, 0), "F0 F1 B0 W0 F2 B1 W1 B2 W2");
  EXPECT_EQ(order(PipelineSchedule::kZeroBubbleH1, 3, 1), "F0 B0 F1 B1 W0 F2 B2 W1 W2");
  EXPECT_EQ(order(PipelineSchedule::kZeroBubbleH2, 4, 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(order(PipelineSchedule::kZeroBubbleH2, 4, 1), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  EXPECT_EQ(order(PipelineSchedule::kZeroBubbleV, 3, 0), "F0 F1 F2 f0 b0 w0 f1 b1 w1 B0 W0 f2 b2 w2 B1 W1 B2 W2");
  EXPECT_EQ(order(PipelineSchedule::kZeroBubbleV, 3, 1), "F0 f0 F1 f1 b0 w0 F2 B0 W0 f2 b1 w1 B1 b2 B2 W1 w2 W2");
  EXPECT_EQ(order(PipelineSchedule::kGpipe, 3, 0), "F0 F1 F2 B0 B1 B2");
  // Of PyTorch's ScheduleDualPipeV, steps 1 to 8; "b1" without "w1" is a whole backward pass.
  EXPECT_EQ(order(PipelineSchedule::kDualPipeV, 4, 0), "F0 F1 F2 f0 b0 w0 f1 F3 b1 f2 B0 b2 f3 B1 b3 B2 W2 B3 W3");
  EXPECT_EQ(order(PipelineSchedule::kDualPipeV, 4, 1), "F0 f0 F1 f1 F2 b0 f2 B0 F3 b1 f3 B1 b2 B2 b3 B3 w3 W3");
}

// Tasks of one rank that begin together are a pair.
std::vector<std::vector<cost::StageTask>> pairs_of(const std::vector<cost::StageTask>& tasks,
                                                   const cost::PipelineShape& shape) {
  std::vector<std::vector<cost::StageTask>> units;
  for (const cost::StageTask& task : tasks) {
    const bool same = !units.empty() && shape.rank_of(units.back().back().stage) == shape.rank_of(task.stage) &&
                      units.back().back().start_s == task.start_s;
    if (!same) units.emplace_back();
    units.back().push_back(task);
  }
  return units;
}

using TaskKey = std::tuple<char, std::size_t, std::int64_t>;
TaskKey key_of(const cost::StageTask& task) {
  return {task.weights ? 'W' : task.backward ? 'B' : 'F', task.stage, task.micro_step};
}

// Whether a backward pass makes gradients of weights too: those that no task of their own makes.
bool is_whole(const std::set<TaskKey>& keys, const TaskKey& key) {
  return std::get<0>(key) == 'B' && !keys.contains({'W', std::get<1>(key), std::get<2>(key)});
}

std::set<TaskKey> keys_of(const std::vector<cost::StageTask>& tasks) {
  std::set<TaskKey> keys;
  for (const cost::StageTask& task : tasks) keys.insert(key_of(task));
  return keys;
}

// When the tasks end if each begins as soon as those before it on its rank and those that it needs have ended: rounds
// over all tasks until nothing changes, whatever the order in which they are given.
double longest_path_s(const std::vector<cost::StageTask>& tasks, const std::vector<cost::StageTime>& stages,
                      const cost::PipelineShape& shape, double send_s) {
  std::map<TaskKey, double> end_s;
  const std::set<TaskKey> keys = keys_of(tasks);
  for (bool changes = true; changes;) {
    changes = false;
    std::map<std::size_t, double> free_s;
    for (const std::vector<cost::StageTask>& unit : pairs_of(tasks, shape)) {
      double& free = free_s[shape.rank_of(unit.front().stage)];
      double start_s = free;
      double worked_s = 0.0;
      for (const cost::StageTask& task : unit) {
        const auto [work, stage, micro_step] = key_of(task);
        const auto needs = [&, m = micro_step](char of, std::size_t at) {
          start_s = std::max(start_s, end_s[TaskKey(of, at, m)]);
        };
        const bool is_last = stage + 1 == stages.size();
        if (work == 'F' && stage > 0) needs('F', stage - 1);
        if (work == 'B') needs(is_last ? 'F' : 'B', is_last ? stage : stage + 1);
        if (work == 'W') needs('B', stage);
        const cost::StageTime& time = stages[stage];
        const double apart_s = is_whole(keys, key_of(task)) ? 0.0 : time.weights_s;
        worked_s += work == 'F' ? time.forward_s : work == 'W' ? time.weights_s : time.backward_s - apart_s;
        const bool leaves = (work == 'F' && !is_last && shape.rank_of(stage) != shape.rank_of(stage + 1)) ||
                            (work == 'B' && stage > 0 && shape.rank_of(stage) != shape.rank_of(stage - 1));
        worked_s += leaves ? send_s : 0.0;
      }
      free = start_s + worked_s;
      for (const cost::StageTask& task : unit) {
        if (free <= end_s[key_of(task)]) continue;
        end_s[key_of(task)] = free;
        changes = true;
      }
    }
  }
  double last_s = 0.0;
  for (const auto& [task, seconds] : end_s) last_s = std::max(last_s, seconds + stages[std::get<1>(task)].rest_s);
  return last_s;
}

struct Drawn {
  cost::PipelineShape shape;
  std::int64_t micro_steps = 1;
  double send_s = 0.0;
  std::vector<cost::StageTime> stages;
};
Drawn drawn(std::mt19937_64& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  Drawn result;
  const PipelineSchedule schedule = kSplit[random() % std::size(kSplit)];
  const std::int64_t stages_of_rank = schedule == PipelineSchedule::kZeroBubbleH1 ? one_of({1, 1, 2, 3}) : 1;
  result.shape = shape_of(schedule, one_of({2, 3, 4, 8}), stages_of_rank);
  const std::int64_t p = result.shape.ranks;
  result.micro_steps = stages_of_rank == 1 ? one_of({1, 2, 5, 12, 2 * p - 1, 3 * p}) : p * one_of({1, 2, 3});
  result.send_s = static_cast<double>(one_of({0, 1, 20})) / 20.0;
  result.stages = random_stages(result.shape, random);
  return result;
}

TEST(ZeroBubble, DoesEveryTaskOnceAndInTheTimeOfItsLongestPath) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const Drawn pipeline = drawn(random);
    const auto& [shape, m, send_s, stages] = pipeline;
    SCOPED_TRACE(testing::Message() << schedule::to_string(shape.schedule) << ", " << shape.ranks << " ranks, "
                                    << shape.stages_of_rank << " stages each, " << m << " micro-steps");
    const std::vector<cost::StageTask> tasks = cost::pipeline_tasks(stages, m, send_s, shape);
    std::map<std::tuple<bool, bool, std::size_t, std::int64_t>, int> seen;
    for (const cost::StageTask& task : tasks) ++seen[{task.backward, task.weights, task.stage, task.micro_step}];
    const std::size_t passes = stages.size() * static_cast<std::size_t>(m);
    EXPECT_EQ(tasks.size(), seen.size());
    const auto apart = std::ranges::count_if(tasks, &cost::StageTask::weights);
    EXPECT_EQ(tasks.size(), 2 * passes + static_cast<std::size_t>(apart));
    if (shape.schedule != PipelineSchedule::kDualPipeV) {
      EXPECT_EQ(static_cast<std::size_t>(apart), passes);
    }
    const double expected_s = longest_path_s(tasks, stages, shape, send_s);
    if (m <= 3 * shape.ranks) {
      EXPECT_NEAR(cost::pipeline_s(stages, m, send_s, shape), expected_s, 1e-9 * expected_s);
    }
    double end_s = 0.0;
    std::map<std::size_t, double> free_s, began_s;
    for (const std::vector<cost::StageTask>& unit : pairs_of(tasks, shape)) {
      const std::size_t rank = shape.rank_of(unit.front().stage);
      EXPECT_GE(unit.front().start_s, free_s[rank]) << "a rank does one thing, or one pair, at a time";
      EXPECT_LE(unit.size(), shape.schedule == PipelineSchedule::kDualPipeV ? 2U : 1U);
      began_s.try_emplace(rank, unit.front().start_s);
      free_s[rank] = unit.back().end_s;
    }
    for (const auto& [rank, free] : free_s) end_s = std::max(end_s, free + stages[rank].rest_s - began_s[rank]);
    EXPECT_NEAR(cost::pipeline_s(stages, m, send_s, shape, true), end_s, 1e-9 * end_s);
  }
}

// Of many micro-steps only some are executed.
TEST(ZeroBubble, TakesWhatManyMicroStepsTake) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 60; ++i) {
    Drawn pipeline = drawn(random);
    const std::int64_t m = 40 * pipeline.shape.ranks;
    double end_s = 0.0;
    for (const cost::StageTask& task : cost::pipeline_tasks(pipeline.stages, m, pipeline.send_s, pipeline.shape))
      end_s = std::max(end_s, task.end_s + pipeline.stages[task.stage].rest_s);
    EXPECT_LE(std::abs(cost::pipeline_s(pipeline.stages, m, pipeline.send_s, pipeline.shape) / end_s - 1.0), 0.015)
        << schedule::to_string(pipeline.shape.schedule) << " " << pipeline.shape.ranks << " "
        << pipeline.shape.stages_of_rank;
  }
}

// Table 2 and section 6 of the paper, for times with B >= W; (p - 1) (F + B + W) with 1F1B.
TEST(ZeroBubble, HasTheBubblesOfThePaper) {
  for (const auto& [f, b, w] : {std::tuple(1.0, 1.0, 1.0), std::tuple(1.0, 1.2, 0.8), std::tuple(1.0, 1.3, 1.0)}) {
    for (const std::int64_t p : {2, 4, 8}) {
      for (const std::int64_t m : {2 * p, 3 * p + 1, 9 * p}) {
        const auto bubble_s = [&, f = f, b = b, w = w](PipelineSchedule schedule, std::int64_t stages_of_rank = 1) {
          const cost::PipelineShape shape = shape_of(schedule, p, stages_of_rank);
          return cost::pipeline_s(equal_stages(shape, f, b, w), m, 0.0, shape, true) -
                 static_cast<double>(m) * (f + b + w);
        };
        const auto others = static_cast<double>(p - 1);
        EXPECT_NEAR(bubble_s(PipelineSchedule::kOneForwardOneBackward), others * (f + b + w), 1e-9);
        EXPECT_NEAR(bubble_s(PipelineSchedule::kGpipe), others * (f + b + w), 1e-9);
        EXPECT_NEAR(bubble_s(PipelineSchedule::kZeroBubbleH1), others * (f + b - w), 1e-9);
        EXPECT_NEAR(bubble_s(PipelineSchedule::kZeroBubbleH2), others * (f + b - 2.0 * w), 1e-9);
        if (m % p == 0) {
          EXPECT_NEAR(bubble_s(PipelineSchedule::kZeroBubbleH1, 2), others * (f + b - w) / 2.0, 1e-9);
        }
        // README of DualPipe: (PP / 2 - 1) (F&B + B - 3 W) for PP = 2 p stages, F&B = F + B, and B with W. If W is
        // shorter than the rest of B, the last passes wait less.
        EXPECT_LE(bubble_s(PipelineSchedule::kDualPipeV), others * (f + 2.0 * b - w) / 2.0 + 1e-9);
        EXPECT_GE(bubble_s(PipelineSchedule::kDualPipeV), others * (f + b) / 2.0 - 1e-9);
        if (f == b && b == w) {
          EXPECT_NEAR(bubble_s(PipelineSchedule::kZeroBubbleV), 0.0, 1e-9);
          EXPECT_NEAR(bubble_s(PipelineSchedule::kDualPipeV), others * (f + 2.0 * b - w) / 2.0, 1e-9);
          // arXiv:2405.15362: a half and two thirds of 1F1B's.
          EXPECT_LE(bubble_s(PipelineSchedule::kVHalf), others * (f + b + w) / 2.0);
          EXPECT_LE(bubble_s(PipelineSchedule::kVMin), others * (f + b + w) * 2.0 / 3.0);
        }
      }
    }
  }
}

// Ranks that end a step together wait until the last one has ended, which began p - 1 forwards after the first.
TEST(ZeroBubble, LosesWhatItGainsIfRanksWaitForEachOther) {
  const cost::PipelineShape shape = shape_of(PipelineSchedule::kZeroBubbleH2, 4);
  const std::vector<cost::StageTime> stages = equal_stages(shape, 1.0, 1.0, 1.0);
  EXPECT_NEAR(cost::pipeline_s(stages, 12, 0.0, shape, true), 36.0, 1e-9);
  EXPECT_NEAR(cost::pipeline_s(stages, 12, 0.0, shape, false), 39.0, 1e-9);
}

TEST(ZeroBubble, KeepsWhatItsTasksKeep) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 300; ++i) {
    const Drawn pipeline = drawn(random);
    const cost::PipelineShape& shape = pipeline.shape;
    const double share = i % 3 == 0 ? 2.5 : 0.9;
    const std::vector<cost::StageTask> tasks = cost::pipeline_tasks(pipeline.stages, pipeline.micro_steps, 0.0, shape);
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
      double kept = 0.0, most = 0.0;
      const std::set<TaskKey> keys = keys_of(tasks);
      for (const cost::StageTask& task : tasks) {
        if (shape.rank_of(task.stage) != static_cast<std::size_t>(rank)) continue;
        if (!task.backward) kept += 1.0;
        if (task.weights) kept -= share;
        if (task.backward && !task.weights) kept += is_whole(keys, key_of(task)) ? -1.0 : share - 1.0;
        most = std::max(most, kept);
      }
      const cost::InFlight counted = cost::in_flight(rank, pipeline.micro_steps, shape, share);
      EXPECT_NEAR(static_cast<double>(counted.passes) + share * static_cast<double>(counted.waiting), most, 1e-9)
          << schedule::to_string(shape.schedule) << " rank " << rank << " of " << shape.ranks;
    }
  }
}

// Table 2: p passes on the first rank with H1, 2 p - 1 with H2; p of both stages on every rank with V.
TEST(ZeroBubble, KeepsWhatThePaperSays) {
  for (const std::int64_t p : {2, 4, 8}) {
    const auto kept = [&](PipelineSchedule schedule, std::int64_t rank) {
      return cost::in_flight(rank, 5 * p, shape_of(schedule, p), 0.9);
    };
    for (std::int64_t rank = 0; rank < p; ++rank) {
      EXPECT_EQ(kept(PipelineSchedule::kZeroBubbleH1, rank).passes, p - rank);
      EXPECT_EQ(kept(PipelineSchedule::kZeroBubbleH1, rank).waiting, rank);
      EXPECT_EQ(kept(PipelineSchedule::kZeroBubbleH2, rank).passes, 2 * (p - rank) - 1);
      EXPECT_EQ(kept(PipelineSchedule::kZeroBubbleH2, rank).waiting, 2 * rank);
      EXPECT_EQ(kept(PipelineSchedule::kZeroBubbleV, rank).passes, 2 * p);
      EXPECT_EQ(kept(PipelineSchedule::kGpipe, rank).passes, 5 * p);
      // A half and a third of V's, and a few; as many passes as stages, and one more (README of DualPipe).
      EXPECT_LE(kept(PipelineSchedule::kVHalf, rank).passes, p + 2);
      EXPECT_LE(kept(PipelineSchedule::kVMin, rank).passes, 2 * p / 3 + 3);
      EXPECT_EQ(kept(PipelineSchedule::kDualPipeV, rank).passes, 2 * p + 1);
    }
  }
}

TEST(ZeroBubble, PutsTheEndsOfTheModelOnOneRankInAV) {
  const cost::PipelineShape shape = shape_of(PipelineSchedule::kZeroBubbleV, 3);
  workload::ModelSpec model;
  model.layers = 16;
  const std::vector<std::int64_t> layers = cost::interleaved_layers(16, 6);
  const std::vector<schedule::StageParts> parts = cost::parts_of_ranks(model, layers, shape);
  EXPECT_TRUE(parts[0].embedding && parts[0].head);
  EXPECT_FALSE(parts[2].embedding || parts[2].head);
  EXPECT_EQ(parts[0].layers, layers[0] + layers[5]);
  EXPECT_EQ(parts[2].layers, layers[2] + layers[3]);
  EXPECT_EQ(cost::layers_of_rank(layers, 1, shape), layers[1] + layers[4]);
  EXPECT_EQ(cost::sends(0, shape), 2.0);
  EXPECT_EQ(cost::sends(1, shape), 4.0);
  EXPECT_EQ(cost::sends(2, shape), 2.0);
}

TEST(ZeroBubble, LeavesOneForwardOneBackwardAsItWas) {
  std::mt19937_64 random(10);
  for (const std::int64_t v : {1, 2}) {
    const cost::PipelineShape shape = shape_of(PipelineSchedule::kOneForwardOneBackward, 4, v);
    const std::vector<cost::StageTime> stages = random_stages(shape, random);
    for (const std::int64_t m : {4, 8, 40}) {
      EXPECT_EQ(cost::pipeline_s(stages, m, 0.05, shape, true), cost::one_forward_one_backward_s(stages, m, 0.05, v));
      EXPECT_EQ(cost::in_flight(1, m, shape, 0.9).passes, cost::in_flight(1, 4, m, v).passes);
    }
  }
}

constexpr std::int64_t kHidden = 1024, kLayers = 16, kTokens = 512;

workload::Workload gpt(workload::Framework framework = workload::Framework::kMegatron) {
  workload::Workload workload;
  workload.model = {.layers = kLayers,
                    .hidden = kHidden,
                    .heads = 16,
                    .kv_heads = 16,
                    .ffn_hidden = 4 * kHidden,
                    .vocab = 128,
                    .seq_len = kTokens};
  workload.model.tied_embeddings = false;
  workload.precision = workload::Precision::kBf16;
  workload.framework = framework;
  return workload;
}

// A machine on which only products take time.
cost::Machine machine_of_products() {
  cost::Machine machine;
  machine.network.bytes_per_s = 1e30;
  machine.ranks_per_node = 8;
  machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = 1e14;
  return machine;
}

space::Configuration split(const char* schedule, std::int64_t ranks = 4, std::int64_t micro_steps = 16) {
  return {{"pipeline_parallel", ranks},
          {"pipeline_schedule", std::string(schedule)},
          {"gradient_accumulation_steps", micro_steps},
          {"micro_batch", std::int64_t{1}}};
}

// Table 1 of the paper: 24 s b h^2 for gradients of weights, and as much of products in each of the others.
TEST(ZeroBubble, TakesTheTimeOfWeightsFromThePlansProducts) {
  const cost::StepCostModel model(gpt(), gpus(1), machine_of_products());
  const double products_s = 24.0 * kTokens * kHidden * kHidden * (kLayers / 4.0) / 1e14;
  const auto stages_of = [&](const space::Configuration& configuration) {
    return model.pipeline_step(configuration)->stages;
  };
  const cost::StageTime stage = stages_of(split("zb-h1"))[1];
  EXPECT_NEAR(stage.forward_s, products_s, 0.01 * products_s);
  EXPECT_NEAR(stage.weights_s, products_s, 0.01 * products_s);
  EXPECT_NEAR(stage.backward_s, 2.0 * products_s, 0.01 * products_s);
  space::Configuration recomputed = split("zb-h1");
  recomputed.set("activation_checkpointing", std::string("full"));
  EXPECT_NEAR(stages_of(recomputed)[1].weights_s, products_s, 0.01 * products_s) << "recomputation is not among it";
  EXPECT_GT(stages_of(recomputed)[1].backward_s, 2.5 * products_s);
  const std::vector<cost::StageTime> halves = stages_of(split("zb-v"));
  ASSERT_EQ(halves.size(), 8U);
  EXPECT_NEAR(halves[3].weights_s, products_s / 2.0, 0.01 * products_s);
}

TEST(ZeroBubble, HasThePapersBubblesInAPredictedStep) {
  const cost::StepCostModel model(gpt(), gpus(1), machine_of_products());
  const double unit_s = 24.0 * kTokens * kHidden * kHidden * (kLayers / 4.0) / 1e14;
  const auto bubbles = [&](const char* schedule) { return model(split(schedule)).bubble_s / unit_s; };
  EXPECT_NEAR(bubbles("1f1b"), 9.0, 0.3);
  EXPECT_NEAR(bubbles("gpipe"), 9.0, 0.3);
  EXPECT_NEAR(bubbles("zb-h1"), 3.0, 0.3);
  EXPECT_NEAR(bubbles("zb-h2"), 0.0, 0.3);
  EXPECT_NEAR(bubbles("zb-v"), 0.0, 0.3);
  const cost::StepCostModel waits(gpt(workload::Framework::kFsdp), gpus(1), machine_of_products());
  EXPECT_NEAR(waits(split("zb-h2")).bubble_s / unit_s, 3.0, 0.5) << "torchtitan's ranks end a step together";
}

TEST(ZeroBubble, HasNoEffectOnOneRankAndNoneAsOneForwardOneBackward) {
  const cost::StepCostModel model(gpt(), gpus(1), machine_of_products());
  EXPECT_EQ(model(split("zb-v", 1)).step_time_s, model(split("1f1b", 1)).step_time_s);
  space::Configuration unsaid{{"pipeline_parallel", std::int64_t{4}},
                              {"gradient_accumulation_steps", std::int64_t{16}},
                              {"micro_batch", std::int64_t{1}}};
  EXPECT_EQ(model(split("1f1b")).step_time_s, model(unsaid).step_time_s);
}

TEST(ZeroBubble, WorksWithOtherKindsOfParallelismAndFewMicroSteps) {
  workload::Workload mixture = gpt();
  mixture.model.experts = {.count = 8, .per_token = 2, .ffn_hidden = 1024};
  const cost::StepCostModel model(mixture, gpus(2), machine_of_products());
  for (const char* schedule : {"gpipe", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe-v"}) {
    for (const std::int64_t micro_steps : {1, 3, 16}) {
      if (std::string(schedule) == "dualpipe-v" && micro_steps < 8) continue;
      space::Configuration configuration = split(schedule, 4, micro_steps);
      configuration.set("tensor_parallel", std::int64_t{2});
      configuration.set("sequence_parallel", true);
      configuration.set("context_parallel", std::int64_t{2});
      configuration.set("expert_parallel", std::int64_t{2});
      const cost::StepCost cost = model(configuration);
      EXPECT_TRUE(std::isfinite(cost.step_time_s)) << schedule << " " << micro_steps;
      EXPECT_GE(cost.bubble_s, 0.0);
      const cost::MemoryModel memory(mixture, gpus(2), {});
      EXPECT_GT(memory.estimate(configuration).term_bytes[static_cast<std::size_t>(schedule::Term::kActivations)], 0);
    }
  }
}

// Table 1 of the paper: 32 s b h bytes of a layer, beside scores and what else backward needs.
TEST(ZeroBubble, KeepsTheInputsOfProductsAndTheGradientsOfTheirOutputs) {
  const auto kept = [](const char* checkpointing) {
    schedule::Knobs knobs;
    if (std::string(checkpointing) == "full") knobs.checkpointing = schedule::Checkpointing::kFull;
    return cost::profile_memory(gpt(), knobs);
  };
  EXPECT_EQ(kept("none").of(schedule::Unit::kBlock).for_weights.total, 32 * kTokens * kHidden);
  EXPECT_EQ(kept("full").of(schedule::Unit::kBlock).for_weights.total, 32 * kTokens * kHidden);
  EXPECT_EQ(kept("none").head_for_weights.total, 2 * kTokens * (kHidden + 128));
}

double activation_bytes(const char* schedule, const char* checkpointing = "none") {
  space::Configuration configuration = split(schedule, 4, 32);
  configuration.set("activation_checkpointing", std::string(checkpointing));
  double bytes = 0.0;
  const cost::MemoryEstimate estimate = cost::MemoryModel(gpt(), gpus(1), {}).estimate(configuration);
  for (const schedule::Term term : {schedule::Term::kActivations, schedule::Term::kWorkspace})
    bytes += static_cast<double>(estimate.term_bytes[static_cast<std::size_t>(term)]);
  return bytes;
}

TEST(ZeroBubble, NeedsTheMemoryThatThePaperSays) {
  const double plain = activation_bytes("1f1b");
  EXPECT_EQ(activation_bytes("zb-h1"), plain);
  EXPECT_NEAR(activation_bytes("zb-h2") / plain, 7.0 / 4.0, 0.1);
  EXPECT_NEAR(activation_bytes("zb-v") / plain, 1.0, 0.1);
  EXPECT_NEAR(activation_bytes("v-half") / plain, 6.0 / 8.0, 0.1);
  EXPECT_NEAR(activation_bytes("v-min") / plain, 4.0 / 8.0, 0.1);
  EXPECT_NEAR(activation_bytes("dualpipe-v") / plain, 9.0 / 8.0, 0.1);
  EXPECT_NEAR(activation_bytes("gpipe") / plain, 8.0, 0.5);
  EXPECT_GT(activation_bytes("zb-h1", "full"), 1.5 * activation_bytes("1f1b", "full"))
      << "what is recomputed is kept until the gradients of weights";
}

TEST(ZeroBubble, IsNotPredictedWithStagesThatItDoesNotHave) {
  const cost::StepCostModel model(gpt(), gpus(1), machine_of_products());
  const auto is_modelled = [&](const char* schedule, std::int64_t stages, std::int64_t ranks = 4) {
    space::Configuration configuration = split(schedule, ranks);
    configuration.set("virtual_pipeline", stages);
    return model.if_modelled(configuration).has_value();
  };
  EXPECT_TRUE(is_modelled("zb-h1", 2));
  EXPECT_FALSE(is_modelled("zb-h2", 2));
  EXPECT_FALSE(is_modelled("zb-v", 2));
  EXPECT_FALSE(is_modelled("gpipe", 2));
  EXPECT_TRUE(is_modelled("zb-v", 1));
  EXPECT_TRUE(is_modelled("zb-v", 2, 1)) << "without pipeline parallelism neither has an effect";
  for (const char* schedule : {"v-half", "v-min", "dualpipe-v"}) {
    EXPECT_FALSE(is_modelled(schedule, 2)) << schedule;
    EXPECT_TRUE(is_modelled(schedule, 1)) << schedule;
  }
}

TEST(ZeroBubble, SaysWhatItDoesNotKnow) {
  const auto problem = [](const char* schedule, std::int64_t micro_steps) {
    const auto known = schedule::knobs_of(gpt(), gpus(1), split(schedule, 4, micro_steps));
    return std::holds_alternative<schedule::Knobs>(known) ? std::string() : std::get<schedule::NotModelled>(known).what;
  };
  EXPECT_NE(problem("dualpipe", 16).find("pipeline_schedule = dualpipe is not known"), std::string::npos);
  EXPECT_EQ(
      problem("dualpipe-v", 7),
      "pipeline_schedule = dualpipe-v needs two micro-steps for each of pipeline_parallel = 4 ranks, and there are "
      "7");
  EXPECT_EQ(problem("dualpipe-v", 8), "");
}

}  // namespace krigtune::zero_bubble_test
