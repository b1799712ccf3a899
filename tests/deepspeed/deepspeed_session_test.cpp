// Sessions made from a user's ds_config.json and command, compared with results computed by hand.
#include "deepspeed/session/deepspeed_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "deepspeed/deepspeed_session_fixture.h"
#include "deepspeed/job/ds_config.h"
#include "session/session.h"
#include "trial/temporary_directory.h"
#include "user_error.h"
#include "words.h"

namespace krigtune::deepspeed_session_test {

deepspeed::DsSessionInputs trainers(const std::string& config, const std::string& flags) {
  deepspeed::DsSessionInputs inputs = inputs_of(config, "", 1);  // the command says 4
  inputs.command =
      deepspeed::read_ds_command(words_of("torchrun --nproc_per_node 4 train.py --deepspeed ds.json " + flags));
  return inputs;
}

TEST(DeepSpeedSession, SearchesWhatAFileLeavesOpenAndKeepsWhatItFixes) {
  const deepspeed::DsSession session = made(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": [2, 4, 8],
      "zero_optimization": {"stage": [1, 2], "overlap_comm": true, "reduce_bucket_size": "auto",
                            "allgather_bucket_size": [5e7, 5e8], "allgather_partitions": [true, false],
                            "reduce_scatter": [true, false], "contiguous_gradients": false}})");
  const Json& space = session.json["space"];
  EXPECT_EQ(space["zero_stage"], json("[1, 2]"));
  EXPECT_EQ(space["micro_batch"], json("[2, 4, 8]"));
  EXPECT_EQ(space["gradient_accumulation_steps"], json("[1, 2, 4]"));  // 32 / (4 ranks * micro_batch)
  EXPECT_EQ(space["zero_optimization.reduce_scatter"], json("[true, false]"));
  EXPECT_TRUE(space.contains("reduce_bucket_size"));
  for (const char* name :
       {"overlap_comm", "allgather_bucket_size", "zero_optimization.allgather_partitions", "contiguous_gradients",
        "stage3_prefetch_bucket_size", "tensor_parallel", "offload_optimizer", "activation_checkpointing"}) {
    EXPECT_FALSE(space.contains(name)) << name;
  }
  EXPECT_TRUE(says(session, "allgather_bucket_size is left out"));
  EXPECT_TRUE(says(session, "allgather_partitions is left out"));
  EXPECT_TRUE(says(session, "overlap_comm, contiguous_gradients: stays as the file says"));
  const space::Configuration baseline = read(session).baseline.value();
  EXPECT_EQ(baseline.integer("zero_stage", -1), 1);
  EXPECT_EQ(baseline.integer("micro_batch", -1), 2);
  EXPECT_EQ(baseline.integer("gradient_accumulation_steps", -1), 4);
  EXPECT_EQ(baseline.integer("reduce_bucket_size", -1), 500'000'000);  // DeepSpeed's default
}

TEST(DeepSpeedSession, KeepsTheBatchInEveryConfigurationWithAndWithoutAModel) {
  for (const std::string flags : {"", kSizes}) {
    const deepspeed::DsSession session =
        made(R"({"train_batch_size": 48, "zero_optimization": {"stage": [0, 2]}})", flags);
    EXPECT_EQ(session.json.contains("workload"), !flags.empty());
    const session::Session read_back = read(session);
    std::set<std::int64_t> micro;
    read_back.space.for_each([&](const space::Configuration& c) {
      micro.insert(c.integer("micro_batch", 0));
      EXPECT_EQ(c.integer("micro_batch", 0) * c.integer("gradient_accumulation_steps", 0) * 4, 48);
      return true;
    });
    EXPECT_EQ(micro, (std::set<std::int64_t>{1, 2, 3, 4, 6, 12}));
    EXPECT_EQ(read_back.baseline->integer("micro_batch", 0), 12);  // DeepSpeed's default: no accumulation
  }
}

