#include "jobs/recipe/recipe.h"

#include <gtest/gtest.h>

#include "jobs/recipe_cases.h"
#include "user_error.h"

namespace krigtune::jobs::recipe_test {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

Recipe recipe_of(const std::string& text) { return read_recipe(parse_json(text, "mine.json"), "mine.json"); }
std::string error_of(const std::string& text) {
  return user_error_of([&] { recipe_of(text); });
}

JobInputs inputs(const std::string& command) { return {split(command), "."}; }

TEST(Recipe, ShippedOnesAreReadAndSorted) {
  std::vector<std::string> names;
  for (const Recipe& recipe : shipped_recipes()) {
    names.push_back(recipe.name);
    EXPECT_FALSE(recipe.summary.empty()) << recipe.name;
    EXPECT_FALSE(recipe.notes.empty()) << recipe.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"accelerate", "axolotl", "deepspeed-chat", "deepspeed", "gpt-neox",
                                             "hf-trainer", "llama-factory", "megatron-deepspeed", "megatron",
                                             "ms-swift", "nanotron", "torchrun", "torchtitan"}));
}

TEST(Recipe, IsFoundByNameAndByPath) {
  EXPECT_EQ(find_recipe("megatron").name, "megatron");
  const TemporaryDirectory dir;
  const auto file = dir.write("mine.json", R"j({"name": "mine", "like": "megatron", "warmup_steps": 7})j");
  const Recipe mine = find_recipe(file.string());
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.warmup_steps, 7);
  EXPECT_EQ(mine.parameters.size(), find_recipe("megatron").parameters.size());
  EXPECT_EQ(user_error_of([] { find_recipe("megatrno"); }),
            "there is no recipe 'megatrno'; did you mean 'megatron'?; a recipe of your own is named by its path");
}

// Megatron's sizes alone are also those of others' scripts, which would refuse Megatron's --exit-interval.
TEST(Recipe, AScriptWithADeepSpeedFileIsMegatronsOnlyByMegatronsOwnFlags) {
  const auto name_of = [](const std::string& words) {
    return recognise(split("deepspeed --num_gpus 8 " + words), shipped_recipes())->name;
  };
  const std::string sizes = " --num_layers 12 --hidden_size 768 --micro_batch_size 4 --deepspeed_config ds.json ";
  EXPECT_EQ(name_of("train.py --global_batch_size 64" + sizes), "deepspeed");
  EXPECT_EQ(name_of("train.py --tensor-model-parallel-size 1" + sizes), "megatron-deepspeed");
  EXPECT_EQ(name_of("pretrain_gpt.py" + sizes), "megatron-deepspeed");
}

