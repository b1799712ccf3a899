// Sessions made from a user's job, on other machines than this one, and what the job is asked for that.
#include "deepspeed/session/session_of_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "core/files.h"
#include "deepspeed/job/deepspeed_spec.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::session_of_job_test {

constexpr std::int64_t kH100Bytes = 85029158912;  // 79.2 GiB
// A GPT-2 with 355 million parameters.
const std::vector<std::string> kSizes = {"--num_layers=24",    "--hidden_size=1024", "--n_head=16",
                                         "--vocab_size=50257", "--seq_length=1024",  "--gradient_checkpointing"};

class SessionOfJob : public testing::Test {
 protected:
  SessionOfJob() {
    for (const char* name : {"DS_ACCELERATOR", "LOCAL_SIZE", "SLURM_JOB_ID", "SLURM_NTASKS"}) ::unsetenv(name);
    request_.ds_config = directory_.write("ds.json", R"({"train_batch_size": 32, "bf16": {"enabled": true}})");
    request_.run_directory = directory_ / "run";
    request_.progress = [this](const std::string& text) { progress_.push_back(text); };
  }
  ~SessionOfJob() override { ::unsetenv("DS_ACCELERATOR"); }

  void gpus(int count) {
    request_.find_gpus = [this, count] {
      ++probes_;
      return deepspeed::NodeGpus{count, "NVIDIA H100 80GB HBM3", kH100Bytes};
    };
  }

  // Runs `launcher`, then a script with these flags.
  deepspeed::JobSession made(const std::vector<std::string>& launcher, const std::vector<std::string>& flags = kSizes) {
    request_.command = launcher;
    request_.command.emplace_back("train.py");
    request_.command.insert(request_.command.end(), flags.begin(), flags.end());
    request_.command.insert(request_.command.end(), {"--deepspeed_config", request_.ds_config.string()});
    return deepspeed::session_of_job(request_, ManualClock());
  }
  std::string refusal(const std::vector<std::string>& launcher) {
    return user_error_of([&] { made(launcher); });
  }

