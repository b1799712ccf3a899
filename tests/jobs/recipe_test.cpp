#include "jobs/recipe/recipe.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "jobs/recipe_cases.h"
#include "space/well_known.h"
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
  EXPECT_EQ(names, (std::vector<std::string>{
                       "accelerate",  "axolotl",         "colossalai",         "deepspeed-chat", "deepspeed",
                       "gpt-neox",    "hf-trainer-yaml", "hf-trainer",         "litgpt",         "llama-factory",
                       "llm-foundry", "megatron-bridge", "megatron-deepspeed", "megatron-swift", "megatron",
                       "ms-swift",    "nanogpt",         "nanotron",           "olmo",           "openrlhf",
                       "torchrun",    "torchtitan",      "torchtune",          "verl-sft"}));
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

// run_train.sh of torchtitan reads $CONFIG_FILE (0.2) or $CONFIG (0.3); the command's own assignments are taken away
// before a recipe sees its words. torchtitan.train reads neither.
TEST(RecipeJob, AShellScriptsFileIsNamedByAVariable) {
  const TemporaryDirectory dir;
  dir.write("a.toml", "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 3\nseq_len = 512\n");
  const Recipe& recipe = find_recipe("torchtitan");
  std::map<std::string, std::string> environment = {{"CONFIG_FILE", "a.toml"}};
  const auto job = [&](const std::string& line) {
    const auto variable = [&](const std::string& name) { return environment[name]; };
    return read_job(recipe, {split(line), dir.path(), variable, 8});
  };
  const RecipeJob script = job("./run_train.sh");
  EXPECT_EQ(own_values(recipe, script).train_batch_size, 24);
  EXPECT_EQ(model_facts(recipe, script).at("model"), Json({{"preset", "llama-3-8b"}, {"seq_len", 512}}));
  const Json argv = runner_block(recipe, script, {"micro_batch"}).block.at("argv");
  EXPECT_EQ(argv.front(), "./run_train.sh");
  EXPECT_NE(argv.dump().find("--validation.no-enable"), std::string::npos) << "the words of 0.2";
  const RecipeJob module = job("torchrun --nproc_per_node 8 -m torchtitan.train --config llama3_8b");
  EXPECT_EQ(own_values(recipe, module).configuration.integer(space::kMicroBatch, 0), 1);
  environment = {{"CONFIG", "llama3_70b"}};
  EXPECT_EQ(own_values(recipe, job("./run_train.sh")).configuration.integer(space::kTensorParallel, 0), 8);
  environment.clear();
  EXPECT_TRUE(model_facts(recipe, job("./run_train.sh")).is_null());
}

TEST(RecipeJob, AFileThatAVariableNamesIsNotCopied) {
  const TemporaryDirectory dir;
  dir.write("a.yaml", "mbs: 2\n");
  const Recipe recipe = recipe_of(R"j({"name": "mine", "recognise": [{"programs": ["run.sh"]}],
    "files": [{"name": "config", "flags": ["--file", "FILE"]}], "parameters": {"micro_batch": {"key": "mbs"}}})j");
  const auto variable = [](const std::string& name) { return name == "FILE" ? "a.yaml" : ""; };
  const RecipeJob job = read_job(recipe, {{"./run.sh"}, dir.path(), variable, 1});
  EXPECT_EQ(own_values(recipe, job).configuration.integer(space::kMicroBatch, 0), 2);
  EXPECT_THROW(runner_block(recipe, job, {"micro_batch"}), UserError);
  const RecipeJob named = read_job(recipe, {split("./run.sh --file a.yaml"), dir.path(), variable, 1});
  EXPECT_EQ(runner_block(recipe, named, {"micro_batch"}).block.at("set").at("a.yaml").at("mbs"), "{micro_batch}");
}

