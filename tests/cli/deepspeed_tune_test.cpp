// krigtune tune of a DeepSpeed job whose engine is a shell script: what the user sees of the losses, and of a file that
// is edited meanwhile.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::deepspeed_tune_test {

// Fifteen steps, at stage 2 three times as fast as at stage 1. At stage 2 the losses are $1 % higher from step 3 on.
constexpr const char* kEngine = R"sh(
while [ $# -gt 0 ]; do [ "$1" = --deepspeed_config ] && config=$2; shift; done
csv=$(dirname "$config")/monitor/trial
mkdir -p "$csv"
grep -q '"stage": 2' "$config" && ms=100 more=$(cat more) || { ms=300; more=0; }
for step in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
  for part in forward backward step; do
    echo "$((step * 8)),$ms.$step" >> "$csv/Train_Samples_elapsed_time_ms_$part.csv"
  done
  [ $step -gt 2 ] && add=$more || add=0
  echo "step $step loss 6.$((500 + add))"
done
)sh";

class DeepSpeedTune : public ::testing::Test {
 protected:
  DeepSpeedTune() {
    directory_.write_program("deepspeed", kEngine);
    directory_.write("more", "0\n");
    directory_.write("t.py", "");
    write_config("1.0");
    session_ = directory_
                   .write("job.json", R"({"cluster": {"gpus_per_node": 2}, "space": {"zero_stage": [1, 2]},
        "baseline": {"zero_stage": 1}, "budget": {"trials": 2},
        "runner": {"kind": "deepspeed", "argv": ["./deepspeed", "t.py", "--deepspeed_config", "ds_config.json"]}})")
                   .string();
  }
  void write_config(const std::string& clipping) const {
    directory_.write("ds_config.json", R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4,
        "gradient_clipping": )" + clipping +
                                           "}");
  }
  Said tune(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"tune", session_, "--out", out()};
    words.insert(words.end(), more.begin(), more.end());
    return run_krigtune(words);
  }
  std::string out() const { return (directory_ / "run").string(); }

  TemporaryDirectory directory_;
  std::string session_;
};

TEST_F(DeepSpeedTune, SaysWhetherTheLossesAgree) {
  const Said said = tune();
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("losses     the losses of trial 1 agree with those of trial 0 within 0 % over the first 15 "
                          "steps\n"),
            std::string::npos)
      << said.out;
  EXPECT_NE(run_krigtune({"results", out()}).out.find("\nthe losses of trial 1 agree"), std::string::npos);
}

TEST_F(DeepSpeedTune, PutsADisagreementFirst) {
  directory_.write("more", "65\n");
  const Said said = tune();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(
      said.out.rfind("warning    the losses of trial 1 differ from those of trial 0 from step 3 on: by 0.99 %", 0), 0U)
      << said.out;
  EXPECT_NE(said.out.find("\nbest       trial 1"), std::string::npos);
  EXPECT_NE(run_krigtune({"results", out()}).out.find("\nwarning: the losses of trial 1 differ"), std::string::npos);
}

TEST_F(DeepSpeedTune, GoesOnWithTheFileThatItBeganWith) {
  EXPECT_EQ(tune({"--trials", "1"}).code, 0);
  EXPECT_EQ(read_text(out() + "/ds_config_begun.json"), read_text(directory_ / "ds_config.json"));
  write_config("9.0");
  const Said said = tune();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("ds_config.json has changed since the session began"), std::string::npos) << said.err;
  EXPECT_EQ(load_json(out() + "/trials/0001_z2/ds_config.json").at("gradient_clipping"), 1.0);
  EXPECT_EQ(load_json(out() + "/ds_config_optimal.json").at("gradient_clipping"), 1.0);
  EXPECT_EQ(run_krigtune({"results", out()}).code, 0);
  std::filesystem::remove(directory_ / "ds_config.json");
  EXPECT_EQ(run_krigtune({"export", out(), "--format", "deepspeed", "--out", (directory_ / "x").string()}).code, 0);
  write_config("9.0");
  EXPECT_EQ(tune({"--fresh"}).err.find("has changed"), std::string::npos);
  EXPECT_EQ(load_json(out() + "/ds_config_optimal.json").at("gradient_clipping"), 9.0);
}

}  // namespace krigtune::deepspeed_tune_test
