// tune and init --deepspeed on other machines than this one, and the launches that they need.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "cli/cli_fixtures.h"
#include "core/json.h"
#include "engine/gpu_probe.h"

namespace krigtune {
namespace {

class DeepSpeedJobTest : public testing::Test {
 protected:
  DeepSpeedJobTest() {
    directory_.write("ds.json", R"({"train_batch_size": 32, "bf16": {"enabled": true}})");
    directory_.write("train.py", "");
    for (const char* name : {"DS_ACCELERATOR", "LOCAL_SIZE", "SLURM_JOB_ID", "SLURM_NTASKS"}) ::unsetenv(name);
    gpus(0);
  }
  ~DeepSpeedJobTest() override { gpus(0); }

  static void gpus(int count) { ::setenv("FAKE_GPUS", std::to_string(count).c_str(), 1); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  // Runs `launcher`, then a script of a GPT-2 with 355 million parameters.
  Said init(std::vector<std::string> launcher, const std::string& command = "init") const {
    std::vector<std::string> words = {command, "--deepspeed", path("ds.json")};
    if (command == "init") words.push_back(path("session.json"));
    if (command == "tune") words.push_back("--show-config");
    words.emplace_back("--");
    words.insert(words.end(), launcher.begin(), launcher.end());
    for (const char* word : {"train.py", "--num_layers=24", "--hidden_size=1024", "--n_head=16", "--vocab_size=50257",
                             "--seq_length=1024", "--gradient_checkpointing", "--deepspeed_config"}) {
      words.emplace_back(word);
    }
    words.push_back(path("ds.json"));
    std::error_code ignored;
    std::filesystem::remove(directory_ / "session.json", ignored);
    return run_krigtune(words);
  }
  std::string text() const { return read_text(directory_ / "session.json"); }
  Json session() const {
    return Json::parse(text(), nullptr, true, true);  // with comments
  }

  TemporaryDirectory directory_;
};

// ds_config.json was taken for the session file, so that comments in it were refused and every origin was wrong.
TEST_F(DeepSpeedJobTest, ShowsTheSessionOfAFileWithComments) {
  directory_.write("ds.json", "{\"train_batch_size\": 16, # as before\n\"zero_optimization\": {\"stage\": \"auto\"},}");
  const Said said = init({"deepspeed", "--num_gpus", "4"}, "tune");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("\"zero_stage\": [0,1,2,3],  // the command"), std::string::npos) << said.out;
}

// As in a shell.
TEST_F(DeepSpeedJobTest, TakesVariablesBeforeTheCommand) {
  gpus(4);
  const Said said = init({"CUDA_VISIBLE_DEVICES=0,1", "deepspeed"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 2);
  const Json argv = session()["runner"]["argv"];
  EXPECT_EQ(argv[0], "env");
  EXPECT_EQ(argv[1], "CUDA_VISIBLE_DEVICES=0,1");
  EXPECT_EQ(argv[2], "deepspeed");
}

TEST_F(DeepSpeedJobTest, KnowsTheGpusOfThisNode) {
  gpus(4);
  ASSERT_EQ(engine::probe_gpus().gpus, 4);
  EXPECT_EQ(init({"deepspeed"}).code, 0);
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 4);
  EXPECT_EQ(session()["cluster"]["gpu"], "h100-80gb");
  EXPECT_EQ(session()["cluster"]["interconnect"], "nvlink4");
  EXPECT_EQ(session()["memory"]["limit_gib"].get<double>() * 1073741824.0, 85029158912.0);
  EXPECT_TRUE(session()["memory"].contains("host_limit_gib"));
  init({"torchrun", "--nproc_per_node", "2"});
  EXPECT_EQ(session()["cluster"]["gpus_per_node"], 2);
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

// Does what the engine does for model_info and for a measurement, and records each launch in launches.log.
constexpr const char* kEngine = R"(
while [ $# -gt 0 ]; do [ "$1" = --deepspeed_config ] && config="$2"; shift; done
here=$(dirname "$0") dir=$(dirname "$config")
mb=$(sed -n 's/.*"train_micro_batch_size_per_gpu": \([0-9]*\).*/\1/p' "$config")
if grep -q model_info_path "$config"; then
  echo model "$mb" >> "$here/launches.log"
  model
else
  echo trial "$mb" >> "$here/launches.log"
  csv="$dir/monitor/trial/Train_Samples_elapsed_time_ms_"
  mkdir -p "$dir/monitor/trial"
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    for part in forward backward step; do echo "$((i * 32)),$((100 / mb)).0" >> "$csv$part.csv"; done
  done
fi
)";

class DeepSpeedModelTest : public DeepSpeedJobTest {
 protected:
  // `model`: the job's answer when it is asked for its model. PARAMS ACTIVATION_BYTES are for answer().
  void write_job(const std::string& model) const {
    directory_.write_program("deepspeed",
                             "answer() { echo \"{\\\"num_params\\\": $1, \\\"trainable_num_params\\\": $1, "
                             "\\\"activation_mem_per_gpu\\\": $2, \\\"rank\\\": 0}\" > $dir/model_info.json; }\n"
                             "model() { " +
                                 model + "; }\n" + kEngine);
  }
  Said tune(std::vector<std::string> more = {}, const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> words = {"tune", "--deepspeed", path("ds.json"), "--out", path("run"), "--trials", "1"};
    words.insert(words.end(), more.begin(), more.end());
    for (const std::string& word : command()) words.push_back(word);
    words.insert(words.end(), flags.begin(), flags.end());
    return run_krigtune(words);
  }
  std::vector<std::string> command() const {
    return {"--", path("deepspeed"), "--num_gpus", "4", path("train.py"), "--deepspeed_config", path("ds.json")};
  }
  Json tuned_session() const { return load_json(directory_ / "run/session.json"); }
  // Only stage and micro-batch, so that few configurations are predicted.
  void write_small_space() const {
    directory_.write("ds.json", R"({"train_batch_size": 32, "bf16": {"enabled": true}, "autotuning": {"fast": true}})");
  }
  std::string launches() const {
    std::string text = read_text(directory_ / "launches.log");
    std::replace(text.begin(), text.end(), '\n', ';');
    return text;
  }
};

TEST_F(DeepSpeedModelTest, TheFileThatTheCommandNamesIsTunedWithoutTheOption) {
  write_job("answer 1000000 4096");
  write_small_space();
  const auto session_with = [&](std::vector<std::string> words) {
    for (const std::string& word : command()) words.push_back(word);
    return run_krigtune(words);
  };
  const Said stated = session_with({"tune", "--deepspeed", path("ds.json"), "--show-config"});
  const Said found = session_with({"tune", "--show-config"});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_EQ(found.out, stated.out);
  EXPECT_NE(found.err.find(path("ds.json") + ", which the command names, as with --deepspeed"), std::string::npos)
      << found.err;
  // Whoever says how to tune the command is believed.
  const Said other = session_with({"tune", "--recipe", "deepspeed", "--show-config"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("tune it so"), std::string::npos) << other.err;
}

TEST_F(DeepSpeedModelTest, TheJobIsAskedOnceAndNotWhenTheRunGoesOn) {
  write_job("answer 1000000 4096");
  const Said first = tune();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("the model has 1000000 parameters"), std::string::npos) << first.err;
  EXPECT_EQ(launches(), "model 1;trial 8;");  // once on the CPU; the batch of 32 without accumulation is the user's own
  const Said second = tune({"--trials", "2"});
  EXPECT_EQ(second.code, 2);  // --trials is given twice
  EXPECT_EQ(tune().code, 0);
  EXPECT_EQ(launches(), "model 1;trial 8;");
  EXPECT_EQ(tune({"--fresh"}).code, 0);
  EXPECT_EQ(launches(), "model 1;trial 8;trial 8;");
  directory_.write("ds.json", R"({"train_batch_size": 64})");  // another job
  EXPECT_EQ(tune({"--fresh"}).code, 0);
  EXPECT_EQ(launches(), "model 1;trial 8;trial 8;model 1;trial 16;");
}

TEST_F(DeepSpeedModelTest, AJobThatDoesNotTellIsTunedAllTheSame) {
  write_job("echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.' >&2; exit 1");
  const Said said = tune();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("did not tell the size of its model: out of memory"), std::string::npos) << said.err;
  EXPECT_EQ(launches(), "model 1;model 1;trial 8;");  // at the user's own stage, then at stage 3
  EXPECT_EQ(load_json(directory_ / "run.model/stage_3_micro_batch_1/ds_config.json")["zero_optimization"]["stage"], 3);
  EXPECT_EQ(tune().code, 0);  // a session that has begun learns nothing new when it continues
  EXPECT_EQ(launches(), "model 1;model 1;trial 8;");
}

TEST_F(DeepSpeedModelTest, IsNotLaunchedWhereItNeedNotBe) {
  write_job("answer 1000000 4096");
  EXPECT_EQ(tune({"--no-model-run"}).code, 0);
  EXPECT_EQ(tune({"--show-config"}).code, 0);
  EXPECT_EQ(launches(), "trial 8;");
  directory_.write("config.json", R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2,
      "n_positions": 128, "vocab_size": 512})");
  const Said said = tune({"--fresh", "--hf-config", path("config.json")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(launches(), "trial 8;trial 8;");
  EXPECT_EQ(run_krigtune({"tune", "--hf-config", "x", path("ds.json")}).code, 2);
  EXPECT_EQ(tune({"--fresh", "--hf-config", path("no_such_file.json")}).code, 2);
  directory_.write("config.json", R"({"model_type": "bloom"})");  // an unknown type: the job reports its size
  const Said unknown = tune({"--fresh", "--hf-config", path("config.json")});
  EXPECT_EQ(launches(), "trial 8;trial 8;model 1;trial 8;");
  EXPECT_NE(unknown.err.find("bloom"), std::string::npos) << unknown.err;
}

// Two points: 1 and 4 sequences need 20 GiB and 53 GiB, so 11 GiB per sequence and 9 GiB in addition. 7e9 parameters of
// bf16 with AdamW take 16 bytes each at stage 0.
TEST_F(DeepSpeedModelTest, OnGpusTwoLaunchesTellTheActivations) {
  gpus(4);
  write_small_space();
  write_job("answer 7000000000 $(((9 + mb * 11) * 1073741824))");
  const Said said = tune({}, {"--seq_length", "2048"});
  EXPECT_EQ(launches().rfind("model 1;model 4;", 0), 0U) << launches();
  EXPECT_NE(said.err.find("activations take 11.0 GiB a sequence and 9.00 GiB besides"), std::string::npos) << said.err;
  // 112e9 bytes of states, 2 per element of the smallest bucket (a 64th of 5e8), 20 GiB: 124.3 GiB.
  EXPECT_NE(said.err.find("stage 0 is left out: it takes at least 124.3 GiB of a rank's 79.2 GiB"), std::string::npos)
      << said.err;
  // 6.7e9 parameters are the nearest in the table: (7e9 - 50257 * 4096) / (12 * 4096^2) = 33.7 layers.
  EXPECT_NE(said.err.find("a GPT of 34 layers of width 4096"), std::string::npos) << said.err;
  const Json session = tuned_session();
  EXPECT_EQ(session["cluster"]["gpu"], "h100-80gb");
  EXPECT_TRUE(session["memory"].contains("limit_gib"));
  EXPECT_FALSE(session["space"].contains("activation_checkpointing"));
}

// Without recomputation, 34 layers would keep 34 * 2048 * 4096 * 34 bytes, 9 GiB per sequence; 1 GiB means
// recomputation.
TEST_F(DeepSpeedModelTest, FewActivationsAreThoseOfAScriptThatRecomputesThem) {
  gpus(4);
  write_small_space();
  write_job("answer 7000000000 $(((9 + mb) * 1073741824))");
  const Said said = tune({}, {"--seq_length", "2048"});
  EXPECT_NE(said.err.find("the script recomputes its activations"), std::string::npos) << said.err;
  const Json session = tuned_session();
  EXPECT_EQ(session["space"]["activation_checkpointing"], Json::array({"full"}));
}

TEST_F(DeepSpeedModelTest, NothingIsPredictedWhereRecomputationIsNotKnown) {
  gpus(4);
  write_job("answer 1000000 4096");
  const Said said =
      tune({}, {"--num_layers=24", "--hidden_size=1024", "--n_head=16", "--vocab_size=50257", "--seq_length=64"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("whether the script recomputes activations is not known"), std::string::npos) << said.err;
  EXPECT_EQ(launches(), "trial 8;");
  const Json session = tuned_session();
  EXPECT_EQ(session["cluster"]["gpu"], "local");
}

TEST_F(DeepSpeedModelTest, TensorParallelismIsSearchedOnceATrialHasSucceeded) {
  gpus(4);
  write_small_space();
  write_job("answer 1000000 4096");
  EXPECT_EQ(tune().code, 0);
  EXPECT_FALSE(tuned_session()["space"].contains("tensor_parallel"));
  EXPECT_EQ(tune({"--tensor-parallel"}).code, 0);  // a session that has begun continues without it
  EXPECT_EQ(launches(), "model 1;model 4;trial 8;");
  EXPECT_EQ(tune({"--tensor-parallel", "--no-model-run", "--fresh"}).code, 0);
  EXPECT_EQ(launches(), "model 1;model 4;trial 8;trial 8;trial 8;");
  EXPECT_EQ(tuned_session()["space"]["tensor_parallel"], Json::array({1, 2, 4}));
  const Json config = load_json(directory_ / "run.model/tensor_parallel_2/ds_config.json");
  EXPECT_EQ(config["tensor_parallel"]["autotp_size"], 2);
  EXPECT_EQ(config["train_micro_batch_size_per_gpu"], 8);
  EXPECT_EQ(config["gradient_accumulation_steps"], 2);  // two replicas instead of four
  EXPECT_EQ(tune({"--tensor-parallel"}).code, 0);
  EXPECT_EQ(launches(), "model 1;model 4;trial 8;trial 8;trial 8;");
}

TEST_F(DeepSpeedModelTest, TensorParallelismThatFailsIsLeftOutWithTheReason) {
  gpus(4);
  write_small_space();
  write_job("answer 1000000 4096");
  const std::string engine = read_text(directory_ / "deepspeed");
  // DeepSpeed's check at the first forward pass: deepspeedai/DeepSpeed#7199.
  const std::string fails =
      "if grep -q autotp_size \"$config\"; then\n"
      "  printf 'Traceback (most recent call last):\\n  File \"train.py\", line 9, in <module>\\n"
      "AssertionError: Data inconsistency within the TP group.\\n' >&2\n  exit 1\nfi\n";
  std::string text = engine;
  text.insert(text.find("if grep -q model_info_path"), fails);
  std::ofstream(directory_ / "deepspeed") << text;
  const Said said = tune({"--tensor-parallel"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("tensor parallelism is left out: its trial failed"), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("Data inconsistency within the TP group"), std::string::npos) << said.err;
  EXPECT_FALSE(tuned_session()["space"].contains("tensor_parallel"));
  EXPECT_EQ(tune({"--tensor-parallel"}).code, 0);  // continues, and prints the same
  EXPECT_EQ(run_krigtune({"tune", "--tensor-parallel", path("ds.json")}).code, 2);
}

TEST_F(DeepSpeedModelTest, InitAsksWhereItIsToldTo) {
  write_job("answer 1000000 4096");
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  std::vector<std::string> words = {"init",        "a.json",     "--deepspeed", "ds.json",  "--",
                                    "./deepspeed", "--num_gpus", "2",           "train.py", "--deepspeed_config",
                                    "ds.json"};
  EXPECT_EQ(run_krigtune(words).code, 0);
  EXPECT_EQ(read_text("a.json").find("1000000 parameters"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists("launches.log"));
  words[1] = "b.json";
  words.insert(words.begin() + 2, "--model-run");
  EXPECT_EQ(run_krigtune(words).code, 0);
  std::filesystem::current_path(here);
  EXPECT_NE(read_text(directory_ / "b.json").find("the model has 1000000 parameters"), std::string::npos);
  EXPECT_EQ(launches(), "model 1;");
}

}  // namespace
// Any command, of which only the launcher is known: the GPUs are those of the driver.
TEST_F(DeepSpeedJobTest, GpusOfAnyCommandAreThoseOfTheDriver) {
  const std::vector<std::string> words = {"init",
                                          path("any.json"),
                                          "--vary",
                                          "mbs=--mbs:1,2",
                                          "--metric",
                                          "tokens/s ([0-9.]+)",
                                          "--",
                                          "torchrun",
                                          "--nproc_per_node",
                                          "4",
                                          "t.py",
                                          "--mbs",
                                          "1"};
  gpus(4);
  const Said said = run_krigtune(words);
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(
      said.err.find("seen: 4 ranks on one node and the GPU h100-80gb with 79.2 GiB; inferred from the trials: the "
                    "framework and the model"),
      std::string::npos)
      << said.err;
  EXPECT_EQ(load_json(path("any.json"))["cluster"].dump(), R"({"gpus_per_node":4,"gpu":"h100-80gb"})");
  gpus(0);
  std::filesystem::remove(path("any.json"));
  const Said without = run_krigtune(words);
  EXPECT_NE(without.err.find("not seen: the GPU"), std::string::npos) << without.err;
  EXPECT_EQ(load_json(path("any.json"))["cluster"].dump(), R"({"gpus_per_node":4})");
}

// A session that was begun on a machine with GPUs goes on elsewhere with what it recorded.
TEST_F(DeepSpeedJobTest, ARunKeepsWhatWasSeenWhenItBegan) {
  const std::string file = directory_
                               .write("own.json", R"json({
    "space": {"micro_batch": [1, 2]}, "baseline": {"micro_batch": 1},
    "objective": {"metric": "throughput"}, "budget": {"trials": 1},
    "runner": {"kind": "command", "argv": ["env", "NPROC_PER_NODE=2", "sh", "-c", "echo speed 5", "{micro_batch}"],
               "env": {"NPROC_PER_NODE": "2"}, "measure": {"samples_per_s": {"regex": "speed ([0-9]+)", "kind": "final"}}}})json")
                               .string();
  gpus(2);
  const Said first = run_krigtune({"tune", file, "--out", path("run")});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.err.find("seen: 2 ranks on one node and the GPU h100-80gb"), std::string::npos) << first.err;
  const Json recorded = load_json(path("run") + "/session.json");
  EXPECT_EQ(recorded["cluster"]["gpu"], "h100-80gb");
  EXPECT_EQ(recorded["cluster"]["gpus_per_node"], 2);
  gpus(0);
  const Said again = run_krigtune({"tune", file, "--out", path("run"), "--trials", "2"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(load_json(path("run") + "/session.json")["cluster"]["gpu"], "h100-80gb");
  EXPECT_EQ(run_krigtune({"ask", path("run"), "--session", file}).code, 1) << "both configurations were tried";
  const Said shown = run_krigtune({"tune", file, "--out", path("other"), "--show-config"});
  EXPECT_EQ(shown.out.find("h100"), std::string::npos) << "nothing is seen now";
}

}  // namespace krigtune