TEST(DeepSpeedSession, OpensAFileThatOpensNothing) {
  const deepspeed::DsSession session = made(
      R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3},
          "bf16": {"enabled": true}})",
      kSizes);
  const Json& space = session.json["space"];
  EXPECT_EQ(space["zero_stage"], json("[0, 1, 2, 3]"));
  EXPECT_EQ(space["micro_batch"], json("[1, 2, 4, 8]"));
  EXPECT_EQ(space["overlap_comm"], json(R"({"values": [false, true], "when": "zero_stage >= 1"})"));
  EXPECT_EQ(space["stage3_prefetch_bucket_size"]["when"], "zero_stage >= 3");
  EXPECT_TRUE(says(session, "micro_batch, zero_stage: searched, since the file opens nothing"));
  const session::Session read_back = read(session);
  EXPECT_EQ(read_back.workload->train_batch_size, 32);
  EXPECT_EQ(read_back.workload->precision, workload::Precision::kBf16);
  EXPECT_EQ(read_back.workload->framework, workload::Framework::kDeepSpeed);
  EXPECT_EQ(read_back.workload->dialect, workload::Dialect::kDeepSpeed);
  EXPECT_EQ(read_back.workload->model.layers, 4);
  EXPECT_EQ(read_back.workload->model.hidden, 256);
  // The model has 4 (12 h h + 13 h) + 2 h + 1000 h + 64 h parameters. No bucket needs to be larger, rounded up to two
  // digits.
  EXPECT_EQ(workload::parameter_count(read_back.workload->model), 4 * (12 * 65536 + 13 * 256) + 1066 * 256);
  EXPECT_EQ(space["reduce_bucket_size"]["max"], 3'500'000);
  const space::Configuration& baseline = *read_back.baseline;
  EXPECT_EQ(baseline.integer("zero_stage", 0), 3);
  EXPECT_EQ(baseline.integer("micro_batch", 0), 4);
  EXPECT_EQ(baseline.boolean("overlap_comm", false), true);  // DeepSpeed's default at stage 3 only
}

TEST(DeepSpeedSession, FillsInAutoAsTheTrainerDoesAndSearchesItsFlags) {
  const char* config = R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
      "gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, "gradient_clipping": "auto",
      "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
      "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})";
  deepspeed::DsSessionInputs inputs =
      trainers(config, "--per_device_train_batch_size 2 --gradient_accumulation_steps=4 --bf16 --hidden_size 1024");
  const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
  const Json& space = session.json["space"];
  EXPECT_EQ(space["zero_stage"], json("[3]"));
  EXPECT_EQ(space["micro_batch"], json("[1, 2, 4, 8]"));  // 2 * 4 sequences on each of 4 ranks
  EXPECT_EQ(space["activation_checkpointing"], json(R"(["none", "full"])"));
  EXPECT_FALSE(space.contains("overlap_comm"));
  EXPECT_FALSE(space["reduce_bucket_size"].contains("when"));
  EXPECT_EQ(session.json["baseline"], json(R"({"zero_stage": 3, "micro_batch": 2, "gradient_accumulation_steps": 4,
      "reduce_bucket_size": 1048576, "stage3_prefetch_bucket_size": 943718, "stage3_param_persistence_threshold": 10240,
      "activation_checkpointing": "none"})"));
  EXPECT_TRUE(read(session).baseline.has_value());

  // The Trainer's own default for the micro-batch is 8.
  const deepspeed::DsSession unsaid = deepspeed::deepspeed_session(trainers(config, "--bf16 --output_dir out"));
  EXPECT_EQ(unsaid.json["space"]["micro_batch"], json("[1, 2, 4, 8]"));
  EXPECT_EQ(unsaid.json["baseline"]["micro_batch"], 8);
}

// As Dolly's trainer: --per-device-train-batch-size, but none of the Trainer's other flags.
TEST(DeepSpeedSession, AddsTheTrainersFlagsOnlyToAScriptOfTheTrainer) {
  const char* config = R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
      "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}})";
  const deepspeed::DsSession session = deepspeed::deepspeed_session(
      trainers(config, "--epochs 2 --per-device-train-batch-size 6 --bf16 true --hidden_size 1024"));
  EXPECT_FALSE(session.json["space"].contains("micro_batch"));
  EXPECT_FALSE(session.json["space"].contains("activation_checkpointing"));
  EXPECT_TRUE(says(session, "micro-batch and accumulation stay as the script chooses them"));
  EXPECT_FALSE(says(session, "follows from the model's width"));
  const deepspeed::DsSession unknown =
      deepspeed::deepspeed_session(trainers(config, "--per-device-train-batch-size 6 --bf16 true"));
  EXPECT_TRUE(says(unknown, "reduce_bucket_size: \"auto\" follows from the model's width, which is not known"));
  EXPECT_EQ(session.json["baseline"]["reduce_bucket_size"], 1048576)
      << "who reads \"auto\" fills it in like the Trainer";
}

