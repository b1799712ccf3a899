// Files of other launchers and frameworks, read back by the readers for users' jobs.
#include <gtest/gtest.h>

#include "jobs/recipe/config_values.h"
#include "jobs/recipe/recipe_job.h"
#include "result/export.h"
#include "result/report_fixtures.h"
#include "user_error.h"

namespace krigtune::export_jobs_test {

const search::History kNone;

// Eight ranks that train with FSDP.
session::Session fsdp_session() {
  const std::string text = R"({
      "workload": {"model": {"layers": 4, "hidden": 64, "heads": 4, "vocab": 16, "seq_len": 8}, "train_batch_size": 32,
                   "precision": "bf16", "framework": "fsdp"},
      "cluster": {"nodes": 2, "gpus_per_node": 4, "gpu": "a100-80gb", "network": "ib-hdr-200"},
      "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": [1, 2, 4]}, "baseline": null, "runner": {"kind": "none"}})";
  return session::read_session(parse_json(text, "session"), "session", ".");
}

result::Export exported(const char* format, const session::Session& session, const space::Configuration& best) {
  search::Recommendation chosen = recommendation();
  chosen.configuration = best;
  return result::export_format_from(format, "--format").make(run_view(session, kNone, chosen), "/runs/it/export");
}

std::string text_of(const result::Export& made, const std::string& name) {
  for (const result::ExportedFile& file : made.files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << "no " << name;
  return "";
}

std::string value_of(const jobs::ConfigValues& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "absent" : space::to_string(found->second);
}

std::string why(const result::Export& made, const std::string& file, const std::string& setting) {
  for (const result::Omission& one : made.omissions) {
    if (one.file == file && one.setting == setting) return one.why;
  }
  return "";
}

// Splits at blanks; these words have no quotes.
std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

// Returns what a recipe reads from a command with these words.
jobs::OwnValues read_back(const char* recipe_name, std::vector<std::string> command,
                          const std::vector<std::string>& words, std::int64_t ranks) {
  command.insert(command.end(), words.begin(), words.end());
  const jobs::Recipe recipe = jobs::find_recipe(recipe_name);
  return jobs::own_values(recipe, jobs::read_job(recipe, {command, "/", {}, ranks}));
}

TEST(AccelerateOfFsdp, IsFsdpOfBothVersionsAndNoDeepSpeed) {
  const session::Session session = fsdp_session();
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    space::Configuration best = configuration(stage, 2, true);
    best.set("activation_checkpointing", "full");
    best.set("offload_param", "cpu");
    const result::Export made = exported("accelerate", session, best);
    ASSERT_EQ(made.files.size(), 2U);
    const auto two = jobs::config_values_of(text_of(made, "accelerate_fsdp.yaml"), ".yaml", "two");
    const auto one = jobs::config_values_of(text_of(made, "accelerate_fsdp1.yaml"), ".yaml", "one");
    const bool is_sharded = stage > 0;
    EXPECT_EQ(value_of(two, "distributed_type"), is_sharded ? "FSDP" : "MULTI_GPU");
    EXPECT_EQ(value_of(two, "fsdp_config.fsdp_version"), is_sharded ? "2" : "absent");
    EXPECT_EQ(value_of(two, "fsdp_config.fsdp_reshard_after_forward"),
              !is_sharded ? "absent" : (stage == 3 ? "true" : "false"));
    EXPECT_EQ(value_of(one, "distributed_type"), "FSDP");
    EXPECT_EQ(value_of(one, "fsdp_config.fsdp_version"), "1");
    const char* const strategies[] = {"NO_SHARD", "SHARD_GRAD_OP", "SHARD_GRAD_OP", "FULL_SHARD"};
    EXPECT_EQ(value_of(one, "fsdp_config.fsdp_sharding_strategy"), strategies[stage]);
    for (const char* key : {"fsdp_config.fsdp_activation_checkpointing", "fsdp_config.fsdp_offload_params"}) {
      EXPECT_EQ(value_of(one, key), "true");
    }
    EXPECT_EQ(value_of(two, "mixed_precision"), "bf16");
    EXPECT_EQ(value_of(two, "num_machines"), "2");
    EXPECT_EQ(value_of(two, "num_processes"), "8");
    EXPECT_EQ(why(made, "accelerate_fsdp.yaml", "zero_stage").empty(), stage != 1);
    EXPECT_EQ(text_of(made, "accelerate_fsdp.yaml").find("was not measured"), std::string::npos);
  }
}

