// DeepSpeed jobs whose ranks share sequences (Ulysses): batch, memory and time against those of ranks that share none.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "deepspeed/deepspeed_session_fixture.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::deepspeed_session_test {

TEST(SharedSequences, KeepsTheBatchOfRanksThatShareSequences) {
  const char* config =
      R"({"train_batch_size": 16, "zero_optimization": {"stage": [2, 3]}, "sequence_parallel_size": 2})";
  // Whether the model is known or not: two groups of two ranks make 16 sequences of micro-batches and accumulation.
  for (const char* flags : {kSizes, ""}) {
    const deepspeed::DsSession session = made(config, flags);
    EXPECT_EQ(session.json.contains("workload"), *flags != '\0');
    EXPECT_EQ(session.json["fixed"], json(R"({"context_parallel": 2, "context_parallel_kind": "alltoall"})"));
    std::set<std::int64_t> micro;
    read(session).space.for_each([&](const space::Configuration& c) {
      micro.insert(c.integer("micro_batch", 0));
      EXPECT_EQ(c.integer("micro_batch", 0) * c.integer("gradient_accumulation_steps", 0) * 2, 16);
      EXPECT_EQ(c.integer("context_parallel", 0), 2);
      return true;
    });
    EXPECT_EQ(micro, (std::set<std::int64_t>{1, 2, 4, 8})) << flags;
  }
  EXPECT_FALSE(made(R"({"train_batch_size": 16, "sequence_parallel_size": 1})", kSizes).json.contains("fixed"));
}

// Four of eight ranks share a sequence: they keep a quarter of its activations each, shard the states as eight ranks
// do, and two groups of them take 4 times as many micro-steps of one sequence as eight ranks would.
TEST(SharedSequences, PredictsRanksThatShareSequences) {
  const auto read_shared = [](int ranks) {
    const std::string config =
        R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": [1], "bf16": {"enabled": true},
                                   "zero_optimization": {"stage": [3]}, "autotuning": {"arg_mappings": {"activation_checkpointing": "--again"}},
        "sequence_parallel_size": )" +
        std::to_string(ranks) + "}";
    deepspeed::DsSessionInputs inputs = inputs_of(config,
                                                  "--num_layers 4 --hidden_size 4096 --num_attention_heads 32 "
                                                  "--vocab_size 1000 --seq_length 16384",
                                                  8);
    inputs.machine.cluster = workload::read_cluster({{"gpus_per_node", 8}, {"gpu", "a100-80gb"}}, "test", "");
    return read(deepspeed::deepspeed_session(inputs));
  };
  const session::Session alone = read_shared(1);
  const session::Session shared = read_shared(4);
  ASSERT_TRUE(alone.workload && shared.workload);
  space::Configuration of_alone = *alone.baseline;
  space::Configuration of_shared = *shared.baseline;
  ASSERT_EQ(alone.space.complete(of_alone), space::Exclusion::kNone);
  ASSERT_EQ(shared.space.complete(of_shared), space::Exclusion::kNone);
  EXPECT_EQ(of_alone.integer("gradient_accumulation_steps", 0), 2);
  EXPECT_EQ(of_shared.integer("gradient_accumulation_steps", 0), 8);

  const auto bytes = [](const session::Session& session, const space::Configuration& of, schedule::Term term) {
    const cost::MemoryModel memory(*session.workload, session.cluster, session.memory);
    return static_cast<double>(memory.estimate(of).term_bytes[static_cast<std::size_t>(term)]);
  };
  using schedule::Term;
  EXPECT_NEAR(bytes(alone, of_alone, Term::kActivations) / bytes(shared, of_shared, Term::kActivations), 4.0, 0.2);
  for (const Term term : {Term::kParameters, Term::kGradients, Term::kOptimizerState})
    EXPECT_EQ(bytes(alone, of_alone, term), bytes(shared, of_shared, term));

  // All ranks together compute as much of the step as before, and exchange heads.
  const auto step = [](const session::Session& session, const space::Configuration& of) {
    return cost::StepCostModel(*session.workload, session.cluster)(of);
  };
  EXPECT_EQ(step(alone, of_alone).context_comm_s, 0.0);
  EXPECT_GT(step(shared, of_shared).context_comm_s, 0.0);
  EXPECT_NEAR(step(shared, of_shared).products_s / step(alone, of_alone).products_s, 1.0, 0.15);
}

