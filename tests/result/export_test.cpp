#include "result/export.h"

#include <gtest/gtest.h>

#include "result/report_fixtures.h"
#include "result/result_files.h"
#include "user_error.h"

namespace krigtune::export_test {

std::vector<result::ExportedFile> exported(const char* format, const report::RunView& run) {
  return result::export_format_from(format, "--format").make(run, "/runs/it/export").files;
}

std::string omissions_of(const char* format, const report::RunView& run) {
  std::string text;
  for (const result::Omission& one :
       result::export_format_from(format, "--format").make(run, "/runs/it/export").omissions) {
    text += one.file + ": " + one.setting + " = " + space::to_string(one.value) + ": " + one.why + "\n";
  }
  return text;
}

TEST(Export, RefusesAnotherFormatInOneLineThatNamesWhatThereIs) {
  EXPECT_EQ(user_error_of([] { result::export_format_from("excel", "--format"); }),
            "--format: 'excel' is not a format that a run can be exported to; there are deepspeed, accelerate, "
            "torchtitan, megatron, trace, tensorboard, mlflow, markdown, csv, json");
}

TEST(Export, SaysWhyThereIsNoFileOfWeightsAndBiasesAndWhatToUseInstead) {
  const std::string refused = user_error_of([] { result::export_format_from("wandb", "--format"); });
  EXPECT_EQ(refused.rfind("--format: a run cannot be written as wandb: ", 0), 0U) << refused;
  EXPECT_NE(refused.find("documented nowhere"), std::string::npos) << refused;
  EXPECT_NE(refused.find("; export as tensorboard"), std::string::npos) << refused;
}

TEST(Export, OfDeepSpeedSaysWhatItsFileCannot) {
  const session::Session session = bench_session();
  const search::History none;
  search::Recommendation best = recommendation();
  EXPECT_EQ(omissions_of("deepspeed", run_view(session, none, best)), "");
  best.configuration.set("activation_checkpointing", "none");  // requires nothing
  best.configuration.set("pipeline_parallel", std::int64_t{1});
  EXPECT_EQ(omissions_of("deepspeed", run_view(session, none, best)), "");
  best.configuration.set("activation_checkpointing", "full");
  best.configuration.set("workers", std::int64_t{1});
  EXPECT_EQ(omissions_of("deepspeed", run_view(session, none, best)),
            "ds_config.json: activation_checkpointing = full: the script turns it on, ds_config.json only says how "
            "(--gradient_checkpointing with the Hugging Face Trainer)\nds_config.json: workers = 1: it is not a key of "
            "DeepSpeed's; the command in cmd_optimal.txt says it\n");
}

TEST(Export, OfDeepSpeedIsTheResultFile) {
  const session::Session session = bench_session();
  const search::History none;
  const report::RunView run = run_view(session, none, recommendation());
  const std::vector<result::ExportedFile> files = exported("deepspeed", run);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, "ds_config.json");
  for (const result::ResultFile& file : result::result_files()) {
    if (std::string(file.name) == "ds_config_optimal.json") {
      EXPECT_EQ(files[0].text, file.text(run).value());
    }
  }
}

TEST(Export, OfASessionWithoutATrainingIsRefusedButItsTrialsAreATable) {
  session::Session session;
  session.runner = runner::ReplaySpec();
  const search::History none;
  const report::RunView run = run_view(session, none, recommendation());
  EXPECT_NE(user_error_of([&] { exported("accelerate", run); }).find("no DeepSpeed configuration"), std::string::npos);
  const std::vector<result::ExportedFile> files = exported("csv", run);
  EXPECT_EQ(files.at(0).name, "trials.csv");
  EXPECT_EQ(files.at(0).text.rfind("trial,status,", 0), 0U) << files.at(0).text;
}