  // Writes a launcher that reports the size of the model, and records each launch.
  std::string write_engine() const {
    return directory_
        .write_program("deepspeed", R"(
while [ $# -gt 0 ]; do [ "$1" = --deepspeed_config ] && config="$2"; shift; done
echo launch >> "$(dirname "$0")/launches.log"
echo '{"num_params": 1000000, "activation_mem_per_gpu": 4096, "rank": 0}' > "$(dirname "$config")/model_info.json"
)")
        .string();
  }
  std::size_t launches() const {
    if (!std::filesystem::exists(directory_ / "launches.log")) return 0;
    const std::string text = read_text(directory_ / "launches.log");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  TemporaryDirectory directory_;
  deepspeed::JobRequest request_;
  std::vector<std::string> progress_;
  int probes_ = 0;  ///< how often the GPUs of the node were queried
};

bool says(const deepspeed::JobSession& made, const std::string& text) {
  return std::any_of(made.remarks.begin(), made.remarks.end(),
                     [&](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

TEST_F(SessionOfJob, KnowsTheGpusOfThisNode) {
  gpus(4);
  const deepspeed::JobSession all = made({"deepspeed"});
  EXPECT_EQ(all.session.cluster.ranks(), 4);
  EXPECT_EQ(all.session.cluster.gpu, "h100-80gb");
  EXPECT_EQ(all.json["memory"]["limit_gib"].get<double>() * 1073741824.0, static_cast<double>(kH100Bytes));
  EXPECT_EQ(all.session.file, request_.ds_config);
  EXPECT_EQ(std::get<deepspeed::DeepSpeedSpec>(all.session.runner).argv, request_.command);
  EXPECT_EQ(made({"torchrun", "--nproc_per_node", "2"}).session.cluster.ranks(), 2);
}

TEST_F(SessionOfJob, RanksAreOnTheCpuWhereTheEnvironmentSaysSo) {
  gpus(4);
  ::setenv("DS_ACCELERATOR", "cpu", 1);
  const deepspeed::JobSession on_cpu = made({"deepspeed", "--num_gpus", "2"});
  EXPECT_EQ(on_cpu.session.cluster.gpu, "local");
  EXPECT_FALSE(on_cpu.json["memory"].contains("limit_gib"));
  EXPECT_EQ(probes_, 0);
}

TEST_F(SessionOfJob, AsksForGpusOnceAndNotForAJobThatItRefuses) {
  gpus(4);
  made({"deepspeed"});
  EXPECT_EQ(probes_, 1);
  request_.ds_config = directory_ / "missing.json";
  EXPECT_NE(refusal({"deepspeed"}).find("missing.json"), std::string::npos);
  EXPECT_EQ(probes_, 1);
}

TEST_F(SessionOfJob, TakesOtherNodesForNodesLikeThisOne) {
  gpus(4);
  const std::string hosts = directory_.write("hosts", "a slots=4\nb slots=4\n").string();
  const deepspeed::JobSession like_this = made({"deepspeed", "--hostfile", hosts});
  EXPECT_EQ(like_this.json["cluster"]["nodes"], 2);
  EXPECT_EQ(like_this.json["cluster"]["gpus_per_node"], 4);
  EXPECT_TRUE(like_this.json["memory"].contains("limit_gib"));
  EXPECT_TRUE(says(like_this, "taken for nodes like this one, 79.2 GiB a GPU"));
  EXPECT_TRUE(says(like_this, "the network between the nodes is not known"));
  gpus(0);
  const deepspeed::JobSession unlike = made({"srun", "-N", "2", "-n", "8", "python"});
  EXPECT_EQ(unlike.json["cluster"]["gpus_per_node"], 4);
  EXPECT_FALSE(unlike.json["memory"].contains("limit_gib"));
  EXPECT_TRUE(says(unlike, "this node has no GPU"));
}

TEST_F(SessionOfJob, AWrapperIsTakenForTheGpusOfThisNodeAndSaysSo) {
  gpus(2);
  const deepspeed::JobSession wrapped = made({"./run.sh"});
  EXPECT_EQ(wrapped.session.cluster.ranks(), 2);
  EXPECT_TRUE(says(wrapped, "the command's launcher is not known"));
}

TEST_F(SessionOfJob, RanksThatNobodySaysAreGuessedOnlyWhereTheyMayBe) {
  EXPECT_NE(refusal({"deepspeed"}).find("how many ranks"), std::string::npos);
  EXPECT_NE(refusal({"deepspeed"}).find("add --num_gpus N"), std::string::npos);
  request_.may_guess_ranks = true;
  EXPECT_NE(made({"deepspeed"}).remarks.front().find("\"cluster\" below is a guess"), std::string::npos);
}

TEST_F(SessionOfJob, AUsersSessionIsRunByTheCommandOnItsOwnRanks) {
  const std::string text = R"({"cluster": {"gpus_per_node": 4}, "space": {"zero_stage": [1, 2]},
      "runner": {"kind": "none"}})";
  request_.session = directory_.write("own.json", text);
  const deepspeed::JobSession own = made({"deepspeed", "--num_gpus", "4"});
  EXPECT_EQ(own.json["space"], parse_json(R"({"zero_stage": [1, 2]})", "expected"));
  EXPECT_EQ(std::get<deepspeed::DeepSpeedSpec>(own.session.runner).argv, request_.command);
  EXPECT_TRUE(own.remarks.empty());
  EXPECT_NE(refusal({"deepspeed", "--num_gpus", "2"}).find("/cluster: 4 ranks, but the command starts 2"),
            std::string::npos);
  request_.tensor_parallel = true;
  EXPECT_NE(refusal({"deepspeed", "--num_gpus", "4"}).find("the session says what is searched"), std::string::npos);
}

TEST_F(SessionOfJob, TheJobIsAskedOnceForItsModelAndOnlyIfItMayBe) {
  const std::vector<std::string> launcher = {write_engine(), "--num_gpus", "4"};
  for (const auto never : {deepspeed::JobLaunches::kNone, deepspeed::JobLaunches::kNotForModel}) {
    request_.launches = never;
    EXPECT_FALSE(says(made(launcher, {}), "parameters"));
  }
  EXPECT_EQ(launches(), 0U);
  request_.launches = deepspeed::JobLaunches::kAsNeeded;
  EXPECT_TRUE(says(made(launcher, {}), "the model has 1000000 parameters, as the job itself counts them"));
  EXPECT_EQ(progress_, std::vector<std::string>{"asking the job for the size of its model: one launch, until its first "
                                                "forward pass"});
  EXPECT_TRUE(says(made(launcher, {}), "the model has 1000000 parameters"));
  request_.launches = deepspeed::JobLaunches::kNone;
  EXPECT_TRUE(says(made(launcher, {}), "the model has 1000000 parameters"));
  EXPECT_EQ(launches(), 1U);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "run.model/model_info.json"));
}

TEST_F(SessionOfJob, AModelThatIsKnownIsNotAskedFor) {
  request_.launches = deepspeed::JobLaunches::kAsNeeded;
  made({write_engine(), "--num_gpus", "4"});
  EXPECT_EQ(launches(), 0U);
}

TEST_F(SessionOfJob, AFileThatIsNamedMustBeThere) {
  request_.hf_config = directory_ / "no_such_file.json";
  EXPECT_NE(refusal({"deepspeed", "--num_gpus", "4"}).find("no_such_file.json"), std::string::npos);
}

}  // namespace krigtune::session_of_job_test
