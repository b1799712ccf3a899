// What predictions of a command assume, and what they do not contain.
#include "jobs/recipe/caveats.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "jobs/session/job_session.h"
#include "session/memory_filter.h"
#include "trial/temporary_directory.h"
#include "user_error.h"
#include "words.h"

namespace krigtune::caveats_test {

struct Said {
  std::string assumed;
  std::string not_modelled;
};

jobs::JobSession session_of(const std::string& line) {
  jobs::JobRequest request;
  request.command = words_of(line);
  static const TemporaryDirectory kDirectory;
  request.directory = kDirectory.path();
  request.find_gpus = [] { return workload::NodeGpus{}; };
  return jobs::session_of_job(request);
}

Said said_of(const std::string& line) {
  const jobs::JobSession made = session_of(line);
  if (!made.session.workload) return {};
  const workload::Caveats& caveats = made.session.workload->caveats;
  return {join(caveats.assumed, "; "), join(caveats.not_modelled, "; ")};
}

bool names(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

const std::string kMegatron =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --bf16 ";
const std::string kTrainer =
    "torchrun --nproc_per_node 8 sft.py --model_name_or_path meta-llama/Llama-3.1-8B --output_dir o --bf16 "
    "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 ";

// What follows "--" are torchrun's options, and the ranks are theirs.
TEST(Caveats, DoNotNameWhatAxolotlHandsToItsLauncher) {
  const TemporaryDirectory directory;
  directory.write("a.yml", "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 512\nadapter: lora\nlora_r: 8\n");
  jobs::JobRequest request;
  request.command = words_of("axolotl train a.yml --launcher torchrun -- --nproc_per_node=2");
  request.directory = directory.path();
  request.find_gpus = [] { return workload::NodeGpus{}; };
  const jobs::JobSession made = jobs::session_of_job(request);
  ASSERT_TRUE(made.session.workload);
  const std::string assumed = join(made.session.workload->caveats.assumed, "; ");
  for (const char* word : {"--launcher", "--,", "--nproc_per_node"}) EXPECT_FALSE(names(assumed, word)) << assumed;
  EXPECT_EQ(made.session.cluster.ranks(), 2);
}

TEST(Caveats, NameWhatMattersAndIsNotModelled) {
  const std::string megatron =
      said_of(kMegatron +
              "--vocab-size 32000 --num-experts 8 --moe-router-topk 2 "
              "--expert-model-parallel-size 8 --moe-expert-capacity-factor 1.25 --fp8-format hybrid --fp8-param-gather "
              "--pipeline-model-parallel-size 4 "
              "--pipeline-model-parallel-layout Et*8|t*8|t*8|t*8L "
              "--optimizer soap")
          .not_modelled;
  for (const char* word :
       {"tokens that experts drop", "a layout lists", "gathered in 8 or 4 bits", "another optimizer"})
    EXPECT_TRUE(names(megatron, word)) << word << ": " << megatron;
  const std::string trainer = said_of(kTrainer +
                                      "--max_length 4096 --use_dora --peft_type prefix --load_in_4bit "
                                      "--optim galore_adamw_layerwise_4bit --packing True")
                                  .not_modelled;
  for (const char* word : {"adapters", "quantised"}) EXPECT_TRUE(names(trainer, word)) << word << ": " << trainer;
}

// Memory excludes configurations all the same.
TEST(Caveats, OfTimeAloneAreApart) {
  const jobs::JobSession made = session_of(kMegatron + "--vocab-size 32000 --num-experts 8 --moe-router-topk 2");
  const workload::Caveats& caveats = made.session.workload->caveats;
  EXPECT_TRUE(caveats.not_modelled.empty()) << join(caveats.not_modelled, "; ");
  EXPECT_TRUE(names(join(caveats.also_not_modelled, "; "), "without --moe-grouped-gemm): more time"));
}

TEST(Caveats, HowExpertsComputeIsReadFromMegatronsFlags) {
  const auto training = [](const std::string& flags) {
    return session_of(kMegatron + "--vocab-size 32000 --num-experts 8 --moe-grouped-gemm " + flags)
        .session.workload->training;
  };
  EXPECT_FALSE(training("").fused_experts);
  EXPECT_TRUE(training("--use-transformer-engine-op-fuser").fused_experts);
  EXPECT_EQ(training("--first-last-layers-bf16 --num-layers-at-end-in-bf16 4").precise.last_layers, 0);  // all are
  EXPECT_EQ(training("--fp8-format e4m3 --first-last-layers-bf16 --num-layers-at-end-in-bf16 4").precise.last_layers,
            4);
}

TEST(Caveats, NamesThatOnlyAnotherRecipeReadsAreUnknown) {
  const std::string own_loop =
      "accelerate launch --num_processes 8 train.py --model_name_or_path meta-llama/Llama-3.1-8B "
      "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --max_length 4096 ";
  const session::Session recomputing = session_of(own_loop + "--gradient_checkpointing").session;
  EXPECT_TRUE(names(recomputing.baseline->text(), "activation_checkpointing=full")) << recomputing.baseline->text();
  const Said unread = said_of(own_loop + "--ddp_bucket_cap_mb 50 --learning_rate 1e-4");
  EXPECT_TRUE(names(unread.assumed, "--ddp_bucket_cap_mb changes neither time nor memory")) << unread.assumed;
  const Said read = said_of(
      "torchrun --nproc_per_node 8 sft.py --model_name_or_path meta-llama/Llama-3.1-8B "
      "--output_dir o --per_device_train_batch_size 2 --ddp_bucket_cap_mb 50");
  EXPECT_FALSE(names(read.assumed, "ddp_bucket_cap_mb")) << read.assumed;
}

TEST(Caveats, LayersOfFurtherTokensAreReadFromMegatronsFlags) {
  const auto mtp = [](const std::string& flags) {
    return session_of(kMegatron + "--vocab-size 32000 " + flags).session.workload->model.mtp;
  };
  EXPECT_EQ(mtp(""), workload::MtpSpec{});
  EXPECT_EQ(mtp("--mtp-num-layers 1"), (workload::MtpSpec{1, false, {.attention_mlp = 1}}));
  EXPECT_EQ(mtp("--num-experts 8 --mtp-num-layers 2 --mtp-use-repeated-layer"),
            (workload::MtpSpec{2, true, {.attention_experts = 1}}));
  EXPECT_EQ(said_of(kMegatron + "--vocab-size 32000 --mtp-num-layers 1").not_modelled, "");
}

TEST(Caveats, OptimizersAndTypesOfTheirStatesAreRead) {
  const auto workload = [](const std::string& line) { return *session_of(line).session.workload; };
  using workload::OptimizerKind;
  const std::string megatron = kMegatron + "--vocab-size 32000 ";
  for (const char* name : {"muon", "dist_muon"}) {
    const workload::Workload muon = workload(megatron + "--optimizer " + name);
    EXPECT_EQ(muon.optimizer, OptimizerKind::kMuon);
    EXPECT_TRUE(muon.caveats.not_modelled.empty());
  }
  EXPECT_EQ(workload(megatron + "--optimizer sgd").optimizer, OptimizerKind::kSgd);
  EXPECT_EQ(workload(kTrainer + "--max_length 4096 --optim sgd").optimizer, OptimizerKind::kSgdPlain);
  EXPECT_EQ(workload(kTrainer + "--max_length 4096 --use_muon").optimizer, OptimizerKind::kMuon);
  const workload::Workload narrow =
      workload(megatron +
               "--use-distributed-optimizer --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype "
               "fp8 --main-grads-dtype bf16");
  using workload::StateType;
  EXPECT_EQ(narrow.training.state_types,
            (workload::StateTypes{StateType::kBf16, StateType::kFp8, StateType::kFp16, StateType::kBf16}));
  EXPECT_TRUE(narrow.caveats.not_modelled.empty());
}

// Products in fewer bits are part of what is predicted.
TEST(Caveats, NarrowProductsAreReadFromFlagsAndFiles) {
  const auto precision = [](const std::string& line) {
    const jobs::JobSession made = session_of(line);
    return made.session.workload ? workload::precision_word(*made.session.workload) : std::string("no workload");
  };
  const std::string megatron = kMegatron + "--vocab-size 32000 ";
  EXPECT_EQ(precision(megatron), "bf16");
  EXPECT_EQ(precision(megatron + "--fp8-format hybrid"), "fp8-delayed");
  EXPECT_EQ(precision(megatron + "--fp8-format e4m3 --fp8-recipe mxfp8"), "mxfp8");
  EXPECT_EQ(precision(megatron + "--fp8-format e4m3 --fp8-recipe blockwise"), "fp8-blockwise");
  EXPECT_EQ(precision(megatron + "--fp4-format e2m1"), "nvfp4");
  EXPECT_EQ(precision("accelerate launch --mixed_precision fp8 --num_processes 8 sft.py --model_name_or_path "
                      "meta-llama/Llama-3.1-8B --output_dir o --per_device_train_batch_size 2 --max_length 4096"),
            "fp8-tensorwise");
  EXPECT_EQ(precision("torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b "
                      "--model.converters float8"),
            "fp8-tensorwise");
}

// LoRA is part of what is predicted. Values after the flag are all read, and what frameworks do without saying it.
TEST(Caveats, AdaptersAreRead) {
  const auto training = [](const std::string& line) {
    const jobs::JobSession made = session_of(line);
    if (!made.session.workload) return std::string("no workload");
    const Json json = workload::to_json(*made.session.workload);
    return json.contains("training") ? json["training"].dump() : std::string("all");
  };
  const std::string trainer = kTrainer + "--max_length 4096 ";
  EXPECT_EQ(training(trainer), "all");
  EXPECT_EQ(training(trainer + "--use_peft False --lora_r 8"), "all");
  EXPECT_EQ(training(trainer + "--use_peft --lora_r 32 --lora_target_modules q_proj k_proj v_proj --load_in_4bit"),
            R"({"lora":{"rank":32,"targets":["q","k","v"],"dropout":0},"base":"nf4"})");
  EXPECT_EQ(training(trainer + "--use_peft --lora_r 32 --lora_target_modules all-linear --lora_dropout 0.1"),
            R"({"lora":{"rank":32,"targets":"all-linear","dropout":0.1},"base":"model"})");
  EXPECT_EQ(training(trainer + "--use_lora True"),
            R"({"lora":{"rank":8,"targets":["q","v"],"dropout":0},"base":"model"})");
  EXPECT_EQ(said_of(trainer + "--use_peft --lora_r 32 --load_in_8bit").not_modelled, "");
  EXPECT_TRUE(names(said_of(trainer + "--use_lora True").assumed, "rank of the adapters 8: the command does not say"));
  EXPECT_TRUE(names(said_of(trainer + "--load_in_4bit").not_modelled, "quantised")) << "without adapters: not read";
  EXPECT_TRUE(names(said_of(trainer + "--use_peft --lora_target_modules magic").not_modelled, "adapters"));
}

// What else the command says of its kernels, its loss and its optimizer is part of what is predicted too.
TEST(Caveats, KernelsLossAndOptimizerAreRead) {
  const auto said = [](const std::string& line) {
    const jobs::JobSession made = session_of(kTrainer + "--max_length 4096 " + line);
    if (!made.session.workload) return std::string("no workload");
    const Json json = workload::to_json(*made.session.workload);
    return json["optimizer"].get<std::string>() + " " + json.value("training", Json::object()).dump() + " " +
           join(made.session.workload->caveats.not_modelled, "; ");
  };
  EXPECT_EQ(said(""), "adamw {} ");
  EXPECT_EQ(said("--optim adamw_torch_fused"), "adamw {} ");
  EXPECT_EQ(said("--optim paged_adamw_8bit"), "adamw8bit {} ");
  EXPECT_EQ(said("--optim adamw_bnb_8bit"), "adamw8bit {} ");
  EXPECT_EQ(said("--optim paged_adamw_32bit"), "adamw {} ");
  EXPECT_EQ(said("--optim lion_32bit"), "lion {} ");
  EXPECT_EQ(said("--optim paged_lion_8bit"), "lion8bit {} ");
  EXPECT_EQ(said("--optim adafactor"), "adafactor {} ");
  for (const char* unread : {"adamw_torch_4bit", "galore_adamw_8bit", "apollo_adamw", "grokadamw"}) {
    EXPECT_EQ(said(std::string("--optim ") + unread),
              "adamw {} another optimizer than AdamW in fp32 (--optim): less memory, mostly");
  }
  EXPECT_EQ(said("--use_liger_kernel"), R"(adamw {"base":"model","kernels":"fused","loss":"fused"} )");
  EXPECT_EQ(said("--use_liger_kernel False"), "adamw {} ");
  EXPECT_EQ(said("--torch_compile True"), R"(adamw {"base":"model","compile":true} )");
  EXPECT_EQ(said("--torch_dtype bfloat16"), R"(adamw {"base":"model","states":"model"} )");
}

TEST(Caveats, AreNotThereForWhatIsModelledOrSwitchedOff) {
  EXPECT_EQ(said_of(kMegatron + "--vocab-size 32000 --train-iters 10 --lr 1e-4 --clip-grad 1.0").not_modelled, "");
  EXPECT_EQ(said_of(kTrainer + "--max_length 4096 --use_peft False --optim adamw_torch_fused --learning_rate 1e-5")
                .not_modelled,
            "");
}

TEST(Caveats, SayWhichWordsNobodyKnows) {
  EXPECT_EQ(said_of(kMegatron + "--vocab-size 32000 --lr 1e-4 --do-magic 3 --more-magic").assumed,
            "--do-magic, --more-magic change neither time nor memory, because krigtune does not know them");
  EXPECT_EQ(said_of(kMegatron + "--vocab-size 32000 --lr 1e-4").assumed, "");
}

TEST(Caveats, SizesThatACommandLeavesOpenAreAssumed) {
  EXPECT_EQ(said_of(kMegatron + "--tokenizer-type GPT2BPETokenizer --vocab-file v.json --merge-file m.txt").assumed,
            "vocabulary of 50304: that of GPT2BPETokenizer, padded to a multiple of 128");
  EXPECT_EQ(said_of(kMegatron + "--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen3-8B").assumed,
            "vocabulary of 151936: that of the tokenizer Qwen/Qwen3-8B");
  EXPECT_TRUE(names(said_of(kMegatron).assumed, "vocabulary of 128256: the command does not say it"));
  const Said open = said_of(kTrainer);
  EXPECT_TRUE(names(open.assumed, "tokens of a sequence: 2048: the command does not say it")) << open.assumed;
  EXPECT_TRUE(names(open.not_modelled, "the real length of sequences")) << open.not_modelled;
  EXPECT_EQ(session_of(kTrainer + "--model_max_length 512").session.workload->model.seq_len, 512);
}

std::string variables_text(const std::string& line) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : jobs::variables_of(jobs::read_command(words_of(line))))
    texts.push_back(name + "=" + value);
  return join(texts, " ");
}

