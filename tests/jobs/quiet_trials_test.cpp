// Trials save nothing, evaluate nothing, resume nothing and report to nobody, whatever the user's file says. What the
// frameworks refuse is from their own checks (Axolotl 0.21, utils/schemas/validation.py; LLaMA-Factory 0.9.5,
// hparams/parser.py; transformers 5.23, training_args.py), which the first trials with real files ran into.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/text.h"
#include "jobs/recipe/rewriting.h"
#include "trial/temporary_directory.h"

namespace krigtune::jobs::quiet_trials_test {
namespace {

using Words = std::vector<std::string>;

Json trial_of(const std::string& recipe, const Words& argv, const std::string& file, const std::string& text) {
  const TemporaryDirectory dir;
  dir.write(file, text);
  const Recipe found = find_recipe(recipe);
  const RecipeJob job = read_job(found, {argv, dir.path(), {}, 2});
  return runner_block(found, job, varied_by_default(found, job)).block;
}

// What a trial's copy of the file has instead of the user's value; "" if the user's stays.
std::string changed(const Json& keys, const std::string& key) {
  return keys.contains(key) ? keys.at(key).get<std::string>() : keys.value("+" + key, "");
}

TEST(QuietTrials, OfAxolotlSaveAndEvaluateNothing) {
  const std::string text =
      "base_model: m\ndatasets:\n  - path: d\nval_set_size: 0.05\nsaves_per_epoch: 1\nevals_per_epoch: 4\n"
      "early_stopping_patience: 3\nhub_model_id: \"me/model\"\nresume_from_checkpoint: ./c\nuse_tensorboard: true\n"
      "mlflow_experiment_name: mine\nprofiler_steps: 5\nmicro_batch_size: 1\n";
  const Json keys = trial_of("axolotl", {"axolotl", "train", "a.yml"}, "a.yml", text).at("set").at("a.yml");
  // save_steps and saves_per_epoch exclude each other, and eval_steps and val_set_size: 0
  for (const char* key : {"saves_per_epoch", "evals_per_epoch", "early_stopping_patience", "hub_model_id",
                          "resume_from_checkpoint", "mlflow_experiment_name", "profiler_steps"}) {
    EXPECT_EQ(changed(keys, key), "null") << key;
  }
  EXPECT_EQ(changed(keys, "save_strategy"), "no");
  EXPECT_EQ(changed(keys, "eval_strategy"), "no");
  EXPECT_EQ(changed(keys, "use_tensorboard"), "false");
  for (const char* key : {"save_steps", "eval_steps", "use_mlflow", "do_bench_eval"}) {
    EXPECT_EQ(changed(keys, key), "") << key << " is not in the file";
  }
}

TEST(QuietTrials, OfAxolotlDoNotCountTokensOfAPretrainingDataset) {
  const auto keys_of = [](const std::string& data) {
    return trial_of("axolotl", {"axolotl", "train", "a.yml"}, "a.yml", "base_model: m\n" + data).at("set").at("a.yml");
  };
  EXPECT_EQ(changed(keys_of("pretraining_dataset: d\n"), "include_tokens_per_second"), "");
  EXPECT_EQ(changed(keys_of("datasets:\n  - path: d\n"), "include_tokens_per_second"), "true");
}

TEST(QuietTrials, OfLlamaFactoryNeitherEvaluateNorResumeNorReport) {
  const std::string text =
      "model_name_or_path: m\nstage: sft\nfinetuning_type: lora\nval_size: 0.1\neval_strategy: steps\ndo_eval: true\n"
      "do_predict: true\npredict_with_generate: true\nearly_stopping_steps: 3\nload_best_model_at_end: true\n"
      "resume_from_checkpoint: saves/checkpoint-500\npush_to_hub: true\nuse_swanlab: true\n";
  const Words argv = trial_of("llama-factory", {"llamafactory-cli", "train", "a.yaml", "do_eval=true"}, "a.yaml", text)
                         .at("argv")
                         .get<Words>();
  const auto has = [&](const std::string& word) { return std::find(argv.begin(), argv.end(), word) != argv.end(); };
  for (const char* word :
       {"val_size=0", "eval_strategy='no'", "save_strategy='no'", "do_eval=false", "do_predict=false",
        "predict_with_generate=false", "early_stopping_steps=null", "load_best_model_at_end=false",
        "resume_from_checkpoint=null", "push_to_hub=false", "use_swanlab=false", "logging_nan_inf_filter=false"}) {
    EXPECT_TRUE(has(word)) << word;
  }
  EXPECT_FALSE(has("do_eval=true"));
}

TEST(QuietTrials, OfAFileOfTheTrainerNeitherEvaluateNorResumeNorReport) {
  const std::string text =
      "model_name_or_path: m\nper_device_train_batch_size: 1\neval_strategy: epoch\nload_best_model_at_end: true\n"
      "save_strategy: epoch\nresume_from_checkpoint: c\nreport_to: tensorboard\noutput_dir: o\n";
  const Json keys = trial_of("hf-trainer-yaml", {"python", "sft.py", "a.yaml"}, "a.yaml", text).at("set").at("a.yaml");
  EXPECT_EQ(changed(keys, "eval_strategy"), "no");  // another one than save_strategy's is refused with the best model
  EXPECT_EQ(changed(keys, "save_strategy"), "no");
  EXPECT_EQ(changed(keys, "load_best_model_at_end"), "false");
  EXPECT_EQ(changed(keys, "resume_from_checkpoint"), "null");
  EXPECT_EQ(changed(keys, "report_to"), "none");
  EXPECT_EQ(changed(keys, "evaluation_strategy"), "") << "is not in the file";
}

// OmegaConf reads key=value as YAML 1.1: eval_strategy=no is false, which transformers refuses ("False is not a valid
// IntervalStrategy"), so that no trial of LLaMA-Factory trained.
TEST(QuietTrials, SayNoWordThatYamlTakesForATruthValue) {
  const Words truths = {"y", "n", "yes", "no", "on", "off"};
  const auto check = [&](const Recipe& recipe, const std::string& value, const std::string& what) {
    EXPECT_FALSE(is_one_of(lower_case(value), truths)) << recipe.name << ": " << what << "=" << value;
  };
  for (const Recipe& recipe : shipped_recipes()) {
    for (const RecipeWords& added : recipe.add) {
      for (const std::string& word : added.words) {
        const std::size_t equals = word.find('=');
        if (word.front() != '-' && equals != std::string::npos) check(recipe, word.substr(equals + 1), word);
      }
    }
    for (const RecipeValue& parameter : recipe.parameters) {
      for (const Place& place : parameter.places) {
        if (place.override_key.empty()) continue;
        for (const auto& [value, text] : place.values) check(recipe, text, place.override_key);
      }
    }
  }
}

// A script of any framework may call wandb.init itself, and would fill the user's project with trials.
TEST(QuietTrials, NeverReportToWeightsAndBiases) {
  for (const Recipe& recipe : shipped_recipes()) {
    const bool is_tuned_otherwise = !recipe.instead.empty();
    const auto is_off = [](const RecipeVariable& variable) {
      return variable.name == "WANDB_MODE" && variable.value == "disabled" && variable.where.is_empty();
    };
    EXPECT_TRUE(is_tuned_otherwise || std::any_of(recipe.env.begin(), recipe.env.end(), is_off)) << recipe.name;
  }
}

}  // namespace
}  // namespace krigtune::jobs::quiet_trials_test
