#include "schedule/knobs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace krigtune::schedule::knobs {
namespace {

workload::Workload small_model() {
  workload::Workload workload;
  workload.model = {.layers = 3, .hidden = 32, .heads = 4, .kv_heads = 4, .ffn_hidden = 128, .vocab = 50, .seq_len = 8};
  return workload;
}

workload::ClusterSpec four_ranks() {
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = 4;
  return cluster;
}

struct Refused {
  space::Configuration configuration;
  std::string what, hint;
};

// A configuration that is not modelled gives a value that says so. It used to be an exception, which forecasts caught
// together with every real error.
TEST(Knobs, WhatIsNotModelledIsAValueThatSaysWhatAndWhatToWrite) {
  const std::vector<Refused> cases = {
      {{{"offload_optimizer", std::string("nvme")}},
       "the training step does not model offload_optimizer = nvme",
       "only none and cpu are"},
      {{{"zero_stage", std::int64_t{4}}}, "zero_stage = 4 is out of range", "use 0 to 3"},
      {{{"overlap_comm", std::int64_t{1}}}, "'overlap_comm' is 1, where true or false was expected", "fix its value"},
      {{{"micro_batch", 1.5}}, "'micro_batch' is 1.5, where an integer was expected", "fix its value"},
      {{{"tensor_parallel", std::int64_t{3}}}, "tensor_parallel = 3 does not divide 4 ranks", "choose another size"},
      {{{"pipeline_parallel", std::int64_t{3}}},
       "pipeline_parallel = 3 does not divide 4 ranks",
       "choose another size"},
      {{{"activation_checkpointing", std::string("some")}},
       "activation_checkpointing = some is not known",
       "use none, selective or full"},
      {{{"nccl_buffers", std::string("mapped")}},
       "nccl_buffers = mapped is not known",
       "use plain, registered, symmetric or copy_engines"},
      {{{"nccl_max_ctas", std::int64_t{65}}}, "nccl_max_ctas = 65 is out of range", "use 0 to 64"},
      {{{"contiguous_gradients", false}},
       "the training step does not model contiguous_gradients = false",
       "only true is"},
  };
  for (const Refused& refused : cases) {
    const auto known = knobs_of(small_model(), four_ranks(), refused.configuration);
    const NotModelled* problem = std::get_if<NotModelled>(&known);
    ASSERT_NE(problem, nullptr) << refused.configuration.text();
    EXPECT_EQ(problem->what, refused.what);
    EXPECT_EQ(problem->hint, refused.hint);
    try {
      read_knobs(small_model(), four_ranks(), refused.configuration);
      FAIL() << refused.configuration.text();
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(refused.what), std::string::npos) << error.what();
    }
  }
}

TEST(Knobs, OfSeveralProblemsTheFirstIsSaid) {
  const auto known =
      knobs_of(small_model(), four_ranks(), {{"zero_stage", std::int64_t{7}}, {"micro_batch", std::int64_t{0}}});
  ASSERT_TRUE(std::holds_alternative<NotModelled>(known));
  EXPECT_EQ(std::get<NotModelled>(known).what, "zero_stage = 7 is out of range");
}

TEST(Knobs, WhatIsModelledIsRead) {
  workload::Workload workload = small_model();
  workload.train_batch_size = 16;
  const auto known =
      knobs_of(workload, four_ranks(),
               {{"zero_stage", 2.0}, {"micro_batch", std::int64_t{2}}, {"tensor_parallel", std::int64_t{2}}});
  ASSERT_TRUE(std::holds_alternative<Knobs>(known));
  const Knobs& knobs = std::get<Knobs>(known);
  EXPECT_EQ(knobs.zero_stage, 2);
  EXPECT_EQ(knobs.data_ranks, 2);
  EXPECT_EQ(knobs.micro_steps, 4);
  workload.train_batch_size = 6;
  EXPECT_TRUE(
      std::holds_alternative<NotModelled>(knobs_of(workload, four_ranks(), {{"micro_batch", std::int64_t{4}}})));
}