TEST(Caveats, VariablesAreReadWhereACommandSetsThem) {
  EXPECT_EQ(variables_text("A=1 B=2 torchrun t.py --x C=3 lr=4"), "A=1 B=2");
  EXPECT_EQ(variables_text("srun -N 2 env -u X A=1 torchrun --rdzv_conf timeout=900 t.py"), "A=1");
  EXPECT_EQ(variables_text("mpirun -n 8 -x NCCL_IB_DISABLE=1 -x PATH python t.py"), "NCCL_IB_DISABLE=1");
  EXPECT_EQ(variables_text("srun --export=ALL,NCCL_IB_HCA=mlx5_0,mlx5_1,A=1 python t.py"),
            "NCCL_IB_HCA=mlx5_0,mlx5_1 A=1");
  EXPECT_EQ(variables_text("env A=1 llamafactory-cli train a.yaml b=2"), "A=1");
}

TEST(Caveats, VariablesAreSortedAsFlagsAre) {
  for (const std::string before : {"NCCL_ALGO=Ring WANDB_MODE=offline MY_VAR=1 ", "env NCCL_ALGO=Ring MY_VAR=1 "}) {
    const workload::Caveats caveats = session_of(before + kTrainer + "--max_length 4096").session.workload->caveats;
    EXPECT_TRUE(caveats.not_modelled.empty()) << before;
    EXPECT_EQ(join(caveats.also_not_modelled, "; "), "NCCL_ALGO=Ring: other times of collectives") << before;
    EXPECT_EQ(caveats.assumed.back(), "MY_VAR changes neither time nor memory, because krigtune does not know it")
        << before;
  }
  EXPECT_TRUE(session_of(kMegatron + "--vocab-size 32000").session.workload->caveats.also_not_modelled.empty())
      << "the recipe's own";
  EXPECT_EQ(session_of("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True " + kMegatron + "--vocab-size 32000")
                .session.workload->caveats.also_not_modelled.size(),
            1U);
}

