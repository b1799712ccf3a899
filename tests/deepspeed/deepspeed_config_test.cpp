#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json.h"
#include "deepspeed/deepspeed_fixture.h"
#include "deepspeed/job/ds_config.h"
#include "space/well_known.h"

namespace krigtune::deepspeed_config_test {

std::string error_of(const std::string& text) {
  return user_error_of([&] { read(text); });
}

Json trial(const std::string& text, const space::Configuration& configuration, std::int64_t ranks = 2) {
  return deepspeed::with_values(read(text), configuration, deepspeed::DsUse::kTrial, ranks, kSource);
}

Json result(const std::string& text, const space::Configuration& configuration, std::int64_t ranks = 2) {
  return deepspeed::with_values(read(text), configuration, deepspeed::DsUse::kResult, ranks, kSource);
}

TEST(DsConfigFile, IsRefusedWhereItIsNoJson) {
  expect_refused({{R"({"fp16": {"enabled": true, "enabled": false}})", "/fp16/enabled", "keep one"},
                  {"{\"a\": 1 \"b\": 2}", "line 1", "comma"},
                  {"{\n  # batch\n  \"a\": 1 \"b\": 2}", "line 3", "comma"},
                  {"[1]", "/", "write { ... }"},
                  {R"({"zero_optimization": "all"})", "/zero_optimization", R"({"stage": "all"})"},
                  {R"({"zero_optimization": true})", "/zero_optimization", R"({"stage": 2})"}},
                 error_of);
}

// DeepSpeed reads hjson. What krigtune writes is strict, since other readers of the file take no comments.
TEST(DsConfigFile, MayHaveCommentsAndTrailingCommas) {
  const Json plain = read(R"({"train_batch_size": 64, "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8},
                              "fp16": {"enabled": true}})");
  const Json commented = read(
      "{\n  # batch \"x\n  \"train_batch_size\": 64,   # 8 x 8\n  /* two\n lines */ \"zero_optimization\": {\n"
      "    \"stage\": 2,\n    \"reduce_bucket_size\": 5e8,\n  },\n  // precision\n  \"fp16\": {\"enabled\": true},\n} "
      "#");
  EXPECT_EQ(commented, plain);
  EXPECT_EQ(trial(deepspeed::ds_config_text(commented), {}), trial(deepspeed::ds_config_text(plain), {}));
  const char* in_text = R"({"tensorboard": {"output_path": "http://x//y#z/*\\\"#"}})";
  EXPECT_EQ(read(in_text)["tensorboard"]["output_path"], "http://x//y#z/*\\\"#");
}

TEST(DsConfigFile, NamesEveryValueOfTheWrongKind) {
  expect_refused(
      {{R"({"zero_optimization": {"stage": 5}})", "/zero_optimization/stage", "from 0 to 3"},
       {R"({"zero_optimization": {"stage": [1, "2"]}})", "/zero_optimization/stage/1", "from 0 to 3"},
       {R"({"train_micro_batch_size_per_gpu": 0})", "/train_micro_batch_size_per_gpu", "from 1 to 1000000"},
       {R"({"zero_optimization": {"reduce_bucket_size": 943718.4}})", "/zero_optimization/reduce_bucket_size", "whole"},
       {R"({"zero_optimization": {"reduce_bucket_size": [1e6, "auto"]}})", "/reduce_bucket_size/1", "whole"},
       {R"({"zero_optimization": {"overlap_comm": 1}})", "/zero_optimization/overlap_comm", "true or false"},
       {R"({"zero_optimization": {"offload_param": "cpu"}})", "/zero_optimization/offload_param", "\"device\""},
       {R"({"zero_optimization": {"offload_param": {"device": "gpu"}}})", "/offload_param/device", "none, cpu or nvme"},
       {R"({"zero_optimization": {"stage": []}})", "/zero_optimization/stage", "write values"},
       {R"({"zero_optimization": {"sub_group_size": [1, true]}})", "/sub_group_size", "another kind"},
       {R"({"zero_optimization": {"sub_group_size": [1, "auto"]}})", "/sub_group_size/1", "alone"},
       {R"({"gradient_clipping": [[1], 2]})", "/gradient_clipping/0", "one value"},
       {R"({"zero_optimization": {"cpu_offload": true}})", "/zero_optimization/cpu_offload",
        R"("offload_optimizer": {"device": "cpu"})"},
       {R"({"zero_stage": [1, 2]})", "/zero_stage", "it reads /zero_optimization/stage"},
       {R"({"train_batch_size": [16, 32]})", "/train_batch_size", "write one number"},
       {R"({"zero_optimization": {"max_live_parameters": 1, "stage3_max_live_parameters": 2}})",
        "/zero_optimization/stage3_max_live_parameters", "keep one"}},
      error_of);
}