// accelerator.py, _prepare_deepspeed; only the script knows the batch.
TEST(DeepSpeedSession, FillsInAutoSizesAsAccelerateDoes) {
  deepspeed::DsSessionInputs inputs = inputs_of(R"({"train_batch_size": "auto", "zero_optimization": {"stage": 3,
      "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
      "stage3_param_persistence_threshold": "auto"}, "train_micro_batch_size_per_gpu": "auto"})");
  inputs.command = deepspeed::read_ds_command(
      words_of("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 4 sft.py "
               "--hidden_size 1024"));
  const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
  EXPECT_EQ(session.json["baseline"], json(R"({"zero_stage": 3, "reduce_bucket_size": 1048576,
      "overlap_comm": true, "stage3_prefetch_bucket_size": 943718, "stage3_param_persistence_threshold": 10240})"));
}

TEST(DeepSpeedSession, LeavesTheBatchToAScriptThatNoFlagReaches) {
  const deepspeed::DsSession session =
      made(R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
                                     "zero_optimization": {"stage": [1, 2]}})",
           kSizes);
  EXPECT_FALSE(session.json["space"].contains("micro_batch"));
  EXPECT_FALSE(session.json.contains("workload"));
  EXPECT_TRUE(says(session, "stay as the script chooses them"));
  const deepspeed::DsSession mapped =
      made(R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 2,
      "zero_optimization": {"stage": [1, 2]},
      "autotuning": {"arg_mappings": {"train_micro_batch_size_per_gpu": "--bs"}}})",
           "--bs 2");
  EXPECT_EQ(mapped.json["baseline"]["micro_batch"], 2);
  EXPECT_EQ(mapped.json["space"]["gradient_accumulation_steps"], json("[2]"));
}

TEST(DeepSpeedSession, ReadsObjectiveBudgetAndLimitsFromTheSectionAutotuning) {
  const deepspeed::DsSession session = made(R"({"train_batch_size": 64, "zero_optimization": {"stage": "all"},
      "autotuning": {"enabled": true, "fast": true, "metric": "latency", "tuner_num_trials": 12,
                     "tuner_early_stopping": 4, "tuner_type": "random", "start_profile_step": 4, "end_profile_step": 11,
                     "max_train_micro_batch_size_per_gpu": 8, "min_train_micro_batch_size_per_gpu": 2,
                     "num_tuning_micro_batch_sizes": 2}})");
  EXPECT_EQ(session.json["space"], json(R"({"zero_stage": [0, 1, 2, 3], "micro_batch": [2, 4, 8],
                                            "gradient_accumulation_steps": [2, 4, 8]})"));
  EXPECT_EQ(session.json["objective"], json(R"({"metric": "latency"})"));
  EXPECT_EQ(session.json["budget"], json(R"({"trials": 12, "patience": 4})"));
  EXPECT_EQ(session.json["stagewise"], json(R"({"plateau": 0.05, "fast": true, "tuner": "random", "tuner_trials": 12,
                                                "early_stopping": 4, "micro_batches": 2})"));
  EXPECT_EQ(session.json["runner"]["kind"], "deepspeed");
  EXPECT_EQ(session.json["runner"]["warmup_steps"], 4);
  EXPECT_EQ(session.json["runner"]["measure_steps"], 8);
  EXPECT_TRUE(says(session, "--strategy"));
  EXPECT_TRUE(says(session, "num_tuning_micro_batch_sizes"));
  const session::Session read_back = read(session);
  const auto& job = std::get<deepspeed::DeepSpeedSpec>(read_back.runner);
  EXPECT_EQ(job.argv.front(), "deepspeed");
  EXPECT_EQ(job.steps.due(), 12);
  EXPECT_FALSE(read_back.objective.maximize);
  EXPECT_EQ(read_back.budget.trials, 12);
  EXPECT_EQ(read_back.baseline->integer("micro_batch", 0),
            16);  // outside the space, but measured anyway
}