// Megatron-LM computes the width of a gated MLP itself (arguments.py).
TEST(Caveats, AGatedMlpOfMegatronHasItsOwnWidth) {
  EXPECT_EQ(session_of(kMegatron + "--swiglu --vocab-size 32000").session.workload->model.ffn_hidden, 10880);
  EXPECT_EQ(session_of(kMegatron + "--vocab-size 32000").session.workload->model.ffn_hidden, 16384);
  const std::string exact =
      "--swiglu --vocab-size 32000 --hidden-size 3072 --num-attention-heads 24";  // 8/3 of it: 8192
  EXPECT_EQ(session_of(kMegatron + exact).session.workload->model.ffn_hidden, 8192);
}

// Of a script's own flags those are taken whose names say what they are; that is said, and the sequences of a step stay
// open where nothing says the accumulation.
TEST(Caveats, AScriptsOwnBatchSizeIsAssumedToBeThatOfARank) {
  const std::string line =
      "accelerate launch --num_processes 8 --mixed_precision bf16 train.py --model_id Qwen/Qwen2.5-1.5B --seq_len "
      "1024 ";
  const jobs::JobSession open = session_of(line + "--batch_size 4");
  EXPECT_TRUE(names(said_of(line + "--batch_size 4").assumed, "micro_batch 4: the script's batch size"));
  EXPECT_FALSE(open.session.workload->train_batch_size);
  EXPECT_TRUE(std::any_of(open.remarks.begin(), open.remarks.end(), [](const std::string& remark) {
    return names(remark, "the sequences of a step are not known");
  }));
  EXPECT_EQ(session_of(line + "--batch_size 4 --gradient_accumulation_steps 2").session.workload->train_batch_size, 64);
  EXPECT_FALSE(names(said_of(line + "--per_device_train_batch_size 4").assumed, "micro_batch"));
  EXPECT_THROW(session_of(line + "--batch_size 64 --global_batch_size 64"), UserError) << "nobody knows which";
}

