// krigtune tune and init for any command: what users type, and what they get.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::job_tune_test {

// Prints twenty lines. The speed grows with --mbs and $WORKERS, and is a third higher with --fast.
constexpr const char* kScript = R"sh(
mbs=1 fast=0
while [ $# -gt 0 ]; do
  case $1 in --mbs) mbs=$2; shift ;; --fast) fast=1 ;; --out) out=$2; shift ;; esac
  shift
done
speed=$((mbs * 60 + ${WORKERS:-0} * 3)); [ $fast = 0 ] || speed=$((speed * 4 / 3))
for step in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "step $step: $speed tokens/s"; done
)sh";

class JobTune : public testing::Test {
 protected:
  JobTune() { script_ = directory_.write_program("train.sh", kScript).string(); }

  std::vector<std::string> words(const std::string& command, const std::vector<std::string>& before = {}) const {
    std::vector<std::string> words = {command};
    words.insert(words.end(), before.begin(), before.end());
    words.insert(words.end(), {"--vary", "micro_batch=--mbs:1,2,4", "--vary", "fast=--fast:false,true", "--metric",
                               "([0-9]+) tokens/s", "--", "WORKERS=2", script_, "--mbs", "2", "--out", "x y"});
    return words;
  }
  std::string out() const { return (directory_ / "run").string(); }
  std::vector<std::string> tune(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> before = {"--out", out()};
    before.insert(before.end(), more.begin(), more.end());
    return words("tune", before);
  }

  TemporaryDirectory directory_;
  std::string script_;
};

TEST_F(JobTune, FindsTheBestOfAnyCommandAndSaysWhatChanged) {
  const Said said = run_krigtune(tune({"--full-budget"}));
  ASSERT_EQ(said.code, 0) << said.err;
  const Json best = load_json(out() + "/best.json");
  EXPECT_EQ(best["configuration"].dump(), R"({"micro_batch":4,"fast":true})");
  EXPECT_EQ(load_json(out() + "/trials/0000_mb2/config.json").dump(), R"({"micro_batch":2,"fast":false})");
  const std::string command = read_text(out() + "/cmd_optimal.txt");
  EXPECT_NE(command.find("env WORKERS=2 " + script_ + " --mbs 4 --out 'x y' --fast\n"), std::string::npos) << command;
  const std::string changes = read_text(out() + "/changes.md");
  EXPECT_NE(changes.find("\n| `--mbs` | `2` | `4` | "), std::string::npos) << changes;
  EXPECT_NE(changes.find("\n| `--fast` |  | there | "), std::string::npos) << changes;
  EXPECT_EQ(changes.find("WORKERS"), std::string::npos);
}

TEST_F(JobTune, GoesOnWithTheSameCommand) {
  ASSERT_EQ(run_krigtune(tune({"--trials", "2"})).code, 0);
  const Said again = run_krigtune(tune({"--trials", "3"}));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(lines_in(read_text(out() + "/trials.csv")), 4U);
  EXPECT_EQ(run_krigtune({"results", out()}).code, 0);
  std::vector<std::string> other = tune();
  other.back() = "z";
  const Said refused = run_krigtune(other);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("/runner/argv"), std::string::npos) << refused.err;
}

