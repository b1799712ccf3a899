// The command that trains, for a session whose job a recipe knows.
#include "jobs/result/training_command.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "jobs/recipe/config_values.h"
#include "jobs/session/job_session.h"
#include "space/well_known.h"
#include "trial/temporary_directory.h"
#include "words.h"

namespace krigtune::training_command_test {

constexpr const char* kMegatron =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 "
    "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 64 --vocab-size 32000";

class TrainingCommand : public testing::Test {
 protected:
  // Returns the command of `line` with these values, which have the space's form.
  std::string trains(const std::string& line, const space::Configuration& values) const {
    jobs::JobRequest request;
    request.command = words_of(line);
    request.directory = directory_.path();
    const session::Session session = jobs::session_of_job(request).session;
    space::Configuration configuration = session.baseline.value();
    configuration.erase(space::kAccumulation);  // it follows from the other parameters
    for (const auto& [name, value] : values) configuration.set(name, value);
    EXPECT_EQ(session.space.complete(configuration), space::Exclusion::kNone);
    return join(jobs::training_command(session, configuration, {directory_.path(), "c.json", "r.json", 3}).argv, " ");
  }

  TemporaryDirectory directory_;
};

TEST_F(TrainingCommand, LeavesWhatHasNoEffectAsTheUserWroteIt) {
  const std::string without = kMegatron;
  const std::string with = without + " --sequence-parallel";
  const space::Configuration two_ranks = {{"tensor_parallel", std::int64_t{2}}, {"sequence_parallel", true}};
  const std::string two = " --tensor-model-parallel-size 2";
  for (const bool value : {false, true}) {
    EXPECT_EQ(trains(without, {{"sequence_parallel", value}}), without) << "it does nothing on one rank";
    EXPECT_EQ(trains(with, {{"sequence_parallel", value}}), with);
  }
  EXPECT_EQ(trains(without, two_ranks), without + two + " --sequence-parallel");
  EXPECT_EQ(trains(with + two, {{"tensor_parallel", std::int64_t{1}}}), with + " --tensor-model-parallel-size 1");
}

// All buckets that hold the whole model are equivalent.
TEST_F(TrainingCommand, KeepsABucketThatMeansTheSame) {
  const std::string size = " --overlap-grad-reduce --ddp-bucket-size ";
  const std::string whole = std::string(kMegatron) + size + "600000000";
  EXPECT_EQ(trains(whole, {}), whole);
  EXPECT_EQ(trains(whole, {{"reduce_bucket_size", std::int64_t{640'000'000}}}), whole);
  EXPECT_EQ(trains(whole, {{"reduce_bucket_size", std::int64_t{40'000'000}}}),
            std::string(kMegatron) + size + "40000000");
}

// A key that the user's file does not have was written as "+recompute_layer", which nanotron refuses.
TEST_F(TrainingCommand, AddsAMissingKeyToTheFileUnderItsOwnName) {
  directory_.write(
      "llama.yaml",
      "model:\n  model_config:\n    num_hidden_layers: 4\n    hidden_size: 256\n    num_attention_heads: 4\n"
      "    intermediate_size: 512\n    vocab_size: 1000\n"
      "parallelism:\n  dp: 4\n  tp: 1\n  pp: 1\noptimizer:\n  zero_stage: 0\n"
      "tokens:\n  sequence_length: 128\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 2\n");
  jobs::JobRequest request;
  request.command = words_of("torchrun --nproc_per_node 4 run_train.py --config-file llama.yaml");
  request.directory = directory_.path();
  const session::Session session = jobs::session_of_job(request).session;
  space::Configuration configuration = session.baseline.value();
  configuration.set("activation_checkpointing", std::string("full"));
  const auto made = jobs::training_command(session, configuration, {directory_.path(), "c.json", "r.json", 3});
  ASSERT_EQ(made.files.size(), 1U);
  const jobs::ConfigValues values = jobs::config_values_of(made.files.front().second, ".yaml", "llama.yaml");
  EXPECT_TRUE(values.contains("parallelism.recompute_layer")) << made.files.front().second;
  for (const auto& [key, value] : values) EXPECT_EQ(key.find('+'), std::string::npos) << key;
}

}  // namespace krigtune::training_command_test
