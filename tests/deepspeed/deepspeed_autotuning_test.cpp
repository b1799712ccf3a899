#include <gtest/gtest.h>

#include "deepspeed/deepspeed_fixture.h"
#include "deepspeed/job/ds_autotuning.h"
#include "deepspeed/job/ds_versions.h"

namespace krigtune::deepspeed_autotuning_test {

TEST(DsAutotuning, HasTheDefaultsOfDeepSpeedWithoutASection) {
  const deepspeed::DsAutotuning none = deepspeed::read_ds_autotuning(read("{}"), kSource);
  EXPECT_EQ(none.metric, deepspeed::DsMetric::kThroughput);
  EXPECT_EQ(none.tuner.type, deepspeed::DsTunerType::kGridSearch);
  EXPECT_EQ(none.tuner.trials, 50);
  EXPECT_EQ(none.tuner.early_stopping, 5);
  EXPECT_TRUE(none.tuner.fast);
  EXPECT_EQ(none.batch.max_micro_batch, 1024);
  EXPECT_EQ(none.batch.micro_batches, 3);
  EXPECT_EQ(none.window.first, 3);
  EXPECT_EQ(none.window.last, 5);
  EXPECT_FALSE(none.tuner.says_trials || none.window.is_given);
  EXPECT_TRUE(none.remarks.empty());
}

TEST(DsAutotuning, IsUnderstoodKeyByKey) {
  const deepspeed::DsAutotuning all = deepspeed::read_ds_autotuning(read(R"({"autotuning": {
      "enabled": true, "fast": false, "metric": "latency", "tuner_type": "model_based", "tuner_num_trials": 20,
      "tuner_early_stopping": 7, "start_profile_step": 2, "end_profile_step": 9, "max_train_batch_size": 64,
      "min_train_micro_batch_size_per_gpu": 2, "max_train_micro_batch_size_per_gpu": 32,
      "num_tuning_micro_batch_sizes": 4, "mp_size": 2, "results_dir": "res", "exps_dir": "exps", "overwrite": false,
      "model_info": {"num_params": 1.5e9, "hidden_size": 1600}, "metric_path": null,
      "arg_mappings": {"gradient_accumulation_steps ": "--gradient_accumulation_steps"}}})"),
                                                                    kSource);
  EXPECT_EQ(all.metric, deepspeed::DsMetric::kLatency);
  EXPECT_EQ(all.tuner.type, deepspeed::DsTunerType::kModelBased);
  EXPECT_EQ(all.tuner.trials, 20);
  EXPECT_TRUE(all.tuner.says_trials);
  EXPECT_FALSE(all.tuner.fast);
  EXPECT_EQ(all.tuner.early_stopping, 7);
  EXPECT_EQ(all.window.first, 2);
  EXPECT_EQ(all.window.last, 9);
  EXPECT_EQ(all.batch.max_train_batch_size, 64);
  EXPECT_EQ(all.batch.min_micro_batch, 2);
  EXPECT_EQ(all.batch.max_micro_batch, 32);
  EXPECT_EQ(all.batch.micro_batches, 4);
  EXPECT_EQ(all.mp_size, 2);
  EXPECT_EQ(all.model.num_params, 1500000000);
  EXPECT_EQ(all.model.hidden_size, 1600);
  EXPECT_EQ(all.results_dir, "res");
  const std::vector<std::pair<std::string, std::string>> trimmed = {
      {"gradient_accumulation_steps", "--gradient_accumulation_steps"}};
  EXPECT_EQ(all.arg_mappings, trimmed) << "the blank stands in DeepSpeed's own README";
  EXPECT_EQ(all.remarks.size(), 3U) << "exps_dir, overwrite, and what latency means";
}

TEST(DsAutotuning, RefusesByNameWhatItDoesNotUnderstand) {
  const auto error = [](const std::string& text) {
    return user_error_of([&] { deepspeed::read_ds_autotuning(read(text), kSource); });
  };
  expect_refused({{R"({"autotuning": {"tuner_num_trial": 3}})", "/autotuning/tuner_num_trial", "'tuner_num_trials'"},
                  {R"({"autotuning": {"start_step": 3}})", "/autotuning/start_step", "'start_profile_step'"},
                  {R"({"autotuning": {"metric": "forward"}})", "/autotuning/metric", "\"latency\""},
                  {R"({"autotuning": {"metric": "troughput"}})", "/autotuning/metric", "'throughput'"},
                  {R"({"autotuning": {"tuner_type": "modelbased"}})", "/autotuning/tuner_type", "'model_based'"},
                  {R"({"autotuning": {"start_profile_step": 9, "end_profile_step": 8}})",
                   "/autotuning/end_profile_step", "at least one step"},
                  {R"({"autotuning": {"max_train_micro_batch_size_per_gpu": 2,
                       "min_train_micro_batch_size_per_gpu": 4}})",
                   "/autotuning/max_train_micro_batch_size_per_gpu", "raise one"},
                  {R"({"autotuning": {"arg_mappings": {"x": "per_device"}}})", "/autotuning/arg_mappings/x", "--"},
                  {R"({"autotuning": {"model_info": {"layers": 2}}})", "/autotuning/model_info/layers", "num_layers"},
                  {R"({"autotuning": {"tuner_num_trials": 0}})", "/autotuning/tuner_num_trials", "1 or more"},
                  {R"({"autotuning": true})", "/autotuning", "write { ... }"}},
                 +error);
}