TEST(AccelerateOfFsdp, SplitsTensorsInVersionTwoAloneAndPrefetchesInVersionOneAlone) {
  const session::Session session = fsdp_session();
  space::Configuration best = configuration(3, 2, false);
  best.set("tensor_parallel", std::int64_t{2});
  best.set("fsdp_forward_prefetch", true);
  const result::Export made = exported("accelerate", session, best);
  const auto two = jobs::config_values_of(text_of(made, "accelerate_fsdp.yaml"), ".yaml", "two");
  const auto one = jobs::config_values_of(text_of(made, "accelerate_fsdp1.yaml"), ".yaml", "one");
  EXPECT_EQ(value_of(two, "parallelism_config.parallelism_config_tp_size"), "2");
  EXPECT_EQ(value_of(two, "parallelism_config.parallelism_config_dp_shard_size"), "4");
  EXPECT_EQ(value_of(one, "parallelism_config.parallelism_config_tp_size"), "absent");
  EXPECT_EQ(value_of(one, "fsdp_config.fsdp_forward_prefetch"), "true");
  EXPECT_EQ(value_of(one, "fsdp_config.fsdp_backward_prefetch"), "NO_PREFETCH");
  EXPECT_EQ(why(made, "accelerate_fsdp.yaml", "tensor_parallel"), "");
  EXPECT_EQ(why(made, "accelerate_fsdp1.yaml", "tensor_parallel"), "it takes FSDP version 2");
  EXPECT_EQ(why(made, "accelerate_fsdp.yaml", "fsdp_forward_prefetch"), "FSDP 2 has no such switch");
  EXPECT_EQ(why(made, "accelerate_fsdp1.yaml", "fsdp_forward_prefetch"), "");
  EXPECT_EQ(why(made, "accelerate_fsdp.yaml", "overlap_comm"), "FSDP 2 always overlaps");
}

// The command does not state the model's sizes.
TEST(AccelerateOfFsdp, IsFsdpByTheRecipeWhereThereIsNoWorkload) {
  session::Session session;
  runner::CommandSpec command;
  command.recipe = "accelerate";
  session.runner = command;
  const result::Export made = exported("accelerate", session, configuration(3, 2, true));
  const auto two = jobs::config_values_of(text_of(made, "accelerate_fsdp.yaml"), ".yaml", "two");
  EXPECT_EQ(value_of(two, "fsdp_config.fsdp_reshard_after_forward"), "true");
  EXPECT_EQ(value_of(two, "mixed_precision"), "absent");
}

TEST(ExportsByRecipe, SayThatTheyAreTranslatedUnlessTrialsRanWithTheProgram) {
  const session::Session session = fsdp_session();
  for (const auto& [format, file] : {std::pair("megatron", "megatron_args.sh"), {"torchtitan", "torchtitan.toml"}}) {
    session::Session own = session;
    runner::CommandSpec command;
    command.recipe = format;
    own.runner = command;
    for (const bool is_own : {true, false}) {
      const result::Export made = exported(format, is_own ? own : session, configuration(0, 2, true));
      EXPECT_EQ(text_of(made, file).find("; translated: no trial ran with this program.") == std::string::npos, is_own);
      EXPECT_EQ(made.files.front().use.find("; translated:") == std::string::npos, is_own) << format;
    }
  }
}

TEST(Torchtitan, SaysInItsFileAndInItsFlagsWhatWasTuned) {
  const session::Session session = fsdp_session();
  space::Configuration best = configuration(2, 2, true);
  best.set("tensor_parallel", std::int64_t{2});
  best.set("activation_checkpointing", "full");
  best.set("offload_optimizer", "cpu");
  const result::Export made = exported("torchtitan", session, best);
  const auto values = jobs::config_values_of(text_of(made, "torchtitan.toml"), ".toml", "written");
  const std::map<std::string, std::string> expected = {
      {"training.local_batch_size", "2"},
      {"training.global_batch_size", "16"},  // 2 sequences on 8 / 2 ranks, 2 micro-steps
      {"training.enable_cpu_offload", "true"},
      {"parallelism.tensor_parallel_degree", "2"},
      {"parallelism.data_parallel_replicate_degree", "1"},
      {"parallelism.data_parallel_shard_degree", "4"},
      {"parallelism.fsdp_reshard_after_forward", "never"},
      {"activation_checkpoint.mode", "full"}};
  EXPECT_EQ(values.size(), expected.size());
  for (const auto& [key, value] : expected) EXPECT_EQ(value_of(values, key), value) << key;
  const std::vector<std::string> flags = words_in(text_of(made, "torchtitan_flags.txt"));
  EXPECT_EQ(flags.back(), "activation_checkpoint:full") << "any flag after it is an error there";
  const jobs::OwnValues read =
      read_back("torchtitan", {"torchrun", "--nproc_per_node", "8", "-m", "torchtitan.train"}, flags, 8);
  for (const char* name : {"zero_stage", "micro_batch", "tensor_parallel", "activation_checkpointing",
                           "offload_optimizer", "gradient_accumulation_steps"}) {
    const space::Value* value = read.configuration.find(name);
    ASSERT_NE(value, nullptr) << name;
    EXPECT_TRUE(space::same_value(*value, *best.find(name))) << name << " " << space::to_string(*value);
  }
  EXPECT_EQ(read.train_batch_size, 16);
  EXPECT_NE(why(made, "torchtitan.toml", "reduce_bucket_size"), "");
  EXPECT_EQ(made.omissions.size(), 1U);
}