// The session had one rank, without a word, and was refused because the command's own parallelism does not divide it.
TEST(Caveats, RanksThatNobodyKnowsAreSaid) {
  const jobs::JobSession made = session_of(
      "torchrun --nproc_per_node gpu pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
      "--seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --bf16 --vocab-size 32000 "
      "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2");
  EXPECT_EQ(made.session.cluster.ranks(), 8);
  EXPECT_TRUE(std::any_of(made.remarks.begin(), made.remarks.end(), [](const std::string& remark) {
    return names(remark, "how many ranks the command starts is not known") && names(remark, "--nproc_per_node N");
  }));
}

TEST(Caveats, ABatchThatTheRanksDoNotDivideIsSaid) {
  EXPECT_EQ(
      user_error_of([] { session_of(kMegatron + "--vocab-size 32000 --global-batch-size 100"); }),
      "pretrain_gpt: the batch of 100 is not a multiple of micro-batch 1 x 8 data-parallel ranks; correct the command");
  EXPECT_EQ(
      user_error_of([] { session_of(kMegatron + "--vocab-size 32000 --tensor-model-parallel-size 3"); }),
      "pretrain_gpt: its tensor, pipeline and context parallelism does not divide the 8 ranks; correct the command");
  const std::string without_micro_batch =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --seq-length 4096 "
      "--global-batch-size 100 --train-iters 10";
  EXPECT_EQ(user_error_of([&] { session_of(without_micro_batch); }),
            "pretrain_gpt: the batch of 100 is not a multiple of 8 data-parallel ranks; correct the command");
}

