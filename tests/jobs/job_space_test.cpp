// The values worth trying for the sizes of model and machine, compared with results computed by hand.
#include "jobs/session/job_space.h"

#include <gtest/gtest.h>

namespace krigtune::job_space_test {

Json json_of(const char* text) { return parse_json(text, "test"); }

jobs::JobSize size_of(std::int64_t ranks, std::int64_t per_node, std::int64_t batch) {
  jobs::JobSize size;
  size.ranks = ranks;
  size.gpus_per_node = per_node;
  size.train_batch_size = batch;
  size.own = {{"micro_batch", std::int64_t{3}}, {"gradient_accumulation_steps", batch / (3 * ranks)}};
  return size;
}

TEST(JobSpace, KeepsTheBatchByAConstraintWhereNobodyDerivesIt) {
  jobs::JobSize size = size_of(4, 4, 96);  // 24 per rank
  size.can_write_accumulation = true;
  const jobs::JobSpace made = jobs::fitted_space(json_of(R"({"micro_batch": [1, 5, 64]})"), size);
  EXPECT_EQ(made.space.dump(), R"({"micro_batch":[1,2,3,4,8],"gradient_accumulation_steps":[3,6,8,12,24]})");
  EXPECT_EQ(made.constraints, std::vector<std::string>{"micro_batch * gradient_accumulation_steps * dp == 96"});
}

TEST(JobSpace, LeavesTheAccumulationToSessionsAndFrameworksThatDeriveIt) {
  jobs::JobSize size = size_of(4, 4, 96);
  const Json space = json_of(R"({"micro_batch": [1], "gradient_accumulation_steps": [1, 2]})");
  EXPECT_EQ(jobs::fitted_space(space, size).space.dump(), R"({"micro_batch":[1,2,3,4,8]})");
  EXPECT_EQ(jobs::fitted_space(space, size).constraints, std::vector<std::string>{"96 % (micro_batch * dp) == 0"});
  size.follows_batch = true;
  EXPECT_EQ(jobs::fitted_space(space, size).space.dump(), R"({"micro_batch":[1,2,3,4,8]})");
  EXPECT_TRUE(jobs::fitted_space(space, size).constraints.empty());
  size.train_batch_size.reset();
  EXPECT_EQ(jobs::fitted_space(json_of(R"({"micro_batch": [1]})"), size).space.dump(),
            R"({"micro_batch":[1,2,3,4,8,16]})");
}

TEST(JobSpace, SplitsTheModelWithinNodesAndOverWholeHeadsAndLayers) {
  jobs::JobSize size = size_of(16, 8, 96);
  size.kv_heads = 4;
  size.layers = 6;
  size.follows_batch = true;
  const jobs::JobSpace made = jobs::fitted_space(
      json_of(R"({"tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": {"min": 1, "max": 8, "scale": "log2"}})"),
      size);
  EXPECT_EQ(made.space.dump(), R"({"tensor_parallel":[1,2,4],"pipeline_parallel":[1,2]})");
  EXPECT_EQ(made.constraints, std::vector<std::string>{"ranks % (tensor_parallel * pipeline_parallel) == 0"});
}

TEST(JobSpace, GivesPipelineRanksAsManyStagesAsDivideTheLayers) {
  jobs::JobSize size = size_of(4, 4, 96);
  size.layers = 12;
  size.follows_batch = true;
  const Json space = json_of(R"({"pipeline_parallel": [1, 2, 4], "virtual_pipeline": [1, 2, 3, 4]})");
  EXPECT_EQ(jobs::fitted_space(space, size).space["virtual_pipeline"].dump(), "[1,2,3]") << "12 = 4 x 3, 2 x 6, no 8";
  EXPECT_FALSE(jobs::fitted_space(json_of(R"({"virtual_pipeline": [1, 2]})"), size).space.contains("virtual_pipeline"))
      << "without a pipeline";
}

TEST(JobSpace, CountsTheReplicasOfEveryKindOfParallelism) {
  jobs::JobSize size = size_of(8, 8, 48);
  size.can_write_accumulation = true;
  const jobs::JobSpace made =
      jobs::fitted_space(json_of(R"({"micro_batch": [1], "context_parallel": [1, 2, 3, 8]})"), size);
  EXPECT_EQ(made.space["context_parallel"].dump(), "[1,2,8]");
  EXPECT_EQ(made.space["gradient_accumulation_steps"].dump(), "[2,3,4,6,12,16,24,48]");
  EXPECT_EQ(made.constraints, std::vector<std::string>{"micro_batch * gradient_accumulation_steps * dp == 48"});
}

TEST(JobSpace, KeepsTheBatchWhereRanksShareASequence) {
  jobs::JobSize size = size_of(8, 8, 32);
  size.can_write_accumulation = true;
  size.own = {
      {"micro_batch", std::int64_t{2}}, {"tensor_parallel", std::int64_t{2}}, {"context_parallel", std::int64_t{2}}};
  const jobs::JobSpace made =
      jobs::fitted_space(json_of(R"({"micro_batch": [1], "tensor_parallel": [1, 2, 4, 8]})"), size);
  EXPECT_EQ(made.constraints, (std::vector<std::string>{"micro_batch * gradient_accumulation_steps * dp == 32",
                                                        "ranks % (tensor_parallel * context_parallel) == 0"}));
}

TEST(JobSpace, LeavesOutWhatOneRankAloneCannotFeel) {
  const jobs::JobSpace made = jobs::fitted_space(
      json_of(R"({"zero_stage": [0, 1, 2], "overlap_comm": [false, true], "activation_checkpointing": ["none", "full"],
                  "ddp_find_unused_parameters": [true, false], "tensor_parallel": [1, 2]})"),
      size_of(1, 1, 6));
  EXPECT_EQ(made.space.dump(), R"({"activation_checkpointing":["none","full"]})");
  EXPECT_EQ(made.without_effect,
            (std::vector<std::string>{"zero_stage", "overlap_comm", "ddp_find_unused_parameters"}));
}

}  // namespace krigtune::job_space_test