TEST(Export, OfAccelerateNamesTheDeepSpeedFileAndRepeatsNothingOfIt) {
  const session::Session session = bench_session();
  const search::History none;
  const std::vector<result::ExportedFile> files = exported("accelerate", run_view(session, none, recommendation()));
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].name, "ds_config.json");
  EXPECT_EQ(files[1].name, "accelerate_deepspeed.yaml");
  EXPECT_EQ(files[1].text,
            "# the script's DataLoader: batch_size 4\n"
            "# its Accelerator: gradient_accumulation_steps 1\n"
            "compute_environment: LOCAL_MACHINE\n"
            "debug: false\n"
            "deepspeed_config:\n"
            "  deepspeed_config_file: \"/runs/it/export/ds_config.json\"\n"
            "  zero3_init_flag: true\n"
            "distributed_type: DEEPSPEED\n"
            "machine_rank: 0\n"
            "main_training_function: main\n"
            "num_machines: 1\n"
            "num_processes: 2\n"
            "rdzv_backend: static\n"
            "same_network: true\n"
            "use_cpu: false\n");
}

struct Sharding {
  std::int64_t stage;
  const char* line;
  const char* remark;
};

TEST(Export, OfAccelerateShardsWithFsdpAsTheStageDoes) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2})", R"(, "precision": "bf16")");
  const search::History none;
  for (const Sharding& expected : {Sharding{0, "distributed_type: MULTI_GPU\n", "was not measured"},
                                   Sharding{1, "  fsdp_reshard_after_forward: false\n", "FSDP has no ZeRO stage 1"},
                                   Sharding{2, "  fsdp_reshard_after_forward: false\n", "bucket sizes"},
                                   Sharding{3, "  fsdp_reshard_after_forward: true\n", "module by module"}}) {
    search::Recommendation best = recommendation();
    best.configuration = configuration(expected.stage, 2, true);
    const std::string text = exported("accelerate", run_view(session, none, best)).at(2).text;
    EXPECT_NE(text.find(expected.line), std::string::npos) << text;
    EXPECT_NE(text.find(expected.remark), std::string::npos) << text;
    EXPECT_EQ(text.find("fsdp_config") != std::string::npos, expected.stage > 0) << text;
    EXPECT_NE(text.find("\nmixed_precision: bf16\n"), std::string::npos) << text;
  }
}

TEST(Export, OfAccelerateSaysWhatFsdpCannotOffload) {
  const session::Session session = bench_session();
  const search::History none;
  search::Recommendation best = recommendation();
  best.configuration.set("offload_optimizer", "cpu");
  best.configuration.set("activation_checkpointing", "full");
  const std::string optimizer = exported("accelerate", run_view(session, none, best)).at(2).text;
  EXPECT_NE(optimizer.find("cannot offload the optimizer alone"), std::string::npos) << optimizer;
  EXPECT_NE(optimizer.find("  fsdp_offload_params: false\n"), std::string::npos) << optimizer;
  EXPECT_NE(optimizer.find("  fsdp_activation_checkpointing: true\n"), std::string::npos) << optimizer;
  best.configuration.set("offload_param", "cpu");
  const std::string both = exported("accelerate", run_view(session, none, best)).at(2).text;
  EXPECT_EQ(both.find("cannot offload the optimizer alone"), std::string::npos) << both;
  EXPECT_NE(both.find("  fsdp_offload_params: true\n"), std::string::npos) << both;
}

TEST(Export, OfAccelerateSaysOfEachFileWhatItLeavesOut) {
  const session::Session session = bench_session();
  const search::History none;
  const std::string said = omissions_of("accelerate", run_view(session, none, recommendation()));
  for (const char* line : {"accelerate_fsdp.yaml: micro_batch = 4: the script's DataLoader says it\n",
                           "accelerate_fsdp.yaml: reduce_bucket_size = 500: FSDP communicates module by module\n",
                           "accelerate_fsdp.yaml: gradient_accumulation_steps = 1: the script's Accelerator says it"}) {
    EXPECT_NE(said.find(line), std::string::npos) << said;
  }
  EXPECT_EQ(said.find("zero_stage"), std::string::npos) << said;
  EXPECT_EQ(said.find("contiguous_gradients"), std::string::npos) << "nobody asked for it: " << said;
}

}  // namespace krigtune::export_test