TEST(DeepSpeedSession, LetsTheBatchVaryWhereNothingSaysItAndSaysSo) {
  const deepspeed::DsSession session =
      made(R"({"train_micro_batch_size_per_gpu": [1, 2, 4], "gradient_accumulation_steps": 3,
      "autotuning": {"max_train_batch_size": 24}, "zero_optimization": {"stage": 0}})");
  EXPECT_TRUE(says(session, "the sequences of a step vary"));
  const session::Session read_back = read(session);
  EXPECT_EQ(read_back.space.count(), 2);  // 3 * 4 ranks * 4 sequences exceed the batch
}

TEST(DeepSpeedSession, SearchesOffloadAndTensorParallelismWhereTheyCanBe) {
  const char* config = R"({"train_batch_size": 64, "optimizer": {"type": "AdamW"}, "bf16": {"enabled": true},
                           "zero_optimization": {"stage": "all"}})";
  deepspeed::DsSessionInputs inputs = inputs_of(config, "", 8);
  inputs.model.num_params = 1'000'000'000;
  inputs.machine.rank_memory = from_gib(10);
  inputs.machine.host_memory = from_gib(40);  // 1e9 * max(4 * 8, 16) * 1.5 bytes = 44.7 GiB
  EXPECT_FALSE(deepspeed::deepspeed_session(inputs).json["space"].contains("offload_optimizer"));
  inputs.machine.host_memory = from_gib(64);
  const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
  EXPECT_EQ(session.json["space"]["offload_optimizer"],
            json(R"({"values": ["none", "cpu"], "when": "zero_stage >= 1"})"));
  EXPECT_FALSE(session.json["space"].contains("offload_param"));  // 16e9 bytes over 8 ranks fit
  EXPECT_FALSE(session.json["space"].contains("tensor_parallel"));
  EXPECT_TRUE(read(session).baseline.has_value());

  inputs.tensor_parallel = true;
  EXPECT_EQ(deepspeed::deepspeed_session(inputs).json["space"]["tensor_parallel"], json("[1, 2, 4, 8]"));
  EXPECT_GT(read(deepspeed::deepspeed_session(inputs)).space.count(), 0);
  inputs.machine.version = deepspeed::DsVersion{0, 16, 9};  // supports AutoTP only below stage 3
  EXPECT_EQ(deepspeed::deepspeed_session(inputs).json["constraints"].back(), "tensor_parallel == 1 || zero_stage < 3");
  inputs.machine.version = deepspeed::DsVersion{0, 14, 4};
  EXPECT_FALSE(deepspeed::deepspeed_session(inputs).json["space"].contains("tensor_parallel"));
}

bool leaves_out(const deepspeed::DsSession& session, const std::string& text) {
  const Json list = session.json["workload"].value("not_modelled", Json::array());
  return std::any_of(list.begin(), list.end(),
                     [&](const Json& one) { return one.get<std::string>().find(text) != std::string::npos; });
}

// A model that does not fit if it is trained in full fits with adapters.
TEST(DeepSpeedSession, RefusesNothingToAdapters) {
  const char* config = R"({"train_batch_size": 16, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW"}})";
  for (const char* flags : {"--use_lora", "--use_peft True", "--lora_r 16", "--load_in_4bit", "--finetuning_type lora",
                            "--lora_enable=True", "--train_type=lora", "--q_lora False --lora_r 8"}) {
    deepspeed::DsSessionInputs inputs = inputs_of(config, std::string(kSizes) + " " + flags);
    inputs.machine.rank_memory = Bytes{8 << 20};  // full training at stage 2 takes 5.5 bytes for each of 3.4 million
    const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
    EXPECT_EQ(session.json["space"]["zero_stage"], json("[0, 1, 2, 3]")) << flags;
    const bool is_planned = session.json["workload"].contains("training");
    EXPECT_NE(leaves_out(session, "much less memory"), is_planned) << flags;
    EXPECT_EQ(is_planned, std::string(flags).find("load_in_4bit") == std::string::npos &&
                              std::string(flags).find("train_type") == std::string::npos)
        << flags;
  }
  for (const char* flags : {"--use_lora False", "--lora_dim 0", "--finetuning_type full",
                            "--lora_enable=False --lora_r 8", "--load_in_8bit false", "--lora_adjacent 3"}) {
    deepspeed::DsSessionInputs inputs = inputs_of(config, std::string(kSizes) + " " + flags);
    inputs.machine.rank_memory = Bytes{8 << 20};
    const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
    EXPECT_TRUE(session.json.contains("workload")) << flags;
    EXPECT_EQ(session.json["space"]["zero_stage"], json("[3]")) << flags;
  }
}

