// The command that trains, for a session whose job a recipe knows.
#include "jobs/result/training_command.h"

#include <gtest/gtest.h>

#include "core/text.h"
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

}  // namespace krigtune::training_command_test