// A recipe with overrides --key=value, a shared accumulation, files that come with it, and sizes of a model.
const char* const kOfManyWays = R"j({
  "name": "mine", "versions": "mine 1.0", "override_prefix": "--",
  "recognise": [{"scripts": ["train.py"], "keys": ["mbs"]}],
  "files": [{"name": "config", "suffixes": [".yaml", ".py"], "built_in": {"conf/a.py": {"mbs": 6, "steps": 16}}},
            {"name": "named", "flags": ["-c"], "built_in": {"llama/8B": {"ratio": 3}}}],
  "parameters": {
    "micro_batch": {
      "places": [
        {"where": {"keys": ["mbs auto"]}, "override": "mbs", "key": "mbs", "nothing": ["auto"], "default": 1, "assumed": "the largest"},
        {"override": "mbs", "key": "mbs"}
      ],
      "vary": [1, 2, 4]
    },
    "gradient_accumulation_steps": {"override": "steps", "key": "steps", "shared": true, "default": 40},
    "zero_stage": {"override": "fsdp.my_stage", "key": "fsdp.my_stage", "values": {"2": "grad", "3": "*full*"}, "default": 3},
    "activation_checkpointing": {"file": "named", "key": "ac", "values": {"none": "false", "full": "true"}, "default": "none"}
  },
  "framework": "fsdp",
  "model": {
    "hf_config": {"operand": true, "where": {"flags": ["--hub"]}},
    "layers": {"default": 2},
    "hidden": {"override": "width", "default": 128},
    "ffn_hidden": {"override": "ratio", "file": "named", "key": "ratio", "times_of": "hidden"},
    "vocab": {"default": 256},
    "seq_len": {"key": "length"}
  }
})j";

class RecipeOfManyWays : public testing::Test {
 protected:
  RecipeJob job(const std::string& words, std::int64_t ranks = 8) const {
    const std::string launch = "torchrun --nproc_per_node " + std::to_string(ranks) + " train.py ";
    return read_job(recipe_, {split(launch + words), dir_.path()});
  }
  OwnValues own(const std::string& words, std::int64_t ranks = 8) const {
    return own_values(recipe_, job(words, ranks));
  }

  Recipe recipe_ = recipe_of(kOfManyWays);
  TemporaryDirectory dir_;
};

TEST_F(RecipeOfManyWays, AnAccumulationOfAllRanksIsDividedAmongThem) {
  EXPECT_EQ(own("--mbs=12 --steps=16").configuration.integer(space::kAccumulation, 0), 2);
  EXPECT_EQ(own("--mbs=12").train_batch_size, 12 * 40) << "the default is that of all ranks, too";
  EXPECT_EQ(own("--mbs=12", 1).configuration.integer(space::kAccumulation, 0), 40);
  EXPECT_EQ(own("--mbs=12 --steps=12").unknown, std::vector<std::string>{"gradient_accumulation_steps"});
  const RecipeJob job = this->job("--mbs=4 --steps=16");
  const Json argv = runner_block(recipe_, job, {"micro_batch"}).block.at("argv");
  EXPECT_EQ(argv[argv.size() - 2], "--mbs={micro_batch}");
  EXPECT_EQ(argv.back(), "--steps={gradient_accumulation_steps*ranks}");
  const auto best =
      space::configuration_from_json({{"micro_batch", 2}, {"gradient_accumulation_steps", 4}}, "best", "");
  const std::vector<std::string> words = optimal_words(recipe_, job, best);
  EXPECT_EQ(words.back(), "--steps=32");
}

TEST_F(RecipeOfManyWays, OverridesWithDashesAreReadAndWritten) {
  EXPECT_EQ(own("--mbs=4 --fsdp.my_stage=a_full_one").configuration.integer(space::kZeroStage, 0), 3);
  EXPECT_EQ(own("--mbs=4 --fsdp.my-stage=grad").configuration.integer(space::kZeroStage, 0), 2);
  EXPECT_EQ(own("mbs=4 --mbs=2").configuration.integer(space::kMicroBatch, 0), 2) << "mbs=4 is no override here";
  const auto best = space::configuration_from_json({{"zero_stage", 2}}, "best", "");
  EXPECT_EQ(optimal_words(recipe_, job("--mbs=4"), best).back(), "--fsdp.my_stage=grad");
  const auto other = space::configuration_from_json({{"zero_stage", 3}}, "best", "");
  EXPECT_THROW(optimal_words(recipe_, job("--mbs=4 --fsdp.my_stage=grad"), other), UserError)
      << "no one text is *full*";
}