TEST(DsTunables, TellWhatIsFixedAutoAndAListInTheOrderOfTheFile) {
  const std::vector<deepspeed::DsTunable> tunables = deepspeed::tunables_of(read(R"({
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": [1, 2, 4, 2],
    "zero_optimization": {"overlap_comm": null, "prefetch_bucket_size": 5e7, "stage": "all",
                          "sub_group_size": [1e6, 1e9],
                          "offload_optimizer": {"device": ["none", "cpu"], "pin_memory": true}},
    "fp16": {"enabled": "auto"}, "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.999]}},
    "elasticity": {"micro_batch_sizes": [2, 4]}, "autotuning": {"anything": [1, 2]}})"),
                                                                            kSource);
  ASSERT_EQ(tunables.size(), 6U);
  const auto expect = [&](std::size_t i, const char* name, const char* pointer, deepspeed::DsSetting setting,
                          const std::vector<space::Value>& values) {
    EXPECT_EQ(tunables[i].name, name);
    EXPECT_EQ(tunables[i].pointer, pointer);
    EXPECT_EQ(tunables[i].setting, setting) << name;
    EXPECT_EQ(tunables[i].values, values) << name;
  };
  expect(0, "micro_batch", "/train_micro_batch_size_per_gpu", deepspeed::DsSetting::kAuto, {});
  expect(1, "gradient_accumulation_steps", "/gradient_accumulation_steps", deepspeed::DsSetting::kList,
         {1_n, 2_n, 4_n});
  expect(2, "stage3_prefetch_bucket_size", "/zero_optimization/prefetch_bucket_size", deepspeed::DsSetting::kFixed,
         {50000000_n});
  expect(3, "zero_stage", "/zero_optimization/stage", deepspeed::DsSetting::kList, {0_n, 1_n, 2_n, 3_n});
  expect(4, "zero_optimization.sub_group_size", "/zero_optimization/sub_group_size", deepspeed::DsSetting::kList,
         {1000000_n, 1000000000_n});
  expect(5, "offload_optimizer", "/zero_optimization/offload_optimizer/device", deepspeed::DsSetting::kList,
         {std::string("none"), std::string("cpu")});
}

TEST(DsBatch, IsWhatTheFileSaysOrImplies) {
  const auto batch = [](const std::string& text, std::int64_t ranks) {
    return deepspeed::train_batch_size_of(read(text), ranks, kSource);
  };
  EXPECT_EQ(batch(R"({"train_batch_size": 32})", 4), 32);
  EXPECT_EQ(batch(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8})", 2), 32);
  EXPECT_EQ(batch(R"({"train_micro_batch_size_per_gpu": 2})", 4), 8);
  EXPECT_EQ(batch(R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"})", 4), std::nullopt);
  EXPECT_EQ(batch(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": "auto"})", 4), std::nullopt);
  EXPECT_EQ(batch(R"({"train_micro_batch_size_per_gpu": [1, 2]})", 4), std::nullopt);
  // Two ranks that see the same sequences count as one: 8 ranks with AutoTP 2 train on 4 x 4 sequences, not on 32.
  EXPECT_EQ(batch(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,
                      "tensor_parallel": {"autotp_size": 2}})",
                  8),
            16);
  for (const char* text : {R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 3})",
                           R"({"train_batch_size": 32, "gradient_accumulation_steps": 5})",
                           R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,
                               "gradient_accumulation_steps": 2})",
                           R"({"train_batch_size": "many"})", R"({"train_batch_size": 0})"}) {
    EXPECT_NE(user_error_of([&] { batch(text, 2); }).find("/train_batch_size"), std::string::npos) << text;
  }
}

