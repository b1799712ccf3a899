// What predictions of a command assume, and what they do not contain.
#include "jobs/recipe/caveats.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text.h"
#include "jobs/session/job_session.h"
#include "session/memory_filter.h"
#include "trial/temporary_directory.h"
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

TEST(Caveats, NameWhatMattersAndIsNotModelled) {
  const std::string megatron = said_of(kMegatron +
                                       "--vocab-size 32000 --num-experts 8 --moe-router-topk 2 "
                                       "--expert-model-parallel-size 8 --fp8-format hybrid "
                                       "--pipeline-model-parallel-size 4 "
                                       "--num-layers-per-virtual-pipeline-stage 4 --mtp-num-layers 1 "
                                       "--optimizer muon")
                                   .not_modelled;
  for (const char* word : {"experts", "interleaved", "FP8", "several tokens", "another optimizer"})
    EXPECT_TRUE(names(megatron, word)) << word << ": " << megatron;
  const std::string trainer = said_of(kTrainer +
                                      "--max_length 4096 --use_peft --lora_r 16 --load_in_4bit "
                                      "--optim adamw_8bit --use_liger_kernel --torch_compile True")
                                  .not_modelled;
  for (const char* word : {"adapters", "quantised", "another optimizer", "Liger", "compiled"})
    EXPECT_TRUE(names(trainer, word)) << word << ": " << trainer;
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

// Megatron-LM computes the width of a gated MLP itself (arguments.py).
TEST(Caveats, AGatedMlpOfMegatronHasItsOwnWidth) {
  EXPECT_EQ(session_of(kMegatron + "--swiglu --vocab-size 32000").session.workload->model.ffn_hidden, 10880);
  EXPECT_EQ(session_of(kMegatron + "--vocab-size 32000").session.workload->model.ffn_hidden, 16384);
}

// LoRA of a model of 8 billion parameters ran on GPUs of which no configuration was said to fit.
TEST(Caveats, TakeAwayTheRightToRefuse) {
  for (const std::string more : {"", "--use_peft --lora_r 16 "}) {
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