// DeepSpeed needs heads that the ranks divide, and gives several ranks the same keys where there are fewer.
TEST(SharedSequences, SaysWhyRanksCannotShareSequences) {
  const auto of = [](int ranks, int sharing, const std::string& more = "") {
    return made(R"({"train_batch_size": 16, "zero_optimization": {"stage": [2, 3]}, "sequence_parallel_size": )" +
                    std::to_string(sharing) + "}",
                std::string(kSizes) + " " + more, ranks);
  };
  const deepspeed::DsSession session = of(12, 3);
  EXPECT_FALSE(session.json.contains("workload"));
  EXPECT_TRUE(says(session,
                   "time and memory are not predicted: 3 ranks share a sequence (sequence_parallel_size): "
                   "context_parallel_kind = alltoall gives each of 3 ranks some of the heads"));
  EXPECT_FALSE(says(session, "--hf-config"));
  EXPECT_GT(read(session).space.count(), 0);
  EXPECT_TRUE(of(8, 4, "--num_key_value_heads 2").json.contains("workload"));
}

TEST(SharedSequences, NamesTheTypeOfSharedGradients) {
  const auto named = [](const std::string& rest) {
    const deepspeed::DsSession session =
        made(R"({"train_batch_size": 16, "bf16": {"enabled": true}, )" + rest + "}", kSizes);
    return session.json["workload"].value("not_modelled", Json::array()).dump();
  };
  const char* const kSharing = R"("sequence_parallel_size": 2)";
  EXPECT_NE(named(kSharing).find("seq_parallel_communication_data_type"), std::string::npos);
  const std::string in_bf16 = std::string(kSharing) + R"(, "seq_parallel_communication_data_type": "bf16")";
  EXPECT_EQ(named(in_bf16).find("seq_parallel_communication_data_type"), std::string::npos);
  EXPECT_EQ(named(R"("steps_per_print": 1)").find("seq_parallel_communication_data_type"), std::string::npos);
  // A script may say it too; only where nothing else does, it is not known what it means.
  const std::string flag = std::string(kSizes) + " --sequence_parallel_size 2";
  const auto of_flag = [&](const char* config) {
    return made(config, flag).json["workload"].value("not_modelled", Json::array()).dump();
  };
  EXPECT_EQ(of_flag(R"({"train_batch_size": 16, "sequence_parallel_size": 2})").find("share a sequence"),
            std::string::npos);
  EXPECT_NE(of_flag(R"({"train_batch_size": 16})").find("share a sequence"), std::string::npos);
}

// Accelerate tells DeepSpeed what its own launcher is told (Accelerate 1.15: accelerator.py, _prepare_deepspeed).
TEST(SharedSequences, TakesFromAccelerateHowManyRanksShareASequence) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "sp.yaml";
  std::ofstream(file) << "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
                         "num_processes: 8\nparallelism_config:\n  parallelism_config_sp_size: 4\n"
                         "  parallelism_config_sp_backend: deepspeed\n";
  const auto with = [&](const char* config, const std::string& flags) {
    deepspeed::DsSessionInputs inputs = inputs_of(config, "", 8);
    inputs.command = deepspeed::read_ds_command(
        words_of("accelerate launch --config_file " + file.string() + " " + flags + " train.py " + kSizes));
    return deepspeed::deepspeed_session(inputs).json;
  };
  const char* kConfig = R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})";
  EXPECT_EQ(with(kConfig, "")["fixed"], json(R"({"context_parallel": 4, "context_parallel_kind": "alltoall"})"));
  EXPECT_EQ(with(kConfig, "")["workload"]["train_batch_size"], 16);  // of two groups
  EXPECT_EQ(with(kConfig, "--parallelism-config-sp-size 2")["workload"]["train_batch_size"], 32);
  EXPECT_EQ(with(kConfig, "--parallelism_config_sp_size=1")["workload"]["train_batch_size"], 64);
  const std::string both =
      user_error_of([&] { with(R"({"train_micro_batch_size_per_gpu": 2, "sequence_parallel_size": 2})", ""); });
  EXPECT_NE(both.find("/sequence_parallel_size: 2 ranks share a sequence, but 4 in the command"), std::string::npos)
      << both;
}

}  // namespace krigtune::deepspeed_session_test