// DeepSpeed divides the ranks by it (runtime/config.py): 8 ranks in groups of 4 train on 2 x 1 sequences.
TEST(DsBatch, CountsRanksThatShareASequenceOnce) {
  const std::string file = R"({"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1,
                               "gradient_accumulation_steps": 1, "sequence_parallel_size": 4})";
  EXPECT_EQ(deepspeed::train_batch_size_of(read(file), 8, kSource), 2);
  EXPECT_EQ(deepspeed::train_batch_size_of(
                read(R"({"train_micro_batch_size_per_gpu": 2, "sequence_parallel_size": 4})"), 8, kSource),
            4);
  EXPECT_EQ(result(R"({"train_batch_size": 16, "sequence_parallel_size": 4})", {{"micro_batch", 2_n}}, 8),
            read(R"({"train_batch_size": 16, "sequence_parallel_size": 4, "train_micro_batch_size_per_gpu": 2,
                     "gradient_accumulation_steps": 4})"));
  EXPECT_NE(user_error_of([&] {
              deepspeed::train_batch_size_of(read(file), 6, kSource);
            }).find("/sequence_parallel_size: 6 ranks cannot share sequences by 4"),
            std::string::npos);
  // What the command says counts where the file is silent.
  const deepspeed::DsRanks told(8, 4);
  EXPECT_EQ(deepspeed::train_batch_size_of(read(R"({"train_micro_batch_size_per_gpu": 2})"), told, kSource), 4);
  EXPECT_EQ(deepspeed::with_values(read(R"({"train_batch_size": 16})"), {{"micro_batch", 2_n}},
                                   deepspeed::DsUse::kResult, told, kSource),
            read(R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})"));
  for (const char* text : {R"({"sequence_parallel_size": 0})", R"({"sequence_parallel_size": "auto"})",
                           R"({"sequence_parallel_size": [2, 4]})"}) {
    EXPECT_NE(user_error_of([&] {
                deepspeed::train_batch_size_of(read(text), 8, kSource);
              }).find("/sequence_parallel_size: a whole number"),
              std::string::npos)
        << text;
  }
}

TEST(DsBatch, OfATrialKeepsTheGlobalBatch) {
  const std::string fixed = R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2,
                                "gradient_accumulation_steps": 8})";
  for (const std::int64_t micro : {1, 2, 4, 8, 16}) {
    const Json json = trial(fixed, {{"micro_batch", micro}});
    EXPECT_EQ(json["train_micro_batch_size_per_gpu"], micro);
    EXPECT_EQ(json["gradient_accumulation_steps"].get<std::int64_t>() * micro * 2, 32);
    EXPECT_FALSE(json.contains("train_batch_size"));
  }
  EXPECT_EQ(trial(fixed, {{"gradient_accumulation_steps", 1_n}})["train_micro_batch_size_per_gpu"], 16);
  EXPECT_NE(user_error_of([&] { trial(fixed, {{"micro_batch", 3_n}}); }).find("micro-batches of 3"), std::string::npos);
  // In DeepSpeed, a batch size alone means one micro-step, and so does a micro-batch alone.
  EXPECT_EQ(trial(R"({"train_batch_size": 32})", {})["train_micro_batch_size_per_gpu"], 16);
  EXPECT_EQ(trial(R"({"train_micro_batch_size_per_gpu": 4})", {})["gradient_accumulation_steps"], 1);
  // With two tensor-parallel ranks, the four replicas become two: 32 = 4 x 4 x 2.
  const Json split = trial(R"({"train_batch_size": 32})", {{"micro_batch", 4_n}, {"tensor_parallel", 2_n}}, 4);
  EXPECT_EQ(split["gradient_accumulation_steps"], 4);
  EXPECT_EQ(split["tensor_parallel"]["autotp_size"], 2);
}

TEST(DsValues, KeepOrderSpellingAndEverythingThatWasNotTuned) {
  const std::string user = R"({
    "steps_per_print": 100,
    "zero_optimization": {"reduce_scatter": true, "stage": [1, 3], "prefetch_bucket_size": "auto"},
    "train_micro_batch_size_per_gpu": 4,
    "train_batch_size": 32,
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95]}},
    "autotuning": {"enabled": true},
    "csv_monitor": {"enabled": true, "output_path": "mine"}
  })";
  const space::Configuration best = {{"zero_stage", 3_n},
                                     {"micro_batch", 8_n},
                                     {"gradient_accumulation_steps", 2_n},
                                     {"stage3_prefetch_bucket_size", 1000_n},
                                     {"reduce_bucket_size", 2000_n},
                                     {"lr", 0.5}};
  EXPECT_EQ(deepspeed::ds_config_text(result(user, best)), R"({
  "steps_per_print": 100,
  "zero_optimization": {
    "reduce_scatter": true,
    "stage": 3,
    "prefetch_bucket_size": 1000,
    "reduce_bucket_size": 2000
  },
  "train_micro_batch_size_per_gpu": 8,
  "train_batch_size": 32,
  "optimizer": {
    "type": "AdamW",
    "params": {
      "lr": "auto",
      "betas": [
        0.9,
        0.95
      ]
    }
  },
  "csv_monitor": {
    "enabled": true,
    "output_path": "mine"
  },
  "gradient_accumulation_steps": 2
}
)");
}