TEST(Recipe, EachMistakeIsOneLineWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {R"j({"nam": "x"})j", "mine.json: /nam"},
      {R"j({"summary": "x"})j", "/name"},
      {R"j({"name": "x", "like": "megatrn"})j", "/like"},
      {R"j({"name": "x", "framework": "megatrn"})j", "/framework"},
      {R"j({"name": "x", "parameters": {"micro_batch": {"flg": "--mbs"}}})j", "/parameters/micro_batch/flg"},
      {R"j({"name": "x", "parameters": {"micro_batch": {"flag": "mbs"}}})j", "/parameters/micro_batch/flag"},
      {R"j({"name": "x", "parameters": {"micro_batch": {"flag": "--mbs", "tail": "x"}}})j", "/parameters/micro_batch"},
      {R"j({"name": "x", "parameters": {"micro_batch": {"key": "a.b"}}})j", "/parameters/micro_batch"},
      {R"j({"name": "x", "parameters": {"micro_batch": {"flag": "--mbs", "times": 0}}})j",
       "/parameters/micro_batch/times"},
      {R"j({"name": "x", "parameters": {"zero_stage": {"words": {"1": "--zero"}}}})j",
       "/parameters/zero_stage/words/1"},
      {R"j({"name": "x", "model": {"depth": {"flag": "--depth"}}})j", "/model/depth"},
      {R"j({"name": "x", "measure": {"loss": {"regex": "loss ("}}})j", "/measure/loss/regex"},
      {R"j({"name": "x", "measure": {"loss": {"regex": "loss [0-9.]+"}}})j", "/measure/loss/regex"},
      {R"j({"name": "x", "measure": {"loss": {"regex": "(lo)ss ([0-9.]+)"}}})j", "/measure/loss/regex"},
      {R"j({"name": "x", "checks": [{"regex": "dp (\\d+)"}]
})j",
       "/checks/0/equals"},
      {R"j({"name": "x", "oom_patterns": ["("]})j", "/oom_patterns/0"},
      {R"j({"name": "x", "add": [[]]})j", "/add/0"},
      {R"j({"name": "x", "set": {"a": "1"}})j", "/set"},
      {R"j({"name": "x", "caveats_of": "hf-trainer", "modelled": "experts"})j", "/modelled"},
      {R"j({"name": "x", "frameworks": [{"framework": "megatrn"}]})j", "/frameworks"},
      {R"j({"name": "x", "files": [{"name": "c", "each": true}]})j", "/files/0/suffixes"},
      {R"j({"name": "x", "parameters": {"micro_batch": {"flag": "--mbs", "copy_keys": ["a.b"]}}})j",
       "/parameters/micro_batch"},
      {R"j({"name": "x", "recognise": [{"script": "a.py"}]})j", "/recognise/0/script"},
  };
  for (const auto& [text, place] : mistakes) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(place), std::string::npos) << text << "\n" << error;
    EXPECT_NE(error.find("mine.json"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Recipe, TwoThatKnowACommandAreNamedBoth) {
  std::vector<Recipe> recipes = shipped_recipes();
  recipes.push_back(recipe_of(R"j({"name": "mine", "recognise": [{"scripts": ["pretrain_gpt.py"]}]})j"));
  const auto command = split("torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1");
  EXPECT_EQ(user_error_of([&] { recognise(command, recipes); }),
            "two recipes know this command: megatron and mine; name one: --recipe megatron");
}

TEST(Recipe, OneThatNamesTheProgramCountsMoreThanOneThatTakesAny) {
  EXPECT_EQ(
      recognise(split("accelerate launch -m axolotl.cli.train x.yml --deepspeed z3.json"), shipped_recipes())->name,
      "axolotl");
  EXPECT_EQ(recognise(split("accelerate launch -m my.train x.yml --deepspeed z3.json"), shipped_recipes())->name,
            "deepspeed");
}

TEST(Recipe, ACommandOfNobodyIsRecognisedByNone) {
  EXPECT_EQ(recognise(split("python train.py --lr 3e-4"), shipped_recipes()), nullptr);
  EXPECT_EQ(recognise(split("bash run.sh"), shipped_recipes()), nullptr);
  EXPECT_EQ(recognise({}, shipped_recipes()), nullptr);
  EXPECT_EQ(recognise(split("torchrun train.py"), shipped_recipes())->name, "torchrun");
}

TEST(Recipe, ACommandWithoutItsScriptAndFlagsIsRefused) {
  const std::string error = user_error_of([] { read_job(find_recipe("megatron"), inputs("python train.py --lr 1")); });
  EXPECT_EQ(error,
            "the command is not a job of the recipe megatron: neither its script nor its flags are there; krigtune "
            "recipes megatron shows what it looks for");
  // A script with another name but with Megatron's flags is accepted.
  EXPECT_NO_THROW(read_job(find_recipe("megatron"), inputs("torchrun mine.py --micro-batch-size 2")));
}

TEST(Recipe, AFileThatIsMissingOrBrokenIsSaidWithItsLine) {
  const TemporaryDirectory dir;
  const auto error = [&](const std::string& name) {
    return user_error_of([&] {
      read_job(find_recipe("nanotron"), {split("torchrun run_train.py --config-file " + name), dir.path()});
    });
  };
  EXPECT_NE(error("missing.yaml").find("missing.yaml"), std::string::npos);
  dir.write("bad.yaml", "tokens:\n  micro_batch_size: 1\n bad: [\n");
  EXPECT_NE(error("bad.yaml").find("bad.yaml: invalid YAML at line 3"), std::string::npos) << error("bad.yaml");
  dir.write("bad.toml", "a = 1\nb = \n");
  EXPECT_NE(error("bad.toml").find("bad.toml: invalid TOML at line 2"), std::string::npos) << error("bad.toml");
}

TEST(Recipe, AFlagWithoutItsNumberIsRefused) {
  const Recipe megatron = find_recipe("megatron");
  const auto error = [&](const std::string& flags) {
    return user_error_of(
        [&] { own_values(megatron, read_job(megatron, inputs("torchrun pretrain_gpt.py " + flags))); });
  };
  EXPECT_EQ(error("--micro-batch-size --bf16"),
            "the command's flag --micro-batch-size has no value; write one after it");
  EXPECT_EQ(error("--micro-batch-size many"), "the command's micro_batch is 'many'; write a whole number there");
}

TEST(Recipe, WhatACommandCannotBeToldIsSaid) {
  const Recipe hf = find_recipe("hf-trainer");
  const RecipeJob job = read_job(hf, inputs("torchrun train.py --output_dir o --do_train --use_cpu"));
  const auto error = [&](const char* name) { return user_error_of([&] { runner_block(hf, job, {name}); }); };
  EXPECT_NE(error("zero_stage").find("zero_stage cannot be changed in this command"), std::string::npos)
      << error("zero_stage");
  EXPECT_NE(error("lr").find("does not know the parameter lr"), std::string::npos) << error("lr");
}

TEST(Recipe, ChecksCompareWithTheBatchThatStays) {
  const Recipe megatron = find_recipe("megatron");
  const auto equals = [&](const std::string& flags) {
    const RecipeJob job = read_job(megatron, inputs("torchrun --nproc_per_node 4 pretrain_gpt.py " + flags));
    return runner_block(megatron, job, {"micro_batch"}).block.at("checks").at(0).at("equals").get<std::string>();
  };
  EXPECT_EQ(equals("--micro-batch-size 2 --global-batch-size 32"), "32");
  EXPECT_EQ(equals("--micro-batch-size 2"), "8") << "Megatron's own default: micro-batch times data-parallel ranks";
  const RecipeJob unknown = read_job(megatron, inputs("srun pretrain_gpt.py --micro-batch-size 2"));
  const Json block = runner_block(megatron, unknown, {"micro_batch"}).block;
  EXPECT_EQ(block.at("checks").size(), megatron.checks.size() - 1) << "nobody knows the batch";
}

TEST(ConfigValues, AreFlattenedAlikeFromAllFormats) {
  const ConfigValues yaml =
      config_values_of("a:\n  b: 2\n  c: [x, 1.5]\n  d: true\n  e: '7'\n  f: null\n", ".yaml", "y");
  const ConfigValues toml = config_values_of("[a]\nb = 2\nc = ['x', 1.5]\nd = true\ne = '7'\n", ".toml", "t");
  const ConfigValues json =
      config_values_of(R"j({"a": {"b": 2, "c": ["x", 1.5], "d": true, "e": "7", "f": null}})j", ".json", "j");
  EXPECT_EQ(yaml, toml);
  EXPECT_EQ(yaml, json);
  EXPECT_EQ(yaml.at("a.e"), space::Value(std::string("7")));
  EXPECT_EQ(yaml.size(), 5U);
}

TEST(ConfigValues, AFileThatAliasesMakeEndlessIsRefused) {
  const std::string text =
      "a: &a [1,2,3,4,5,6,7,8,9]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
      "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
  EXPECT_EQ(user_error_of([&] { config_values_of(text, ".yaml", "bomb.yaml"); }),
            "bomb.yaml: more than 100000 values, with its aliases written out; name a smaller file");
}

}  // namespace
}  // namespace krigtune::jobs::recipe_test
