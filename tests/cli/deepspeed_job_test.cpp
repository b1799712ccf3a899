// tune and init --deepspeed on machines that this one is not: with GPUs, with a hostfile, with none of both.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/cli_fixtures.h"
#include "krigtune/core/json.h"
#include "krigtune/engine/gpu_probe.h"

namespace krigtune {
namespace {

class DeepSpeedJobTest : public testing::Test {
 protected:
  DeepSpeedJobTest() {
    directory_.write("ds.json", R"({"train_batch_size": 32, "bf16": {"enabled": true}})");
    for (const char* name : {"DS_ACCELERATOR", "LOCAL_SIZE", "SLURM_JOB_ID", "SLURM_NTASKS"}) ::unsetenv(name);
    gpus(0);
  }
  ~DeepSpeedJobTest() override { gpus(0); }

  static void gpus(int count) { ::setenv("FAKE_GPUS", std::to_string(count).c_str(), 1); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  // `launcher`, then a script of a GPT-2 of 355 million parameters.
  Said init(std::vector<std::string> launcher, const std::string& command = "init") const {
    std::vector<std::string> words = {command, "--deepspeed", path("ds.json")};
    if (command == "init") words.push_back(path("session.json"));
    if (command == "tune") words.push_back("--show-config");
    words.emplace_back("--");
    words.insert(words.end(), launcher.begin(), launcher.end());
    for (const char* word : {"train.py", "--num_layers=24", "--hidden_size=1024", "--n_head=16", "--vocab_size=50257",
                             "--seq_length=1024", "--deepspeed_config"}) {
      words.emplace_back(word);
    }
    words.push_back(path("ds.json"));
    std::error_code ignored;
    std::filesystem::remove(directory_ / "session.json", ignored);
    return run(words);
  }
  std::string text() const { return read_text(directory_ / "session.json"); }
  Json session() const {
    return Json::parse(text(), nullptr, true, true);  // comments and all
  }

  TemporaryDirectory directory_;
};

TEST_F(DeepSpeedJobTest, KnowsTheGpusOfThisNode) {
  gpus(4);
  ASSERT_EQ(probe_gpus().gpus, 4);
  EXPECT_EQ(init({"deepspeed"}).code, 0);
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 4);
  EXPECT_EQ(session()["cluster"]["gpu"], "h100-80gb");
  EXPECT_EQ(session()["cluster"]["interconnect"], "nvlink4");
  EXPECT_EQ(session()["memory"]["limit_gib"].get<double>() * 1073741824.0, 85029158912.0);
  EXPECT_TRUE(session()["memory"].contains("host_limit_gib"));
  init({"torchrun", "--nproc_per_node", "2"});
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 2);
}

TEST_F(DeepSpeedJobTest, TakesOtherNodesForNodesLikeThisOne) {
  gpus(4);
  directory_.write("hosts", "a slots=4\nb slots=4\n");
  EXPECT_EQ(init({"deepspeed", "--hostfile", path("hosts")}).code, 0);
  EXPECT_EQ(session()["cluster"]["nodes"], 2);
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 4);
  EXPECT_TRUE(session()["memory"].contains("limit_gib"));
  EXPECT_NE(text().find("taken for nodes like this one, 79.2 GiB a GPU"), std::string::npos) << text();
  EXPECT_NE(text().find("the network between the nodes is not known"), std::string::npos) << text();
  gpus(0);
  EXPECT_EQ(init({"srun", "-N", "2", "-n", "8", "python"}).code, 0);
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 4);
  EXPECT_FALSE(session()["memory"].contains("limit_gib"));
  EXPECT_NE(text().find("this node has no GPU"), std::string::npos) << text();
}

TEST_F(DeepSpeedJobTest, RanksThatNobodySaysAreAskedFor) {
  const Said said = init({"deepspeed"}, "tune");
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  EXPECT_NE(said.err.find("how many ranks"), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("add --num_gpus N"), std::string::npos) << said.err;
  EXPECT_EQ(init({"deepspeed"}).code, 0);
  EXPECT_NE(text().find("\"cluster\" below is a guess"), std::string::npos) << text();
  ::setenv("LOCAL_SIZE", "4", 1);
  EXPECT_EQ(init({"deepspeed"}, "tune").code, 0);
  ::unsetenv("LOCAL_SIZE");
}

TEST_F(DeepSpeedJobTest, AWrapperIsTakenForTheGpusOfThisNodeAndSaysSo) {
  gpus(2);
  EXPECT_EQ(init({"./run.sh"}).code, 0);
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 2);
  EXPECT_NE(text().find("the command's launcher is not known"), std::string::npos) << text();
}

}  // namespace
}  // namespace krigtune