TEST(DsValues, AreReadBackAsTheyWereWrittenForEveryKnob) {
  for (const space::WellKnownParameter& knob : space::well_known_parameters()) {
    if (*knob.deepspeed.key == '\0') continue;
    space::Value value = knob.default_value;
    if (const auto* number = std::get_if<std::int64_t>(&value)) value = *number + 2;
    if (const auto* flag = std::get_if<bool>(&value)) value = !*flag;
    if (std::holds_alternative<std::string>(value)) value = std::string("cpu");
    space::Configuration configuration = {
        {"zero_stage", 3_n}, {"micro_batch", 1_n}, {"gradient_accumulation_steps", 1_n}};
    if (knob.name != std::string("zero_stage")) configuration.set(knob.name, value);
    for (const char* before : {"{}", R"({"zero_optimization": {"stage": 1}})"}) {
      const std::vector<deepspeed::DsTunable> written = deepspeed::tunables_of(trial(before, configuration), kSource);
      EXPECT_EQ(written.size(), configuration.size()) << knob.name;
      for (const deepspeed::DsTunable& tunable : written) {
        EXPECT_EQ(tunable.setting, deepspeed::DsSetting::kFixed);
        EXPECT_EQ(tunable.values.front(), *configuration.find(tunable.name)) << tunable.name;
      }
    }
  }
}

TEST(DsValues, OfAFileThatLeavesNothingOpenChangeNothing) {
  const std::string text = read_text(KRIGTUNE_ROOT "/experiments/deepspeed_cpu/ds_config.json");
  EXPECT_EQ(result(text, {}), read(text));
  Json without_batch = read(text);
  without_batch.erase("train_batch_size");
  EXPECT_EQ(trial(text, {}), without_batch);
}

TEST(DsValues, LeaveAutoToWhoeverReadsItUnlessItWasTuned) {
  const std::string user = R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
      "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}})";
  EXPECT_EQ(trial(user, {{"overlap_comm", true}}), read(R"({"train_batch_size": "auto",
      "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
      "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto", "overlap_comm": true}})"));
  const space::Configuration tuned = {{"micro_batch", 4_n}, {"gradient_accumulation_steps", 2_n}};
  EXPECT_FALSE(trial(user, tuned).contains("train_batch_size"));
  EXPECT_EQ(result(user, tuned)["train_batch_size"], "auto");
  EXPECT_EQ(result(user, tuned)["train_micro_batch_size_per_gpu"], 4);
  EXPECT_EQ(result(user, tuned)["zero_optimization"]["reduce_bucket_size"], "auto");
}

TEST(DsValues, TakeTheFirstOfAListThatNobodyChoseFrom) {
  const Json json = trial(R"({"zero_optimization": {"stage": "all", "sub_group_size": [1e6, 1e9]}})", {});
  EXPECT_EQ(json["zero_optimization"]["stage"], 0);
  EXPECT_EQ(json["zero_optimization"]["sub_group_size"], 1000000);
  const Json chosen = trial(R"({"zero_optimization": {"sub_group_size": [1e6, 1e9]}})",
                            {{"zero_optimization.sub_group_size", 1000000000_n}});
  EXPECT_EQ(chosen["zero_optimization"]["sub_group_size"], 1000000000);
}

// "passes" of DeepCompile, and whatever else is a list of one word.
TEST(DsValues, LeaveListsByNatureAlone) {
  for (const char* text : {R"({"compile": {"deepcompile": true, "passes": ["z3"]}})",
                           R"({"compile": {"deepcompile": true, "passes": ["prefetch", "selective_gather"]}})",
                           R"({"a_key_of_tomorrow": {"modules": ["attention"]}})"}) {
    EXPECT_TRUE(deepspeed::tunables_of(read(text), kSource).empty()) << text;
    EXPECT_EQ(trial(text, {}), read(text));
  }
}