TEST_F(JobTune, ShowsTheSessionThatItMakes) {
  const Said said = run_krigtune(tune({"--show-config", "--json"}));
  ASSERT_EQ(said.code, 0) << said.err;
  const Json shown = parse_json(said.out, "shown");
  EXPECT_EQ(shown["session"]["baseline"].dump(), R"({"micro_batch":2,"fast":false})");
  EXPECT_EQ(shown["origins"]["/space/micro_batch"], "the command");
  EXPECT_EQ(shown["origins"]["/budget/trials"], "default");
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(JobTune, InitWritesTheSameSessionWithRemarks) {
  const std::string file = (directory_ / "own.json").string();
  const Said said = run_krigtune(words("init", {file}));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(read_text(file).rfind("// A session for the job of ", 0), 0U);
  EXPECT_NE(read_text(file).find("\n// the sequences of a step vary with micro_batch"), std::string::npos);
  const Said shown = run_krigtune({"tune", file, "--show-config", "--json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const Json made = parse_json(run_krigtune(tune({"--show-config", "--json"})).out, "made");
  EXPECT_EQ(parse_json(shown.out, "shown")["session"].dump(2), made["session"].dump(2));
}

TEST_F(JobTune, ReadsTheCommandWithinAShell) {
  const std::string file = (directory_ / "shell.json").string();
  const Said said = run_krigtune({"init", file, "--", "srun", "-n8", "sh", "-c",
                                  "export A=1; python pretrain_gpt.py --num-layers 24 --hidden-size 1024 "
                                  "--num-attention-heads 16 --seq-length 1024 --micro-batch-size 8"});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("the line of sh -c is one plain command"), std::string::npos) << said.err;
  EXPECT_NE(read_text(file).find("\"micro_batch\": 8"), std::string::npos) << read_text(file);
  const Said refused = run_krigtune({"init", file + "2", "--", "srun", "sh", "-c", "python pretrain_gpt.py | tee log"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("is not read: sh -c: its line has a pipe (|)"), std::string::npos) << refused.err;
}

TEST_F(JobTune, TakesBudgetAndLimitsFromASession) {
  const std::string file = directory_
                               .write("own.json", R"({"budget": {"trials": 3}, "space": {"micro_batch": [1, 2]},
      "runner": {"kind": "command", "argv": ["x"], "timeout_s": 9}})")
                               .string();
  const Json session = parse_json(run_krigtune(tune({file, "--show-config", "--json"})).out, "shown")["session"];
  EXPECT_EQ(session["budget"]["trials"], 3);
  EXPECT_EQ(session["runner"]["timeout_s"], 9);
  EXPECT_EQ(session["space"]["micro_batch"].dump(), "[1,2,4]");
}

TEST_F(JobTune, RefusesOptionsThatGoWithAnother) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> table = {
      {{"tune", "--metric", "x ([0-9]+)", "own.json"}, "--metric needs a command after --"},
      {{"init", "--vary", "x=--x:1,2"}, "--vary needs a command after --"},
      {{"tune", "--deepspeed", "ds.json", "--vary", "x=--x:1,2", "--", "deepspeed", "t.py"},
       "--vary and --deepspeed cannot be combined"},
      {{"tune", "--hf-config", "c.json", "--", "python", "t.py"}, "--hf-config needs --deepspeed"},
      {{"tune", "--vary", "x", "--", "python", "t.py"}, "--vary 'x': is not understood"},
  };
  for (const auto& [words, text] : table) {
    const Said said = run_krigtune(words);
    EXPECT_EQ(said.code, 2);
    EXPECT_NE(said.err.find(text), std::string::npos) << said.err;
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  }
}

// A job whose Python counts the parameters of its model: a program takes its place.
class CountedModel : public testing::Test {
 protected:
  CountedModel() {
    directory_.write("config.json", R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    "vocab_size": 128256, "tie_word_embeddings": false})");
    write_python(8030261248 + 4096);
  }
  void write_python(std::int64_t parameters) const {
    directory_.write_program("python", R"(echo asked >>"$(dirname "$0")/asked"
cat >"$4" <<'END'
{"packages": {"torch": "2.15.0", "transformers": "5.24.0"}, "class": "LlamaForCausalLM", "weights": [], "parameters": )" +
                                           std::to_string(parameters) + "}\nEND\n");
  }
  std::vector<std::string> words(std::vector<std::string> before) const {
    before.insert(before.end(), {"--", (directory_ / "python").string(), "run_clm.py", "--model_name_or_path",
                                 directory_.path().string(), "--per_device_train_batch_size", "4", "--block_size",
                                 "512", "--bf16", "--output_dir", "out"});
    return before;
  }
  bool is_asked() const { return std::filesystem::exists(directory_ / "asked"); }

  TemporaryDirectory directory_;
};

TEST_F(CountedModel, IsPlannedByInitAndTune) {
  const std::string file = (directory_ / "own.json").string();
  const Said said = run_krigtune(words({"init", file}));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(read_text(file).find("// the model has 8030265344 parameters, as transformers 5.24.0 of "),
            std::string::npos)
      << read_text(file);
  EXPECT_EQ(load_json(file)["workload"]["model"]["others"]["of_model"], 4096);
  const Json shown = parse_json(run_krigtune(words({"tune", "--show-config", "--json"})).out, "shown");
  EXPECT_EQ(shown["session"]["workload"]["model"]["others"]["of_model"], 4096);
}

TEST_F(CountedModel, IsReadAloneWithoutARunOfTheModel) {
  const std::string file = (directory_ / "own.json").string();
  ASSERT_EQ(run_krigtune(words({"init", "--no-model-run", file})).code, 0);
  EXPECT_FALSE(is_asked());
  EXPECT_FALSE(load_json(file)["workload"]["model"].contains("others"));
  const Said both = run_krigtune({"init", "--model-run", "--no-model-run", "--deepspeed", "ds.json"});
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.err.find("--model-run and --no-model-run cannot be combined"), std::string::npos) << both.err;
}

}  // namespace krigtune::job_tune_test