// Adapters were told twice: once by a list of DeepSpeed's own, once by the list for scripts of the Trainer.
TEST(DeepSpeedSession, TellsOnceOfAdaptersThatItDoesNotKnow) {
  const char* config = R"({"train_batch_size": 16, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW"}})";
  const TemporaryDirectory directory;
  directory.write("ds.json", config);
  deepspeed::DsSessionInputs inputs = inputs_of(config, std::string(kSizes) + " --lora_alpha 16 --lora_dropout 0.1");
  inputs.directory = directory.path();
  const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
  const Json list = session.json["workload"]["not_modelled"];
  EXPECT_EQ(std::count_if(list.begin(), list.end(),
                          [](const Json& one) { return one.get<std::string>().find("adapters") != std::string::npos; }),
            1)
      << list.dump(1);
}

// The ranks that share a model are not those of the file, so its batch would be taken for that of too many replicas.
TEST(DeepSpeedSession, RefusesModelParallelismOfTheScriptsOwn) {
  const char* config = R"({"train_batch_size": 16})";
  for (const char* flag :
       {"--tensor-model-parallel-size 2", "--pipeline-model-parallel-size=2", "--ds-sequence-parallel-size 2"}) {
    const deepspeed::DsSessionInputs inputs = inputs_of(config, std::string(kSizes) + " " + flag);
    const std::string error = user_error_of([&] { deepspeed::deepspeed_session(inputs); });
    EXPECT_NE(error.find("splits its model itself"), std::string::npos) << flag << ": " << error;
    EXPECT_NE(error.find("without --deepspeed"), std::string::npos) << error;
  }
  EXPECT_NO_THROW(deepspeed::deepspeed_session(
      inputs_of(config, std::string(kSizes) + " --tensor-model-parallel-size 1 --no-pipeline-parallel")));
}

// Cases of public files: what takes more memory is named, and what takes less also refuses nothing.
TEST(DeepSpeedSession, NamesSettingsThatThePredictionLeavesOut) {
  const auto session_of = [](const std::string& rest, const std::string& flags = "") {
    deepspeed::DsSessionInputs inputs =
        inputs_of(R"({"train_batch_size": 16, "bf16": {"enabled": true}, )" + rest + "}", kSizes + (" " + flags));
    inputs.machine.rank_memory = Bytes{8 << 20};  // less than stage 2 takes in full
    return deepspeed::deepspeed_session(inputs);
  };
  for (const auto& [rest, remark] : std::map<std::string, std::string>{
           {R"("zero_optimization": {"stage": [2, 3], "zero_quantized_weights": true})",
            "zero_quantized_weights: less"},
           {R"("zero_optimization": {"stage": [2, 3], "offload_optimizer": {"device": "cpu", "ratio": 0.3}})",
            "ratio: "},
           {R"("data_types": {"grad_accum_dtype": "fp32"})", "grad_accum_dtype: "},
           {R"("torch_autocast": {"enabled": true, "dtype": "bfloat16"})", "torch_autocast: "},
           {R"("optimizer": {"type": "OneBitAdam"})", "optimizer OneBitAdam: more memory, less traffic"},
           {R"("optimizer": {"type": "ZeroOneAdam"})", "optimizer ZeroOneAdam: more memory, less traffic"}}) {
    const deepspeed::DsSession session = session_of(rest);
    EXPECT_TRUE(leaves_out(session, remark)) << rest;
  }
  for (const auto& [rest, flags] : std::map<std::string, std::string>{
           {R"("optimizer": {"type": "Apollo"}, "steps_per_print": 1)", ""},
           {R"("zero_optimization": {"overlap_comm": true})", "--optim adamw_torch_4bit"},
           {R"("bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true})",
            ""}}) {
    const bool is_bf16 = rest.rfind("\"bf16\"", 0) == 0;
    deepspeed::DsSessionInputs inputs =
        inputs_of(R"({"train_batch_size": 16, )" + rest + (is_bf16 ? "}" : R"(, "bf16": {"enabled": true}})"),
                  kSizes + (" " + flags));
    inputs.machine.rank_memory = Bytes{8 << 20};
    const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
    EXPECT_EQ(session.json["space"]["zero_stage"], json("[0, 1, 2, 3]")) << rest;
    EXPECT_TRUE(leaves_out(session, "less memory")) << rest;
  }
  for (const char* rest :
       {R"("optimizer": {"type": "AdamW"})", R"("zero_optimization": {"mics_shard_size": -1})",
        R"("zero_optimization": {"zero_hpz_partition_size": 1})", R"("torch_autocast": {"enabled": false})"}) {
    const deepspeed::DsSession session = session_of(rest, "--optim adamw_torch");
    EXPECT_TRUE(session.json.contains("workload")) << rest;
    EXPECT_FALSE(says(session, "not in this prediction")) << rest;
  }
}