// Accelerate makes the DeepSpeed configuration itself: the buffers and the schedule are DeepSpeed's.
TEST(Caveats, DeepSpeedThatAccelerateSetsUpIsPlannedAsDeepSpeed) {
  const std::string rest =
      "run_clm.py --model_name_or_path gpt2 --output_dir o --per_device_train_batch_size 2 --block_size 512 ";
  const auto framework = [&](const std::string& launcher) {
    return session_of("accelerate launch --num_processes 8 " + launcher + " " + rest).session.workload->framework;
  };
  EXPECT_EQ(framework("--use_deepspeed --zero_stage 2"), workload::Framework::kDeepSpeed);
  EXPECT_EQ(framework("--use_fsdp"), workload::Framework::kFsdp);
}

// Megatron-DeepSpeed's ranks that share a model or a sequence do not count for the batch.
TEST(Caveats, MegatronDeepSpeedIsReadAsMegatron) {
  const TemporaryDirectory directory;
  directory.write("ds.json",
                  R"({"train_batch_size": 64, "zero_optimization": {"stage": 1}, "fp16": {"enabled": true}})");
  jobs::JobRequest request;
  request.command = words_of(
      "deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
      "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 64 --fp16 "
      "--tensor-model-parallel-size 2 --ds-sequence-parallel-size 2 --no-pipeline-parallel --vocab-file v --deepspeed "
      "--deepspeed_config ds.json --zero-stage 1");
  request.directory = directory.path();
  request.find_gpus = [] { return workload::NodeGpus{}; };
  const session::Session session = jobs::session_of_job(request).session;
  EXPECT_EQ(session.workload->train_batch_size, 64);
  EXPECT_EQ(session.workload->framework, workload::Framework::kDeepSpeed);
  EXPECT_EQ(session.workload->model.vocab, 50304);
  int seen = 0;
  session.space.for_each([&](const space::Configuration& configuration) {
    const std::int64_t replicas = 4 / configuration.integer("tensor_parallel", 2);
    EXPECT_EQ(
        configuration.integer("micro_batch", 4) * replicas * configuration.integer("gradient_accumulation_steps", 0),
        64)
        << configuration.text();
    return ++seen < 100;
  });
  EXPECT_GT(seen, 10);
}

