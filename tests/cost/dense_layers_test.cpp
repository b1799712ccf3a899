// Models of experts in which some layers have none: what the stages of a pipeline hold of them, and need.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost/cost_fixtures.h"
#include "cost/memory/memory_model.h"
#include "cost/memory/memory_profile.h"
#include "cost/pipeline.h"
#include "cost/time/step_cost.h"
#include "krigtune/rng.h"
#include "workload/hub_models.h"

namespace krigtune::dense_layers_test {
namespace {

// All sizes are multiples of what tensors are padded to, for up to four data ranks.
workload::Workload mixture(std::int64_t layers, std::int64_t dense, workload::DensePlaces places) {
  workload::Workload workload;
  workload::ModelSpec& model = workload.model;
  model = {.layers = layers, .hidden = 128, .heads = 4, .kv_heads = 2, .ffn_hidden = 512, .vocab = 256, .seq_len = 128};
  model.gated_mlp = true;
  model.norm = workload::Norm::kRmsNorm;
  model.positions = workload::Positions::kRotary;
  model.experts = {8, 2, 128, 256, dense, places};
  workload.precision = workload::Precision::kBf16;
  return workload;
}

/// A drawn model and a way to distribute it.
struct Split {
  workload::Workload workload;
  schedule::Knobs knobs;
  std::vector<schedule::StageParts> stages;
};

class Splits {
 public:
  Split next() {
    const std::int64_t layers = number(1, 9);
    Split drawn{mixture(layers, number(0, layers),
                        number(0, 1) == 0 ? workload::DensePlaces::kFirst : workload::DensePlaces::kSpread),
                {},
                {}};
    workload::ModelSpec& model = drawn.workload.model;
    model.tied_embeddings = number(0, 1) == 1;
    if (number(0, 1) == 1) model.experts.shared_ffn_hidden = 0;
    if (number(0, 2) == 0) {
      model.kv_heads = model.heads;
      model.latent = {128 * number(0, 1), 128, 64, 64, 128};
    }
    drawn.knobs.tensor_ranks = number(1, 2);
    drawn.knobs.data_ranks = std::int64_t{1} << number(0, 2);
    drawn.knobs.expert_ranks = std::int64_t{1} << number(0, 3);
    drawn.knobs.zero_stage = number(0, 3);
    drawn.knobs.pipeline_ranks = number(1, layers);
    drawn.stages =
        cost::parts_of_ranks(model, cost::stage_layers(layers, drawn.knobs.pipeline_ranks, number(0, 1) == 1, 0.5),
                             {drawn.knobs.pipeline_ranks});
    return drawn;
  }

 private:
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most - least + 1)));
  }

  Rng rng_{1, 0};
};

// The last stage's copy of a tied table.
std::int64_t copied(const Split& split) {
  const workload::ModelSpec& model = split.workload.model;
  return model.tied_embeddings && split.stages.size() > 1 ? model.vocab * model.hidden : 0;
}

TEST(DenseLayers, StagesAndRanksHoldEveryParameterOnce) {
  Splits splits;
  for (int i = 0; i < 500; ++i) {
    const Split split = splits.next();
    const schedule::UnitTensors model = schedule::unit_tensors(split.workload, split.knobs);
    std::int64_t elems = 0;
    for (const schedule::StageParts& stage : split.stages) {
      for (const schedule::UnitTensor& tensor : model.tensors) {
        const std::int64_t units = schedule::is_block(tensor.unit)        ? stage.layers_of(tensor.unit)
                                   : tensor.unit == schedule::Unit::kHead ? std::int64_t{stage.head}
                                                                          : std::int64_t{stage.embedding};
        elems += units * tensor.elems * (tensor.is_split ? split.knobs.tensor_ranks : 1) *
                 (tensor.of_experts ? split.knobs.expert_ranks : 1);
      }
    }
    EXPECT_EQ(elems, parameter_count(split.workload.model)) << workload::to_json(split.workload).dump();
  }
}

// With ZeRO: 2 bytes of parameters and 12 of the optimizer, a part of which each data rank has from stage 3 and from
// stage 1 on.
TEST(DenseLayers, StatesOfAllDataRanksAreThoseOfTheModel) {
  Splits splits;
  for (int i = 0; i < 300; ++i) {
    Split split = splits.next();
    schedule::Knobs& knobs = split.knobs;
    knobs.expert_ranks = knobs.tensor_ranks = 1;
    const schedule::UnitTensors model = schedule::unit_tensors(split.workload, knobs);
    std::int64_t parameters = 0;
    std::int64_t states = 0;
    for (const schedule::StageParts& stage : split.stages) {
      const schedule::StageTensors tensors(model, stage,
                                           schedule::granule_elems(knobs.data_ranks, schedule::DType::kBf16));
      const cost::StateBytes bytes = cost::state_bytes({tensors, knobs, schedule::make_policy(split.workload, knobs)});
      parameters += bytes.device[schedule::Term::kParameters] * (knobs.zero_stage == 3 ? knobs.data_ranks : 1);
      states += bytes.device[schedule::Term::kOptimizerState] * (knobs.zero_stage >= 1 ? knobs.data_ranks : 1);
    }
    const std::int64_t elems = parameter_count(split.workload.model) + copied(split);
    EXPECT_EQ(parameters, 2 * elems) << workload::to_json(split.workload).dump();
    EXPECT_EQ(states, 12 * elems);
  }
}

