// Models as transformers builds them, from recorded answers (transformers 5.24, torch 2.15, peft 0.21).
#include "jobs/installed/built_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/files.h"
#include "python_test.h"
#include "trial/temporary_directory.h"
#include "workload/model.h"

namespace krigtune::jobs::built_model_test {
namespace {

BuiltModel recorded(const std::string& name) {
  const std::string file = std::string(KRIGTUNE_TEST_DIR) + "/golden/jobs/built/" + name + ".json";
  return built_model_from(load_json(file), file);
}

const BuiltWeights& weights_named(const BuiltModel& model, const std::string& name) {
  for (const BuiltWeights& of : model.weights) {
    if (of.name == name) return of;
  }
  throw std::logic_error("no weights " + name);
}

// Jiang et al. 2024, "Mixtral of Experts": 47 billion parameters, of which a token uses 13.
TEST(BuiltModel, ATokenUsesTheExpertsThatItIsSentTo) {
  const BuiltModel mixtral = recorded("mixtral_8x7b");
  EXPECT_EQ(mixtral.class_name, "MixtralForCausalLM");
  EXPECT_EQ(mixtral.parameters, 46702792704);
  EXPECT_EQ(mixtral.trained(), mixtral.parameters);
  EXPECT_EQ(mixtral.active({.count = 8, .per_token = 2}), 12879925248);
  EXPECT_EQ(mixtral.active({}), std::nullopt);  // it has experts that nobody described
  const BuiltWeights& experts = weights_named(mixtral, "model.layers.*.mlp.experts.down_proj");
  EXPECT_EQ(experts.shape, (std::vector<std::int64_t>{8, 4096, 14336}));
  EXPECT_EQ(experts.count, 32);
  EXPECT_EQ(experts.blocks.back(), 31);
  EXPECT_EQ(experts.module, "MixtralExperts");
}

// PEFT prints "trainable params: 41,943,040" for these adapters of Llama 3.1 8B.
TEST(BuiltModel, OnlyAdaptersAreTrained) {
  const BuiltModel llama = recorded("llama_3_1_8b_lora");
  EXPECT_EQ(llama.parameters, 8030261248);
  EXPECT_EQ(llama.trained(), 41943040);
  EXPECT_EQ(llama.active({}), llama.parameters);
}

TEST(BuiltModel, TiedWeightsCountOnce) {
  const BuiltModel gpt2 = recorded("gpt2");
  std::int64_t elements = 0;
  for (const BuiltWeights& of : gpt2.weights) elements += of.elements();
  EXPECT_EQ(elements, 124439808);
  EXPECT_EQ(gpt2.parameters, elements);
  EXPECT_EQ(weights_named(gpt2, "lm_head.weight").tied_to, "transformer.wte.weight");
  EXPECT_EQ(to_json(gpt2.weights).back().at("tied_to"), "transformer.wte.weight");
}

TEST(BuiltModel, ADescriptionIsCorrectedToTheBuiltParameters) {
  workload::ModelSpec model = workload::model_preset("gpt2-124m");
  const std::int64_t read = workload::parameter_count(model);
  EXPECT_EQ(correct_parameters(model, read + 1000), 0);
  EXPECT_EQ(model.others.of_model, 1000);
  EXPECT_EQ(workload::parameter_count(model), read + 1000);
  model.others.of_block = 7;
  EXPECT_EQ(correct_parameters(model, read + 3), 0);
  EXPECT_EQ(workload::parameter_count(model), read + 3);
  EXPECT_EQ(correct_parameters(model, read - 5), 5);  // the rest is described by sizes
  EXPECT_EQ(workload::parameter_count(model), read);
}

// --- errors: programs that take the place of Python

class AskedPython : public testing::Test {
 protected:
  // Of a Python that answers so.
  std::string failure(const std::string& answer) {
    const std::filesystem::path python =
        directory_.write_program("python", "cat >\"$4\" <<'END'\n" + answer + "\nEND\n");
    try {
      build_model({directory_ / "config.json", {}, python.string()}, SystemClock());
    } catch (const UserError& error) {
      return error.what();
    }
    return "it did not fail";
  }

  TemporaryDirectory directory_;
};

TEST_F(AskedPython, WithoutTransformersIsNamed) {
  const std::string said = failure(R"({"packages": {}, "missing": ["transformers", "torch"]})");
  EXPECT_NE(said.find("does not have transformers, torch"), std::string::npos) << said;
}

class RealPython : public PythonTest {
 protected:
  RealPython() : PythonTest("importlib.metadata", "install python3") {}
};

// Packages are left out, so that every machine answers the same.
TEST_F(RealPython, AnswersWhatItLacks) {
  const TemporaryDirectory directory;
  const std::filesystem::path python = directory.write_program("python", "exec " + program() + " -S \"$@\"\n");
  try {
    build_model({directory / "config.json", directory / "adapter_config.json", python.string()}, SystemClock());
    FAIL() << "it has transformers without packages";
  } catch (const UserError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("does not have transformers, torch, peft"), std::string::npos) << said;
  }
}

TEST_F(AskedPython, WhatTransformersCannotBuildIsOneLine) {
  const std::string said = failure(R"({"packages": {}, "trouble": "ValueError: no\nmodel"})");
  EXPECT_NE(said.find("config.json: ValueError: no model"), std::string::npos) << said;
}

TEST_F(AskedPython, AnAnswerOfAnotherKindIsRefused) {
  const std::string said = failure(R"({"packages": {}, "weights": [{"shape": ["x"], "blocks": []}]})");
  EXPECT_NE(said.find("/weights/0/shape: must be a list of whole numbers"), std::string::npos) << said;
}

}  // namespace
}  // namespace krigtune::jobs::built_model_test