// Stages are those of interleaved 1F1B: as many as there are layers for, and micro-steps in groups of the ranks.
TEST(Knobs, StagesOfAPipelineRankNeedLayersAndMicroSteps) {
  workload::Workload workload = small_model();
  workload.model.layers = 8;
  workload.framework = workload::Framework::kMegatron;
  const auto with = [&](std::int64_t stages, std::int64_t micro_steps) {
    return knobs_of(workload, four_ranks(),
                    {{"pipeline_parallel", std::int64_t{4}},
                     {"virtual_pipeline", stages},
                     {"gradient_accumulation_steps", micro_steps}});
  };
  const auto known = with(2, 8);
  ASSERT_TRUE(std::holds_alternative<Knobs>(known));
  EXPECT_EQ(std::get<Knobs>(known).virtual_stages, 2);
  ASSERT_TRUE(std::holds_alternative<NotModelled>(with(2, 6)));
  EXPECT_EQ(std::get<NotModelled>(with(2, 6)).what,
            "virtual_pipeline = 2 needs a multiple of pipeline_parallel = 4 micro-steps, and there are 6");
  ASSERT_TRUE(std::holds_alternative<NotModelled>(with(4, 8)));
  EXPECT_EQ(std::get<NotModelled>(with(4, 8)).what, "virtual_pipeline = 4 is out of range");
}

TEST(Knobs, SchedulesOfAPipelineHaveTheStagesThatTheyNeed) {
  workload::Workload workload = small_model();
  workload.model.layers = 8;
  const auto with = [&](const char* schedule, std::int64_t ranks, std::int64_t stages) {
    return knobs_of(workload, four_ranks(),
                    {{"pipeline_parallel", ranks},
                     {"pipeline_schedule", std::string(schedule)},
                     {"virtual_pipeline", stages},
                     {"gradient_accumulation_steps", std::int64_t{8}}});
  };
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v"}) {
    ASSERT_TRUE(std::holds_alternative<Knobs>(with(schedule, 4, 1))) << schedule;
    const Knobs knobs = std::get<Knobs>(with(schedule, 4, 1));
    EXPECT_STREQ(to_string(knobs.pipeline_schedule), schedule);
    EXPECT_EQ(knobs.virtual_stages, std::string(schedule) == "zb-v" ? 2 : 1);
    ASSERT_TRUE(std::holds_alternative<Knobs>(with(schedule, 1, 1)));
    EXPECT_STREQ(to_string(std::get<Knobs>(with(schedule, 1, 1)).pipeline_schedule), "1f1b") << "on one rank";
  }
  EXPECT_EQ(std::get<Knobs>(with("zb-h1", 4, 2)).virtual_stages, 2);
  for (const char* schedule : {"gpipe", "zb-h2", "zb-v"}) {
    ASSERT_TRUE(std::holds_alternative<NotModelled>(with(schedule, 4, 2)));
    EXPECT_EQ(std::get<NotModelled>(with(schedule, 4, 2)).what,
              "virtual_pipeline = 2 does not go with pipeline_schedule = " + std::string(schedule));
  }
  EXPECT_EQ(std::get<NotModelled>(with("dualpipe", 4, 1)).what, "pipeline_schedule = dualpipe is not known");
  workload.model.layers = 5;
  EXPECT_EQ(std::get<NotModelled>(with("zb-v", 4, 1)).what,
            "pipeline_schedule = zb-v needs two stages a rank, and 5 layers are too few for 4 ranks");
  workload.model.layers = 6;
  EXPECT_TRUE(std::holds_alternative<Knobs>(with("zb-v", 4, 1))) << "the ends of the model have no layer";
}

TEST(Knobs, StagesOfAPipelineRankAreNotExecuted) {
  try {
    check_knobs(small_model(), four_ranks(), {{"virtual_pipeline", std::int64_t{2}}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "virtual_pipeline = 2 is predicted, but krigtune-bench does not execute it; write 1; the runners command, "
        "deepspeed and replay take more");
  }
}

}  // namespace
}  // namespace krigtune::schedule::knobs