// A section "optimizer" was taken for a key of Axolotl, which names another optimizer. So no job with AdamW in its file
// excluded anything because of its memory.
TEST(DeepSpeedSession, TakesNoKeyOfTheFileForOneOfAnotherTrainer) {
  const TemporaryDirectory directory;
  const std::string text = R"({"train_batch_size": 16, "optimizer": {"type": "AdamW"}, # comment
    "bf16": {"enabled": true}})";
  deepspeed::DsSessionInputs inputs = inputs_of(text, std::string(kSizes) + " --use_liger_kernel");
  inputs.directory = directory.path();
  directory.write("ds.json", text);
  const workload::Caveats caveats = read(deepspeed::deepspeed_session(inputs)).workload->caveats;
  EXPECT_EQ(caveats.not_modelled, std::vector<std::string>{});
}

// An optimizer that the file names counts more than a flag; without one the flag does.
TEST(DeepSpeedSession, PredictsTheOptimizerThatFileOrCommandName) {
  const auto workload_of = [](const std::string& rest, const std::string& flags) {
    const std::string text = R"({"train_batch_size": 16, "bf16": {"enabled": true})" + rest + "}";
    return *read(deepspeed::deepspeed_session(inputs_of(text, std::string(kSizes) + " " + flags))).workload;
  };
  using workload::OptimizerKind;
  EXPECT_EQ(workload_of("", "").optimizer, OptimizerKind::kAdamW);
  EXPECT_EQ(workload_of(R"(, "optimizer": {"type": "Lion"})", "").optimizer, OptimizerKind::kLion);
  EXPECT_EQ(workload_of(R"(, "optimizer": {"type": "AdamW"})", "--optim paged_adamw_8bit").optimizer,
            OptimizerKind::kAdamW);
  const workload::Workload by_flag = workload_of("", "--optim paged_adamw_8bit --use_liger_kernel");
  EXPECT_EQ(by_flag.optimizer, OptimizerKind::kAdamW8bit);
  EXPECT_EQ(by_flag.training.kernels, workload::Kernels::kFused);
  EXPECT_EQ(by_flag.training.loss, workload::LossKind::kFused);
  EXPECT_TRUE(by_flag.caveats.not_modelled.empty());
  EXPECT_EQ(workload_of(R"(, "optimizer": {"type": "Muon"})", "--optim adamw_torch").optimizer, OptimizerKind::kMuon);
  EXPECT_EQ(workload_of(R"(, "optimizer": {"type": "Apollo"})", "--optim adamw_torch").caveats.not_modelled,
            std::vector<std::string>{"optimizer Apollo: less memory"});
}

TEST(DeepSpeedSession, NamesVariablesThatPredictionsLeaveOut) {
  deepspeed::DsSessionInputs inputs = inputs_of(R"({"train_batch_size": 16})");
  inputs.command = deepspeed::read_ds_command(words_of(
      std::string("env NCCL_P2P_DISABLE=1 HF_HOME=/h deepspeed train.py --deepspeed --deepspeed_config ds.json ") +
      kSizes));
  const workload::Caveats caveats = read(deepspeed::deepspeed_session(inputs)).workload->caveats;
  EXPECT_EQ(caveats.also_not_modelled,
            std::vector<std::string>{"NCCL_P2P_DISABLE=1: slower collectives within a node"});
}