TEST(DsVersions, AreReadFromWhatPythonPrints) {
  EXPECT_EQ(deepspeed::version_of("0.19.8\n"), (deepspeed::DsVersion{0, 19, 8}));
  EXPECT_EQ(deepspeed::version_of("[2026-09-01 10:00:00,1] [INFO] Setting ds_accelerator to cpu\n0.14.4+cu121\r\n"),
            (deepspeed::DsVersion{0, 14, 4}));
  EXPECT_EQ(deepspeed::version_of("1.13.1 is your torch\n  0.9.3rc1"), (deepspeed::DsVersion{0, 9, 3}));
  for (const char* text :
       {"", "ModuleNotFoundError: No module named 'deepspeed'", "0.19", "0.19.x", "0.19.8 s later"}) {
    EXPECT_EQ(deepspeed::version_of(text), std::nullopt) << text;
  }
}

TEST(DsVersions, DifferFromTheReleaseThatBroughtTheChange) {
  const auto from = [](deepspeed::DsFeature feature, const char* before, const char* since) {
    EXPECT_FALSE(deepspeed::has(deepspeed::version_of(before).value(), feature)) << before;
    EXPECT_TRUE(deepspeed::has(deepspeed::version_of(since).value(), feature)) << since;
  };
  from(deepspeed::DsFeature::kStageListHonoured, "0.9.2", "0.9.3");
  from(deepspeed::DsFeature::kOnlyStageZeroByDefault, "0.9.5", "0.10.0");
  from(deepspeed::DsFeature::kShortMetricKeys, "0.10.0", "0.10.1");
  from(deepspeed::DsFeature::kLatencyOfWholeStep, "0.10.2", "0.10.3");
  from(deepspeed::DsFeature::kAllgatherBucketDead, "0.12.3", "0.12.4");
  from(deepspeed::DsFeature::kFullModeBroken, "0.13.1", "0.13.2");
  from(deepspeed::DsFeature::kTensorParallelTraining, "0.16.3", "0.16.4");
  from(deepspeed::DsFeature::kQuietTimerLines, "0.17.5", "0.17.6");
  from(deepspeed::DsFeature::kTimerLinesPrinted, "0.17.6", "0.18.0");
  from(deepspeed::DsFeature::kTensorParallelPresets, "0.18.5", "0.18.6");
  from(deepspeed::DsFeature::kLogLevelKey, "0.19.2", "0.19.3");
  from(deepspeed::DsFeature::kTensorParallelAtStage3, "0.19.3", "0.19.4");
  from(deepspeed::DsFeature::kOffloadPinnedByDefault, "0.19.4", "0.19.5");
  EXPECT_FALSE(deepspeed::has({0, 18, 0}, deepspeed::DsFeature::kQuietTimerLines)) << "they are printed again";
}

TEST(DsVersions, SayHowWellTheyAreKnown) {
  for (const deepspeed::DsVersion& run : {deepspeed::DsVersion{0, 19, 8}, {0, 17, 6}, {0, 16, 9}, {0, 14, 4}}) {
    EXPECT_EQ(deepspeed::support_of(run), deepspeed::DsSupport::kRun);
    EXPECT_EQ(deepspeed::version_remark(run), "");
  }
  EXPECT_EQ(deepspeed::support_of({0, 15, 0}), deepspeed::DsSupport::kByTable);
  EXPECT_NE(deepspeed::version_remark({0, 15, 0}).find("0.15.0 is known by its source only"), std::string::npos);
  EXPECT_EQ(deepspeed::support_of({0, 9, 2}), deepspeed::DsSupport::kTooOld);
  EXPECT_NE(deepspeed::version_remark({0, 9, 2}).find("install 0.9.3 or newer"), std::string::npos);
}

}  // namespace krigtune::deepspeed_autotuning_test