// LoRA of a model of 8 billion parameters ran on GPUs of which no configuration was said to fit.
TEST(Caveats, TakeAwayTheRightToRefuse) {
  for (const std::string more : {"", "--use_peft --use_dora --lora_target_modules magic "}) {
    jobs::JobSession made = session_of(kTrainer + "--max_length 4096 " + more);
    made.session.usable_per_rank = from_gib(24.0);
    const session::MemoryFilter filter(made.session);
    double most = 0.0;
    made.session.space.for_each([&](const space::Configuration& configuration) {
      if (configuration.integer("zero_stage", 0) != 0) return true;
      const auto verdict = filter.check(configuration);
      most = std::max(most, verdict ? verdict->probability_fits : 0.0);
      return true;
    });
    EXPECT_EQ(most > 0.01, !more.empty()) << more << most;
    EXPECT_LT(most, 0.5) << more;
  }
}

TEST(Caveats, AModelThatNobodyKnowsIsNotPredicted) {
  const jobs::JobSession made = session_of(
      "torchrun --nproc_per_node 8 sft.py --model_name_or_path me/mine --output_dir o --per_device_train_batch_size 2");
  EXPECT_FALSE(made.session.workload);
  EXPECT_TRUE(std::any_of(made.remarks.begin(), made.remarks.end(),
                          [](const std::string& remark) { return names(remark, "no config.json of me/mine"); }));
}

// torchtitan's own first command, and a batch with nothing to vary in it.
TEST(Caveats, SessionsOfShortCommandsCanBeRead) {
  EXPECT_EQ(session_of("torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b")
                .session.workload->train_batch_size,
            8);
  EXPECT_NO_THROW(session_of("torchrun --nproc_per_node 8 -m torchtitan.train --module flux --config flux_debug"));
  EXPECT_NO_THROW(
      session_of("torchrun --nproc_per_node 8 t.py --per_device_train_batch_size 1 --bf16 True --output_dir o"));
}

TEST(Caveats, MegatronsFlagsMakeAMegatronJob) {
  for (const char* script : {"examples/multimodal/train.py", "examples/mimo/train.py", "finetune_gpt.py", "mine.py"}) {
    const jobs::JobSession made = session_of(
        std::string("torchrun --nproc_per_node 8 ") + script +
        " --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "
        "--global-batch-size 64 --train-iters 10 --tensor-model-parallel-size 2");
    EXPECT_EQ(made.json["runner"]["recipe"], "megatron") << script;
  }
}

}  // namespace krigtune::caveats_test