TEST(Torchtitan, ReplicatesInStageZeroAndSaysThatThereIsNoStageOne) {
  const session::Session session = fsdp_session();
  const result::Export zero = exported("torchtitan", session, configuration(0, 2, true));
  const auto replicated = jobs::config_values_of(text_of(zero, "torchtitan.toml"), ".toml", "written");
  EXPECT_EQ(value_of(replicated, "parallelism.data_parallel_replicate_degree"), "8");
  EXPECT_EQ(value_of(replicated, "parallelism.data_parallel_shard_degree"), "1");
  EXPECT_EQ(value_of(replicated, "parallelism.fsdp_reshard_after_forward"), "absent");
  space::Configuration kept = configuration(3, 2, true);
  kept.set("offload_optimizer", "none");
  EXPECT_NE(text_of(exported("torchtitan", session, kept), "torchtitan.toml")
                .find("# not to be in it: training.enable_cpu_offload\n"),
            std::string::npos);
  EXPECT_EQ(why(zero, "torchtitan.toml", "zero_stage"), "");
  const result::Export one = exported("torchtitan", session, configuration(1, 2, true));
  const auto nearest = jobs::config_values_of(text_of(one, "torchtitan.toml"), ".toml", "written");
  EXPECT_EQ(value_of(nearest, "parallelism.fsdp_reshard_after_forward"), "never");
  EXPECT_NE(why(one, "torchtitan.toml", "zero_stage").find("it is stage 2"), std::string::npos);
  EXPECT_NE(why(exported("torchtitan", session, configuration(3, 2, false)), "torchtitan.toml", "overlap_comm"), "")
      << "it always overlaps";
}

// Two ranks share a sequence, and two a layer, so of eight ranks two have a micro-batch of their own.
TEST(JobFiles, CountRanksThatShareASequenceOnce) {
  const session::Session session = fsdp_session();
  space::Configuration best = configuration(3, 2, true);
  best.set("tensor_parallel", std::int64_t{2});
  best.set("context_parallel", std::int64_t{2});
  const std::int64_t batch = 2 * 2 * 2;  // micro-batch, ranks, micro-steps
  const result::Export titan = exported("torchtitan", session, best);
  const auto file = jobs::config_values_of(text_of(titan, "torchtitan.toml"), ".toml", "written");
  EXPECT_EQ(value_of(file, "parallelism.data_parallel_shard_degree"), "2");
  EXPECT_EQ(value_of(file, "training.global_batch_size"), std::to_string(batch));
  const jobs::OwnValues read = read_back("torchtitan", {"torchrun", "--nproc_per_node", "8", "-m", "torchtitan.train"},
                                         words_in(text_of(titan, "torchtitan_flags.txt")), 8);
  EXPECT_EQ(read.train_batch_size, batch);
  EXPECT_EQ(read.configuration.integer("gradient_accumulation_steps", 0), 2);
  const result::Export accelerate = exported("accelerate", session, best);
  const auto two = jobs::config_values_of(text_of(accelerate, "accelerate_fsdp.yaml"), ".yaml", "two");
  EXPECT_EQ(value_of(two, "parallelism_config.parallelism_config_dp_shard_size"), "2");
  EXPECT_EQ(value_of(two, "parallelism_config.parallelism_config_cp_size"), "2");
  EXPECT_EQ(why(accelerate, "accelerate_fsdp1.yaml", "context_parallel"), "it takes FSDP version 2");
}

TEST(Torchtitan, SaysWhatItDoesByItselfOnlyWhereItIsToBeOtherwise) {
  const session::Session session = fsdp_session();
  space::Configuration best = configuration(3, 2, true);
  best.set("tensor_parallel", std::int64_t{2});
  best.set("pipeline_parallel", std::int64_t{2});
  for (const bool splits : {true, false}) {
    best.set("sequence_parallel", splits);
    const result::Export made = exported("torchtitan", session, best);
    const std::string flags = text_of(made, "torchtitan_flags.txt");
    EXPECT_EQ(flags.find("--parallelism.no-enable_sequence_parallel") == std::string::npos, splits) << flags;
    EXPECT_EQ(why(made, "torchtitan.toml", "sequence_parallel").empty(), splits);
    EXPECT_NE(flags.find("--training.disable_cuda_graphs"), std::string::npos) << "they refuse pipeline stages";
  }
  best.set("pipeline_schedule", "zb-v");
  const result::Export made = exported("torchtitan", session, best);
  const std::string file = text_of(made, "torchtitan.toml");
  EXPECT_NE(file.find("pipeline_parallel_degree = 2\n"), std::string::npos) << file;
  EXPECT_NE(file.find("pipeline_parallel_schedule = \"ZBVZeroBubble\"\n"), std::string::npos) << file;
  EXPECT_EQ(why(made, "torchtitan.toml", "pipeline_schedule"), "");
  best.set("pipeline_schedule", "zb-h2");
  EXPECT_NE(why(exported("torchtitan", session, best), "torchtitan.toml", "pipeline_schedule"), "");
}

