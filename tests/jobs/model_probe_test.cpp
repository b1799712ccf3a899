// The parameters of a job's model as the command's own Python counts them. A program takes the place of Python.
#include "jobs/installed/model_probe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "jobs/command/command.h"
#include "trial/event_clock.h"
#include "trial/temporary_directory.h"
#include "words.h"
#include "workload/model.h"

namespace krigtune::jobs::model_probe_test {
namespace {

constexpr std::int64_t kRead = 8030261248;  // Llama 3.1 8B
constexpr const char* kConfig = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    "vocab_size": 128256, "tie_word_embeddings": false})";

class ModelProbe : public testing::Test {
 protected:
  ModelProbe() {
    directory_.write("config.json", kConfig);
    workload_ = {{"model", {{"hf_config", (directory_ / "config.json").string()}, {"seq_len", 512}}},
                 {"framework", "fsdp"}};
  }

  // Returns the line about a model of so many parameters.
  std::string counted(std::int64_t parameters) {
    return answered(R"({"packages": {"torch": "2.15.0", "transformers": "5.24.0"}, "class": "LlamaForCausalLM", )"
                    R"("parameters": )" +
                    std::to_string(parameters) + R"(, "weights": []})");
  }
  std::string answered(const std::string& answer) { return of_python("cat >\"$4\" <<'END'\n" + answer + "\nEND\n"); }
  std::string of_python(const std::string& program, const Clock& clock = SystemClock()) {
    directory_.write_program("python", program);
    const Command command = read_command(words_of("./python train.py"));
    return count_parameters({command, directory_.path()}, clock, workload_);
  }
  std::string python() const { return (directory_ / "python").string(); }
  std::int64_t planned() const {
    return workload::parameter_count(workload::read_model(workload_["model"], "the test", ""));
  }

  TemporaryDirectory directory_;
  Json workload_;
};

TEST_F(ModelProbe, AgreesWithWhatIsRead) {
  const Json before = workload_;
  EXPECT_EQ(counted(kRead), "the model has 8030261248 parameters, as transformers 5.24.0 of " + python() +
                                " builds it; krigtune reads as many from its config.json");
  EXPECT_EQ(workload_, before);
  EXPECT_EQ(planned(), kRead);
}

TEST_F(ModelProbe, WinsWhereItCountsOthers) {
  EXPECT_EQ(counted(kRead + 5000), "the model has 8030266248 parameters, as transformers 5.24.0 of " + python() +
                                       " builds it; krigtune reads 5000 fewer from its config.json, and plans those "
                                       "that were counted");
  EXPECT_EQ(planned(), kRead + 5000);
  EXPECT_EQ(workload_["model"]["seq_len"], 512);
}

TEST_F(ModelProbe, WhatSizesHaveTooManyIsSaid) {
  EXPECT_EQ(counted(kRead - 7), "the model has 8030261241 parameters, as transformers 5.24.0 of " + python() +
                                    " builds it; krigtune reads 7 more from its config.json, and plans 7 too many");
  EXPECT_EQ(workload_["not_modelled"].dump(), R"(["7 parameters fewer than its sizes say: less memory"])");
}

TEST_F(ModelProbe, ThatFailsLeavesWhatIsRead) {
  const Json before = workload_;
  const std::string begin = "the model is planned as krigtune reads its config.json: '" + python() + "' ";
  EXPECT_EQ(answered(R"({"packages": {}, "trouble": "ValueError: no\nmodel"})"),
            begin + "cannot build " + (directory_ / "config.json").string() + ": ValueError: no model");
  EXPECT_EQ(of_python("echo 'ImportError: no libcudart' >&2; exit 1\n"),
            begin + "ended with exit code 1: ImportError: no libcudart");
  EXPECT_EQ(of_python("exit 0\n"), begin + "gave no answer");
  double now = 0.0;
  EXPECT_EQ(of_python("sleep 600\n", EventClock([&] { return now += 1.0; })), begin + "gave no answer within 30 s");
  EXPECT_EQ(workload_, before);
}

TEST_F(ModelProbe, WithNobodyToAskNothingIsSaid) {
  EXPECT_EQ(answered(R"({"packages": {}, "missing": ["transformers"]})"), "");
  const Command container = read_command(words_of("apptainer exec image.sif python train.py"));
  EXPECT_EQ(count_parameters({container, directory_.path()}, SystemClock(), workload_), "");
  workload_ = {{"model", {{"preset", "gpt2-124m"}}}};
  EXPECT_EQ(of_python("exit 1\n"), "");
}

}  // namespace
}  // namespace krigtune::jobs::model_probe_test
