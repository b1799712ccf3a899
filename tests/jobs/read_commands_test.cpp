// What is read of commands as public scripts have them: ranks, the batch, the model and how it is trained.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/text.h"
#include "jobs/recipe/recipe.h"
#include "jobs/session/job_session.h"
#include "trial/temporary_directory.h"
#include "words.h"

namespace krigtune::read_commands_test {
namespace {

struct File {
  std::string name;
  std::string text;
};

class Directory {
 public:
  explicit Directory(const std::vector<File>& files) {
    for (const File& file : files) directory_.write(file.name, file.text);
  }

  jobs::JobSession session_of(const std::string& line) const {
    jobs::JobRequest request;
    request.command = words_of(line);
    request.directory = directory_.path();
    request.find_gpus = [] { return workload::NodeGpus{}; };
    return jobs::session_of_job(request);
  }

  const session::Session& session(const std::string& line) {
    made_ = session_of(line);
    return made_.session;
  }

 private:
  TemporaryDirectory directory_;
  jobs::JobSession made_;
};

std::string not_modelled_in(const session::Session& session) {
  return session.workload ? join(session.workload->caveats.not_modelled, "; ") : "no workload";
}

bool names(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

std::int64_t own_value(const session::Session& session, const char* name) {
  const space::Value* value = session.baseline ? session.baseline->find(name) : nullptr;
  return value == nullptr ? 0 : space::integer_of(*value).value_or(0);
}

const std::string kFactory =
    "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\nlora_rank: 64\nlora_target: q_proj,v_proj\n"
    "cutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\n";
const std::string kAxolotl =
    "base_model: Qwen/Qwen3-8B\nsequence_len: 2048\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\n";

// Keys of files were not read: LLaMA-Factory's rank was always 8, and Axolotl's adapters were never planned.
TEST(ReadCommands, AdaptersOfFilesAreRead) {
  Directory directory({{"lf.yaml", kFactory},
                       {"ax.yml", kAxolotl + "adapter: qlora\nload_in_4bit: true\nlora_r: 32\nlora_target_modules:\n"
                                             "  - q_proj\n  - k_proj\n"}});
  const auto training = [&](const std::string& line) {
    const session::Session& made = directory.session(line);
    const Json json = workload::to_json(*made.workload);
    return json.contains("training") ? json["training"].dump() : std::string("all");
  };
  EXPECT_EQ(training("llamafactory-cli train lf.yaml"),
            R"({"lora":{"rank":64,"targets":["q","v"],"dropout":0},"base":"model"})");
  EXPECT_EQ(training("llamafactory-cli train lf.yaml lora_rank=16"),
            R"({"lora":{"rank":16,"targets":["q","v"],"dropout":0},"base":"model"})");
  EXPECT_EQ(training("axolotl train ax.yml"),
            R"({"lora":{"rank":32,"targets":["q","k"],"dropout":0},"base":"nf4-double"})");
}

TEST(ReadCommands, AScriptsOwnNamesOfAdaptersAndQuantisedWeightsAreRead) {
  Directory directory({});
  const auto training = [&](const std::string& words) {
    const session::Session& made = directory.session(
        "python train.py --model_name_or_path meta-llama/Llama-3.1-8B --output_dir o --bf16 True "
        "--max_length 2048 --per_device_train_batch_size 2 --lora_target_modules all-linear " +
        words);
    const Json json = workload::to_json(*made.workload);
    return json.contains("training") ? json["training"].dump() : std::string("all");
  };
  EXPECT_TRUE(names(training("--use_peft_lora True --lora_r 16 --use_4bit_quantization True --use_nested_quant True"),
                    R"("base":"nf4-double")"));
  EXPECT_TRUE(names(training("--use_peft_lora True --lora_r 16 --use_8bit_quantization True"), R"("base":"int8")"));
  EXPECT_TRUE(names(training("--use_peft_lora True --lora_r 16 --use_4bit_quantization False"), R"("rank":16)"));
}

// Launchers that take all visible GPUs.
TEST(ReadCommands, VisibleDevicesBeforeTheCommandAreItsRanks) {
  Directory directory({{"lf.yaml", kFactory}});
  EXPECT_EQ(directory.session("CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train lf.yaml").cluster.ranks(), 2);
  EXPECT_EQ(directory.session("CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train lf.yaml").workload->train_batch_size,
            16);
  EXPECT_EQ(directory.session("env CUDA_VISIBLE_DEVICES=2 llamafactory-cli train lf.yaml").cluster.ranks(), 1);
}

// Ranks that share a sequence or a layer are no data-parallel ones.
TEST(ReadCommands, ParallelSizesOfFilesDivideTheBatch) {
  Directory directory(
      {{"mca.yaml",
        "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\ncutoff_len: 4096\n"
        "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\ntensor_model_parallel_size: 1\n"
        "pipeline_model_parallel_size: 4\nuse_distributed_optimizer: true\nrecompute_granularity: full\n"},
       {"ax.yml", kAxolotl + "dp_shard_size: 2\ncontext_parallel_size: 2\ntensor_parallel_size: 2\nfsdp_version: 2\n"
                             "fsdp_config:\n  reshard_after_forward: true\n"},
       {"cp.yaml",
        "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\nfsdp_config:\n"
        "  fsdp_version: 2\nparallelism_config:\n  parallelism_config_cp_size: 2\n"}});
  const session::Session& pipeline =
      directory.session("FORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli train mca.yaml");
  EXPECT_EQ(pipeline.workload->train_batch_size, 16);
  EXPECT_EQ(own_value(pipeline, "pipeline_parallel"), 4);
  const session::Session& split = directory.session("accelerate launch --num_processes 8 -m axolotl.cli.train ax.yml");
  EXPECT_EQ(split.workload->train_batch_size, 16);
  EXPECT_EQ(own_value(split, "context_parallel"), 2);
  EXPECT_FALSE(names(not_modelled_in(split), "share a sequence")) << not_modelled_in(split);
  const session::Session& shared = directory.session(
      "accelerate launch --config_file cp.yaml sft.py --model_name_or_path Qwen/Qwen3-8B --output_dir o "
      "--max_length 8192 --per_device_train_batch_size 1 --gradient_accumulation_steps 4");
  EXPECT_EQ(shared.workload->train_batch_size, 8);
  EXPECT_EQ(own_value(shared, "context_parallel"), 2);
}

TEST(ReadCommands, WhatIsTrainedOtherwiseIsNamed) {
  Directory directory({{"galore.yaml", kFactory + "use_galore: true\n"},
                       {"fp8.yaml", kFactory + "fp8: true\nfp8_backend: torchao\n"},
                       {"fsdp.yaml", kFactory + "fsdp:\n  - full_shard\n  - auto_wrap\n"},
                       {"shard.yaml", kFactory + "fsdp: shard_grad_op auto_wrap\n"},
                       {"dpo.yml", kAxolotl + "rl: dpo\n"},
                       {"grpo.yml", kAxolotl + "rl: grpo\n"}});
  const auto said = [&](const std::string& line) { return not_modelled_in(directory.session(line)); };
  const std::string trl = " --model_name_or_path Qwen/Qwen3-0.6B --output_dir o --per_device_train_batch_size 8 --bf16";
  EXPECT_TRUE(names(said("llamafactory-cli train galore.yaml"), "another optimizer than AdamW (use_galore)"));
  EXPECT_EQ(workload::precision_word(*directory.session("llamafactory-cli train fp8.yaml").workload), "fp8-tensorwise");
  EXPECT_EQ(own_value(directory.session("llamafactory-cli train fp8.yaml"), "zero_stage"), 0);
  EXPECT_EQ(own_value(directory.session("llamafactory-cli train fsdp.yaml"), "zero_stage"), 3);
  EXPECT_EQ(own_value(directory.session("llamafactory-cli train shard.yaml"), "zero_stage"), 2);
  EXPECT_TRUE(names(said("axolotl train dpo.yml"), "pairs of answers"));
  EXPECT_TRUE(names(said("axolotl train grpo.yml"), "sampled answers"));
  EXPECT_TRUE(names(said("python examples/scripts/gspo.py" + trl), "sampled answers"));
  EXPECT_TRUE(names(said("python train.py --num_generations 8" + trl), "sampled answers"));
  EXPECT_TRUE(names(said("python reward_modeling.py" + trl), "pairs of answers"));
  EXPECT_TRUE(names(said("python kto.py" + trl), "a second model"));
  EXPECT_FALSE(names(said("python sft.py" + trl), "answers"));
}

const std::string kMegatron =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 "
    "--ffn-hidden-size 2048 --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 --bf16 ";

TEST(ReadCommands, MegatronsVocabularyFollowsFromTheTokenizersFile) {
  Directory directory({});
  const auto vocabulary = [&](const std::string& words) {
    return directory.session(kMegatron + words).workload->model.vocab;
  };
  EXPECT_EQ(vocabulary("--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model utils/nemotron_2_256k.model"),
            256000);
  EXPECT_EQ(vocabulary("--vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt"), 50304);
  EXPECT_EQ(vocabulary("--tokenizer-model bank.model"), 128256) << "'k' is no number";
}

TEST(ReadCommands, MegatronsGatedUnitsAndLayersWithoutExpertsCount) {
  Directory directory({});
  EXPECT_TRUE(directory.session(kMegatron + "--quick-geglu").workload->model.gated_mlp);
  EXPECT_FALSE(directory.session(kMegatron).workload->model.gated_mlp);
  const std::string experts = kMegatron + "--num-experts 16 --moe-router-topk 2 --moe-layer-freq ";
  const session::Session planned = directory.session(experts + "([0]*3+[1]*9)");
  EXPECT_EQ(planned.workload->model.experts.dense_layers, 3);
  EXPECT_FALSE(names(not_modelled_in(planned), "--moe-layer-freq"));
  EXPECT_TRUE(names(not_modelled_in(directory.session(experts + "2")), "--moe-layer-freq"));
  EXPECT_TRUE(names(not_modelled_in(directory.session(kMegatron + "--perform-rl-step --grpo-group-size 16")),
                    "sampled within a step"));
}

// Megatron-LM says the stages of a pipeline rank themselves, or the layers of each.
TEST(ReadCommands, MegatronsStagesOfAPipelineRankAreRead) {
  Directory directory({});
  const auto stages = [&](const std::string& words) {
    return own_value(directory.session(kMegatron + "--pipeline-model-parallel-size 2 " + words), "virtual_pipeline");
  };
  EXPECT_EQ(stages(""), 1);
  EXPECT_EQ(stages("--num-virtual-stages-per-pipeline-rank 3"), 3);
  EXPECT_EQ(stages("--num-layers-per-virtual-pipeline-stage 2"), 3) << "12 layers on 2 ranks, in twos";
  EXPECT_EQ(stages("--num-layers-per-virtual-pipeline-stage 6"), 1);
  EXPECT_EQ(stages("--num-layers 10 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split "
                   "--num-layers-per-virtual-pipeline-stage 2"),
            3);
  EXPECT_EQ(stages("--num-layers 11 --account-for-loss-in-pipeline-split --num-layers-per-virtual-pipeline-stage 2"),
            3);
  const session::Session& read = directory.session(kMegatron +
                                                   "--pipeline-model-parallel-size 2 "
                                                   "--num-layers-per-virtual-pipeline-stage 2");
  EXPECT_EQ(not_modelled_in(read), "");
  EXPECT_TRUE(names(not_modelled_in(directory.session(kMegatron + "--pipeline-model-parallel-size 2 "
                                                                  "--pipeline-model-parallel-layout Et*6|t*6L")),
                    "stages that a layout lists"));
}

// torchtitan has two stages a rank with the schedules of several, unless layers_per_stage says more.
TEST(ReadCommands, TorchtitansSchedulesOfAPipelineAreRead) {
  Directory directory({});
  const std::string command =
      "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b "
      "--parallelism.pipeline_parallel_degree 4 ";
  const std::string flag = "--parallelism.pipeline_parallel_schedule ";
  const auto schedule = [&](const std::string& words) {
    const session::Session& read = directory.session(command + words);
    const space::Value* value = read.baseline ? read.baseline->find("pipeline_schedule") : nullptr;
    return value == nullptr ? std::string() : space::to_string(*value);
  };
  EXPECT_EQ(schedule(""), "1f1b");
  EXPECT_EQ(schedule(flag + "1F1B"), "1f1b");
  EXPECT_EQ(schedule(flag + "GPipe"), "gpipe");
  EXPECT_EQ(schedule(flag + "ZBVZeroBubble"), "zb-v");
  EXPECT_EQ(schedule(flag + "Interleaved1F1B"), "1f1b");
  EXPECT_EQ(schedule(flag + "InterleavedZeroBubble"), "zb-h1");
  EXPECT_EQ(own_value(directory.session(command + flag + "Interleaved1F1B"), "virtual_pipeline"), 2);
  const std::string large = "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_405b ";
  EXPECT_EQ(own_value(directory.session(large +
                                        "--parallelism.tensor_parallel_degree 1 "
                                        "--parallelism.pipeline_parallel_degree 8 "
                                        "--parallelism.pipeline_parallel_layers_per_stage 2 " +
                                        flag + "InterleavedZeroBubble"),
                      "virtual_pipeline"),
            8)
      << "126 layers, and one each for embedding and head";
  EXPECT_EQ(schedule(flag + "DualPipeV"), "dualpipe-v");
  EXPECT_TRUE(names(not_modelled_in(directory.session(command + flag + "LoopedBFS")), "another schedule"));
  for (const char* known : {"ZBVZeroBubble", "DualPipeV"})
    EXPECT_FALSE(names(not_modelled_in(directory.session(command + flag + known)), "another schedule")) << known;
}

TEST(ReadCommands, ScriptsAreRecognisedByWhatTheySay) {
  const auto recipe_of = [](const std::string& line) {
    const jobs::Recipe* found = jobs::recognise(words_of(line), jobs::shipped_recipes());
    return found == nullptr ? std::string() : found->name;
  };
  EXPECT_EQ(recipe_of("accelerate launch sft_vlm.py --model_name_or_path llava-hf/llava-1.5-7b-hf --output_dir o "
                      "--dataset_name d --gradient_accumulation_steps 8 --dtype bfloat16"),
            "hf-trainer");
  // Newer Trainers have an output directory of their own.
  EXPECT_EQ(recipe_of("accelerate launch run_sft.py --model_name_or_path m --use_peft --optim adamw_8bit "
                      "--gradient_checkpointing --per_device_train_batch_size 2"),
            "hf-trainer");
  EXPECT_EQ(recipe_of("accelerate launch train.py --model_name_or_path m --per_device_train_batch_size 2 "
                      "--gradient_accumulation_steps 4 --block_size 2048"),
            "accelerate")
      << "nanoGPT has block_size and gradient_accumulation_steps too";
  EXPECT_EQ(recipe_of("accelerate launch run_glue_no_trainer.py --model_name_or_path bert-base-cased --task_name mrpc "
                      "--per_device_train_batch_size 32 --output_dir o"),
            "accelerate");
}

TEST(ReadCommands, ConfigurationsOfMixturesThatComeWithAFrameworkAreKnown) {
  Directory directory({});
  const session::Session& titan =
      directory.session("torchrun --nproc_per_node 8 -m torchtitan.train --module gpt_oss --config gpt_oss_20b");
  EXPECT_EQ(titan.workload->model.experts.count, 32);
  EXPECT_EQ(titan.workload->model.seq_len, 8192);
  EXPECT_EQ(titan.workload->train_batch_size, 8);
  const session::Session& tune =
      directory.session("tune run --nnodes 1 --nproc_per_node 4 lora_finetune_distributed --config qwen3/32B_lora");
  EXPECT_EQ(tune.workload->model.layers, 64);
  EXPECT_EQ(tune.workload->train_batch_size, 64);
}

}  // namespace
}  // namespace krigtune::read_commands_test