TEST(DenseLayers, ComeFirstOrAreSpreadOverTheStages) {
  const auto dense = [](std::int64_t layers, std::int64_t count, workload::DensePlaces places, std::int64_t stages) {
    const workload::ModelSpec model = mixture(layers, count, places).model;
    std::vector<std::int64_t> counts;
    for (const auto& stage : cost::parts_of_ranks(model, cost::stage_layers(layers, stages, true, 0.0), {stages}))
      counts.push_back(stage.others[0]);
    return counts;
  };
  using Counts = std::vector<std::int64_t>;
  using workload::DensePlaces;
  EXPECT_EQ(dense(61, 3, DensePlaces::kFirst, 4), (Counts{3, 0, 0, 0}));
  EXPECT_EQ(dense(6, 3, DensePlaces::kFirst, 3), (Counts{2, 1, 0}));
  EXPECT_EQ(dense(48, 24, DensePlaces::kSpread, 4), (Counts{6, 6, 6, 6}));
  EXPECT_EQ(dense(5, 2, DensePlaces::kSpread, 5), (Counts{1, 0, 1, 0, 0}));
  EXPECT_EQ(dense(4, 0, DensePlaces::kFirst, 2), (Counts{0, 0})) << "all have experts";
  EXPECT_EQ(dense(4, 4, DensePlaces::kFirst, 2), (Counts{0, 0})) << "one kind of layers";
}

workload::Workload deepseek_v3() {
  workload::Workload workload;
  workload.model = workload::hub_model("deepseek-ai/DeepSeek-V3")->sizes;
  workload.model.seq_len = 4096;
  workload.precision = workload::Precision::kBf16;
  workload.framework = workload::Framework::kMegatron;
  return workload;
}

// Of eight stages the first has 8 layers, 5 of which have experts, the second 8 with experts, and the last 7 and the
// head, which is a third of such a layer.
TEST(DenseLayers, TheStageWithTheMostExpertsMayNeedTheMostMemory) {
  const space::Configuration configuration = {{"zero_stage", std::int64_t{1}},
                                              {"pipeline_parallel", std::int64_t{8}},
                                              {"expert_parallel", std::int64_t{4}},
                                              {"gradient_accumulation_steps", std::int64_t{64}},
                                              {"activation_checkpointing", "full"}};
  workload::Workload workload = deepseek_v3();
  const cost::MemoryEstimate needed = cost::MemoryModel(workload, gpus(32), {}).estimate(configuration);
  EXPECT_NE(needed.peak_at.find("stage 2 of 8"), std::string::npos) << needed.peak_at;
  // 8 layers of 64 experts a rank, and what every rank has of a layer: 2 bytes of parameters an element.
  const double experts = 3.0 * 7168.0 * 2048.0 * 256.0 / 4.0;
  const double latents = 7168.0 * 1536.0 + 1536.0 * 128.0 * 192.0 + 7168.0 * 576.0 + 512.0 * 128.0 * 256.0 +
                         128.0 * 128.0 * 7168.0 + 1536.0 + 512.0;
  const double others = latents + 2.0 * 7168.0 + 256.0 * 7168.0 + 3.0 * 7168.0 * 2048.0;
  const auto parameters = static_cast<double>(needed.term_bytes[static_cast<std::size_t>(schedule::Term::kParameters)]);
  EXPECT_NEAR(parameters / (2.0 * 8.0 * (experts + others)), 1.0, 1e-9);
  workload.model.experts.dense_layers = 0;
  const cost::MemoryEstimate everywhere = cost::MemoryModel(workload, gpus(32), {}).estimate(configuration);
  EXPECT_NE(everywhere.peak_at.find("first stage"), std::string::npos) << everywhere.peak_at;
  EXPECT_GT(everywhere.expected, needed.expected);
}

// Tokens are exchanged only in layers with experts.
TEST(DenseLayers, ExchangeNoTokens) {
  cost::Machine machine;
  machine.network.nodes = workload::NodeNetwork{};
  machine.network.nodes->ranks_per_node = machine.ranks_per_node = 8;
  machine.network.nodes->intra.bytes_per_s = machine.network.nodes->inter.bytes_per_s = 100e9;
  const auto seconds = [&](std::int64_t dense) {
    workload::Workload workload = mixture(8, dense, workload::DensePlaces::kSpread);
    workload.framework = workload::Framework::kMegatron;
    return cost::StepCostModel(workload, gpus(1),
                               machine)({{"zero_stage", std::int64_t{1}}, {"expert_parallel", std::int64_t{8}}});
  };
  EXPECT_NEAR(seconds(2).expert_comm_s / seconds(0).expert_comm_s, 0.75, 1e-9);
  EXPECT_EQ(seconds(8).expert_comm_s, 0.0);
}

}  // namespace
}  // namespace krigtune::dense_layers_test