// Returns the words of KRIGTUNE_ARGS=(...).
std::vector<std::string> array_in(const std::string& text) {
  const std::size_t begin = text.find("KRIGTUNE_ARGS=(") + 15;
  return words_in(text.substr(begin, text.find("\n)\n") - begin));
}

TEST(Megatron, IsReadBackAsTheSameConfiguration) {
  const session::Session session = fsdp_session();
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    space::Configuration best = configuration(stage, 2, stage < 2);
    best.set("tensor_parallel", std::int64_t{2});
    best.set("pipeline_parallel", std::int64_t{2});
    best.set("sequence_parallel", true);
    best.set("activation_checkpointing", "selective");
    const result::Export made = exported("megatron", session, best);
    const std::string text = text_of(made, "megatron_args.sh");
    const jobs::OwnValues read =
        read_back("megatron", {"torchrun", "--nproc_per_node", "8", "pretrain_gpt.py"}, array_in(text), 8);
    for (const char* name : {"zero_stage", "micro_batch", "tensor_parallel", "pipeline_parallel", "sequence_parallel",
                             "activation_checkpointing", "overlap_comm", "gradient_accumulation_steps"}) {
      const space::Value* value = read.configuration.find(name);
      ASSERT_NE(value, nullptr) << name << text;
      EXPECT_TRUE(space::same_value(*value, *best.find(name))) << name << " in " << text;
    }
    EXPECT_EQ(read.train_batch_size, 2 * 2 * 2);  // sequences, data-parallel ranks, micro-steps
    const bool sets_connections = text.find("export CUDA_DEVICE_MAX_CONNECTIONS=1\n") != std::string::npos;
    EXPECT_EQ(sets_connections, stage < 2) << "Megatron-FSDP must not have it: " << text;
    EXPECT_EQ(why(made, "megatron_args.sh", "reduce_bucket_size").empty(), stage < 2);
  }
}

TEST(Megatron, LeavesOutWhatHasNoEffectAndSaysWhatUndoesTheUsersOwn) {
  const session::Session session = fsdp_session();
  space::Configuration best = configuration(1, 2, true);
  best.set("tensor_parallel", std::int64_t{1});
  best.set("sequence_parallel", true);
  best.set("activation_checkpointing", "none");
  best.set("context_parallel", std::int64_t{1});
  const std::string text = text_of(exported("megatron", session, best), "megatron_args.sh");
  EXPECT_EQ(text.find("--sequence-parallel"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  --tensor-model-parallel-size 1\n"), std::string::npos)
      << "the last of two flags counts: " << text;
  EXPECT_NE(
      text.find("\n# Not to be in your own command: --recompute-granularity --recompute-method --recompute-num-layers "
                "--recompute-activations\n"),
      std::string::npos)
      << "no flag undoes them: " << text;
  EXPECT_TRUE(exported("deepspeed", session, best).omissions.empty());
}

TEST(Megatron, SaysWhatItHasNoFlagFor) {
  const session::Session session = fsdp_session();
  space::Configuration best = configuration(3, 2, true);
  best.set("stage3_prefetch_bucket_size", std::int64_t{1000});
  best.set("activation_checkpointing_layers", std::int64_t{1});
  best.set("workers", std::int64_t{4});
  const result::Export made = exported("megatron", session, best);
  EXPECT_EQ(why(made, "megatron_args.sh", "stage3_prefetch_bucket_size"), "megatron has no such setting");
  EXPECT_NE(why(made, "megatron_args.sh", "workers").find("cmd_optimal.txt"), std::string::npos);
  EXPECT_EQ(why(made, "megatron_args.sh", "activation_checkpointing_layers"), "") << "it asks for nothing";
  EXPECT_EQ(why(made, "megatron_args.sh", "gradient_accumulation_steps"), "") << "the global batch says it";
}

TEST(JobFiles, AreRefusedWhereNobodyKnowsWhatNamesMean) {
  session::Session session;
  session.runner = runner::ReplaySpec();
  for (const char* format : {"torchtitan", "megatron"}) {
    const std::string refused = user_error_of([&] { exported(format, session, configuration(3, 2, true)); });
    EXPECT_NE(refused.find("the session has no workload"), std::string::npos) << refused;
  }
}

}  // namespace krigtune::export_jobs_test