// DeepSpeed asserts that it is even at stages 1 and 2 (stage_1_and_2.py).
TEST(DsValues, RoundAllgatherBucketsUpToEvenNumbers) {
  for (const char* user : {"{}", R"({"zero_optimization": {"allgather_bucket_size": 10}})"}) {
    const Json json = trial(user, {{"zero_stage", 2_n}, {"allgather_bucket_size", 501_n}});
    EXPECT_EQ(json["zero_optimization"]["allgather_bucket_size"], 502) << user;
  }
}

TEST(DsValues, LeaveTheBatchToDeepSpeedWhereVersionsCountTensorParallelRanksDifferently) {
  const std::string user = R"({"train_batch_size": 32, "tensor_parallel": {"autotp_size": 2}})";
  EXPECT_FALSE(result(user, {{"micro_batch", 4_n}}, 4).contains("train_batch_size"));
  EXPECT_EQ(result(user, {{"micro_batch", 4_n}, {"tensor_parallel", 1_n}}, 4)["train_batch_size"], 16);
}

TEST(DsValues, SayNothingThatTheStageDoesNotHave) {
  const std::string user = R"({"zero_optimization": {"stage": 3, "stage3_max_live_parameters": 7,
      "offload_param": {"device": "cpu", "buffer_count": 4}, "offload_optimizer": {"device": "cpu"}}})";
  const Json json = trial(user, {{"zero_stage", 2_n},
                                 {"stage3_max_live_parameters", 9_n},
                                 {"stage3_max_reuse_distance", 9_n}})["zero_optimization"];
  EXPECT_EQ(json, parse_json(R"({"stage": 2, "stage3_max_live_parameters": 7,
      "offload_param": {"device": "none", "buffer_count": 4}, "offload_optimizer": {"device": "cpu"}})",
                             "expected"));
  EXPECT_EQ(trial(user, {{"zero_stage", 0_n}})["zero_optimization"]["offload_optimizer"]["device"], "none");
  const Json plain = trial("{}", {{"zero_stage", 2_n}, {"offload_optimizer", "none"}, {"tensor_parallel", 1_n}});
  EXPECT_EQ(plain, parse_json(R"({"zero_optimization": {"stage": 2}})", "expected"));
  const Json offloaded = trial("{}", {{"zero_stage", 1_n}, {"offload_optimizer", "cpu"}});
  EXPECT_EQ(offloaded["zero_optimization"]["offload_optimizer"],
            parse_json(R"({"device": "cpu", "pin_memory": true})", "expected"));
}

// Stage 0 reduces gradients in pieces of a fixed size (runtime/engine.py) and reads none of these.
TEST(DsValues, AddNoBucketsAtStage0AndReplaceThoseThatTheFileHas) {
  const space::Configuration chosen = {{"zero_stage", 0_n},
                                       {"reduce_bucket_size", 2000_n},
                                       {"overlap_comm", true},
                                       {"contiguous_gradients", false},
                                       {"round_robin_gradients", true},
                                       {"allgather_bucket_size", 501_n}};
  EXPECT_EQ(trial("{}", chosen), parse_json(R"({"zero_optimization": {"stage": 0}})", "expected"));
  const std::string user = R"({"zero_optimization": {"reduce_bucket_size": 1000, "allgather_bucket_size": "auto",
      "overlap_comm": [true, false], "stage": 0}})";
  EXPECT_EQ(trial(user, chosen), parse_json(R"({"zero_optimization": {"reduce_bucket_size": 2000,
      "allgather_bucket_size": 502, "overlap_comm": true, "stage": 0}})",
                                            "expected"));
  for (const std::int64_t stage : {1, 2, 3}) {
    space::Configuration sharded = chosen;
    sharded.set("zero_stage", stage);
    EXPECT_EQ(trial("{}", sharded)["zero_optimization"].size(), chosen.size()) << stage;
  }
}

// RFC 4648, section 10, in JSON's quotes, and Python: base64.urlsafe_b64encode(...).
TEST(DsConfigBase64, IsThatOfTheRfcWithTheUrlAlphabet) {
  EXPECT_EQ(deepspeed::ds_config_base64(Json("fooba")), "ImZvb2JhIg==");
  EXPECT_EQ(deepspeed::ds_config_base64(Json("foobar")), "ImZvb2JhciI=");
  EXPECT_EQ(deepspeed::ds_config_base64(Json("foobarb")), "ImZvb2JhcmIi");
  EXPECT_EQ(deepspeed::ds_config_base64(read(R"({"a": "?>~\u00ff"})")), "eyJhIjoiPz5-w78ifQ==");
}

}  // namespace krigtune::deepspeed_config_test