TEST(DeepSpeedSession, LeavesOutStagesThatCannotHoldTheModel) {
  deepspeed::DsSessionInputs inputs = inputs_of(R"({"train_batch_size": 64, "bf16": {"enabled": true}})", "", 8);
  inputs.model.num_params = 4'000'000'000;  // stages 0, 1, 2, 3: 64, 22, 15, 8 GB a rank
  inputs.machine.rank_memory = from_gib(16);
  const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
  EXPECT_EQ(session.json["space"]["zero_stage"], json("[2, 3]"));
  EXPECT_TRUE(says(session, "stage 1 is left out"));
  EXPECT_TRUE(says(session, "time and memory are not predicted"));
}

TEST(DeepSpeedSession, TellsPredictionsOfOffloadThatTheFileFixes) {
  const deepspeed::DsSession session = made(R"({"train_micro_batch_size_per_gpu": 4,
      "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "contiguous_gradients": false}})",
                                            kSizes);
  EXPECT_EQ(session.json["space"]["offload_optimizer"], json(R"({"values": ["cpu"], "when": "zero_stage >= 1"})"));
  EXPECT_FALSE(session.json["space"].contains("contiguous_gradients"));
  EXPECT_TRUE(says(session, "offload_optimizer, contiguous_gradients: stays"));
  EXPECT_TRUE(read(session).baseline.has_value());
  const deepspeed::DsSession nvme = made(R"({"train_micro_batch_size_per_gpu": 4,
      "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}})",
                                         kSizes);
  EXPECT_FALSE(nvme.json.contains("workload"));
  EXPECT_TRUE(says(nvme, "offload to NVMe is not modelled"));
}

TEST(DeepSpeedSession, SearchesNoCommunicationOnOneRank) {
  const deepspeed::DsSession session =
      made(R"({"train_batch_size": 8, "zero_optimization": {"reduce_bucket_size": [1, 2]}})", "", 1);
  EXPECT_EQ(session.json["space"]["zero_stage"], json("[0]"));
  EXPECT_FALSE(session.json["space"].contains("reduce_bucket_size"));
  EXPECT_TRUE(says(session, "reduce_bucket_size is left out"));
}

TEST(DeepSpeedSession, ReadsTheModelOfAConfigOfHuggingFace) {
  const std::filesystem::path directory = testing::TempDir() + "deepspeed_session_model";
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "config.json") << R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4,
      "vocab_size": 500, "n_positions": 128})";
  const char* config = R"({"train_batch_size": 8, "fp16": {"enabled": true}})";
  const session::Session session = read(made(config, "--block_size 32 --model_name_or_path " + directory.string()));
  EXPECT_EQ(session.workload->model.layers, 2);
  EXPECT_EQ(session.workload->model.seq_len, 32);
  EXPECT_EQ(session.workload->precision, workload::Precision::kFp16);

  std::ofstream(directory / "config.json") << R"({"model_type": "t5"})";
  deepspeed::DsSessionInputs inputs = inputs_of(config);
  inputs.model.hf_config = directory / "config.json";
  const deepspeed::DsSession other = deepspeed::deepspeed_session(inputs);
  EXPECT_FALSE(other.json.contains("workload"));
  EXPECT_TRUE(says(other, "of type 't5'"));
}

TEST(DeepSpeedSession, RefusesInOneLineWhatCannotBe) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"zero_optimization": {"stage": 1}})", "names no batch"},
      {R"({"train_batch_size": 64, "autotuning": {"max_train_batch_size": 32}})", "/autotuning/max_train_batch_size"},
      {R"({"train_batch_size": 64, "autotuning": {"mp_size": 2}})", "/autotuning/mp_size"},
      {R"({"train_batch_size": 64, "autotuning": {"tuner_num_trails": 9}})", "tuner_num_trials"},
      {R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": [3, 5]})", "no value of the list divides"},
      {R"({"train_batch_size": 66})", "/train_batch_size"},
  };
  for (const auto& [config, what] : cases) {
    const std::string error = user_error_of([&] { made(config); });
    EXPECT_NE(error.find(what), std::string::npos) << config << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

}  // namespace krigtune::deepspeed_session_test
