// krigtune model: what is read from a config.json, and what a Python builds of it.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::model_test {
namespace {

constexpr const char* kMixtral = R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "num_experts_per_tok": 2, "max_position_embeddings": 32768, "vocab_size": 32000, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "tie_word_embeddings": false})";
constexpr const char* kLlama = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    "vocab_size": 128256, "tie_word_embeddings": false})";
constexpr const char* kAdapter =
    R"({"peft_type": "LORA", "r": 16, "lora_alpha": 32, "target_modules": "all-linear", "inference_mode": true})";

// The text without its line breaks.
std::string unwrapped(std::string text) {
  for (std::size_t at = text.find("\n  "); at != std::string::npos; at = text.find("\n  ", at))
    text.replace(at, 3, " ");
  return text;
}

class ModelCommand : public testing::Test {
 protected:
  ModelCommand() {
    for (const char* folder : {"mixtral", "llama", "adapter"})
      std::filesystem::create_directories(directory_.path() / folder);
    directory_.write("mixtral/config.json", kMixtral);
    directory_.write("llama/config.json", kLlama);
    directory_.write("adapter/adapter_config.json", kAdapter);
  }

  std::string at(const std::string& name) const { return (directory_ / name).string(); }
  // A Python that gives a recorded answer.
  std::string python_with(const std::string& answer) {
    return directory_
        .write_program("python", "cp '" KRIGTUNE_TEST_DIR "/golden/jobs/built/" + answer + ".json' \"$4\"\n")
        .string();
  }
  static Json document(const Said& said) {
    EXPECT_EQ(said.code, 0) << said.err;
    return parse_json(said.out, "stdout");
  }

  TemporaryDirectory directory_;
};

TEST_F(ModelCommand, CountsTheParametersThatATokenUses) {
  const Said said = run_krigtune({"model", at("mixtral")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("  total     46702792704 (46.7 billion)\n  active    12879925248 (12.9 billion)\n"),
            std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("32  attention and experts"), std::string::npos) << said.out;
  const Json json = document(run_krigtune({"model", at("mixtral/config.json"), "--json"}));
  EXPECT_EQ(json.at("parameters").dump(),
            R"({"total":46702792704,"active":12879925248,"trainable":46702792704,"read":46702792704})");
  EXPECT_EQ(json.at("workload").at("model").at("experts").at("count"), 8);
  EXPECT_TRUE(json.at("built").is_null());
  const Json& blocks = json.at("blocks");  // of all layers, and what remains is the table, the head and a norm
  EXPECT_EQ(46702792704 - 32 * blocks.at(0).at("parameters").get<std::int64_t>(), 2 * 32000 * 4096 + 4096);
}

TEST_F(ModelCommand, AdaptersAreWhatIsTrained) {
  const Json json = document(run_krigtune({"model", at("llama"), "--adapter", at("adapter"), "--json"}));
  EXPECT_EQ(json.at("parameters").at("trainable"), 41943040);
  EXPECT_EQ(json.at("workload").at("training").at("lora").at("rank"), 16);
  const Said said = run_krigtune({"model", at("llama"), "--adapter", at("adapter")});
  EXPECT_NE(said.out.find("  trained   41943040 (41.9 million)\n"), std::string::npos) << said.out;
}

TEST_F(ModelCommand, ABuiltModelIsListedByItsWeights) {
  const Said said = run_krigtune({"model", at("mixtral"), "--python", python_with("mixtral_8x7b")});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(unwrapped(said.out).find(
                "MixtralForCausalLM as transformers 5.24.0, torch 2.15.0 build it; krigtune reads as many"),
            std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("model.layers.*.mlp.experts.down_proj"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("8 x 4096 x 14336"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("0-31"), std::string::npos) << said.out;
  const Json json = document(run_krigtune(
      {"model", at("llama"), "--adapter", at("adapter"), "--json", "--python", python_with("llama_3_1_8b_lora")}));
  EXPECT_EQ(json.at("parameters").at("trainable"), 41943040);
  EXPECT_EQ(json.at("built").at("packages").at("peft"), "0.21.2");
  EXPECT_FALSE(json.at("built").at("weights").at(0).at("trained").get<bool>());
}

// The description is of a model with one more layer than the one that is built.
TEST_F(ModelCommand, TooManyParametersAreSaidAndTooFewAreAdded) {
  Json config = parse_json(kMixtral, "");
  config["num_hidden_layers"] = 33;
  directory_.write("mixtral/config.json", config.dump());
  const std::string python = python_with("mixtral_8x7b");
  const Said more = run_krigtune({"model", at("mixtral"), "--python", python});
  EXPECT_NE(unwrapped(more.out).find("krigtune plans 1451270144 parameters too many"), std::string::npos) << more.out;
  config["num_hidden_layers"] = 31;
  directory_.write("mixtral/config.json", config.dump());
  const Json fewer = document(run_krigtune({"model", at("mixtral"), "--python", python, "--json"}));
  EXPECT_EQ(fewer.at("parameters").at("total"), 46702792704);
  EXPECT_EQ(fewer.at("workload").at("model").at("others").at("of_model"), 1451270144);
}

TEST_F(ModelCommand, MistakesAreOneLine) {
  const auto fails = [](const std::vector<std::string>& words, const std::string& what) {
    const Said said = run_krigtune(words);
    EXPECT_EQ(said.code, 2) << said.out;
    EXPECT_NE(said.err.find(what), std::string::npos) << said.err;
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  };
  fails({"model", at("nothing")}, "there is no config.json of");
  fails({"model", "Qwen/Qwen3-8B", "--python", python_with("gpt2")}, "--python: there is no config.json");
  fails({"model", at("llama"), "--adapter", at("llama")}, "--adapter: there is no file");
  fails({"model", at("llama"), "--adapter", at("llama/config.json")}, "/peft_type: is missing");
  fails({"model", at("llama"), "--python", at("no-python")}, "there is no program");
  EXPECT_EQ(run_krigtune({"model", "Qwen/Qwen3-8B"}).code, 0);
}

}  // namespace
}  // namespace krigtune::model_test