TEST_F(RecipeOfManyWays, AFileThatComesWithTheFrameworkIsAssumed) {
  const OwnValues values = own("conf/a.py --steps=8");
  EXPECT_EQ(values.configuration.integer(space::kMicroBatch, 0), 6);
  EXPECT_EQ(values.configuration.integer(space::kAccumulation, 0), 1) << "a word counts more";
  EXPECT_EQ(values.assumed, std::vector<std::string>{"the file conf/a.py of mine 1.0: mbs 6"});
  std::filesystem::create_directories(dir_.path() / "conf");
  dir_.write("conf/a.py", "mbs = 3 * 5  # of one rank\nif x:\n  mbs = 1\nname = 'a # b'\nsteps = 2 ** 3\n");
  EXPECT_EQ(own("conf/a.py --steps=8").configuration.integer(space::kMicroBatch, 0), 15) << "the user's file";
  EXPECT_EQ(own("conf/a.py").unknown, std::vector<std::string>{"gradient_accumulation_steps"}) << "2 ** 3";
  EXPECT_THROW(own("conf/b.py"), UserError);
}

TEST_F(RecipeOfManyWays, AFileOfAnotherVersionIsNotGuessed) {
  const OwnValues values = own("--mbs=2 -c llama/9B");
  ASSERT_EQ(values.remarks.size(), 1U);
  EXPECT_EQ(values.remarks[0], "llama/9B is neither here nor one of the files of mine 1.0: what it says is not known");
  EXPECT_FALSE(values.configuration.has(space::kCheckpointing)) << "its default is not that of the file";
  EXPECT_TRUE(own("--mbs=2 -c llama/8B").configuration.has(space::kCheckpointing));
  EXPECT_THROW(own("--mbs=2 -c llama/9B.yaml"), UserError);
}

TEST_F(RecipeOfManyWays, ReferencesAreFollowedAndWordsCountMore) {
  dir_.write("a.yaml", "vars:\n  n: 512\nmbs: auto\nlength: ${vars.n}\n");
  const auto length = [&](const std::string& words) {
    return model_facts(recipe_, job(words)).at("model").at("seq_len").get<int>();
  };
  EXPECT_EQ(length("a.yaml"), 512);
  EXPECT_EQ(length("a.yaml --vars.n=1024"), 1024);
  const OwnValues values = own("a.yaml");
  EXPECT_EQ(values.configuration.integer(space::kMicroBatch, 0), 1);
  EXPECT_EQ(values.assumed, std::vector<std::string>{"micro_batch 1: the largest"});
  EXPECT_EQ(own("a.yaml --mbs=4").assumed, std::vector<std::string>());
  dir_.write("b.yaml", "mbs: ${oc.env:MBS,2}\n");
  EXPECT_EQ(own("b.yaml").unknown, std::vector<std::string>{"micro_batch"});
  EXPECT_FALSE(own("b.yaml").configuration.has(space::kMicroBatch));
}

TEST_F(RecipeOfManyWays, SizesAreMultipliedAndModelsAreOperands) {
  const Json model = model_facts(recipe_, job("--mbs=4 --width=256 -c llama/8B")).at("model");
  EXPECT_EQ(model.at("ffn_hidden"), 768);
  std::string why;
  model_facts(recipe_, job("--mbs=4 --hub=1 --name x org/none"), &why);
  EXPECT_NE(why.find("config.json of org/none"), std::string::npos) << why;
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
