// What plans keep for the backward pass, beside what PyTorch keeps of Hugging Face's models (experiments/kept).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "core/csv.h"
#include "core/files.h"
#include "plan/plan_fixtures.h"

namespace krigtune::kept_test {
namespace {

using plan::StepPlan;

constexpr std::int64_t kTokens = 128;

// By model, weights and what is trained: "Llama bfloat16 all ".
std::map<std::string, double> measured() {
  const std::filesystem::path file = std::filesystem::path(KRIGTUNE_EXPERIMENTS) / "results/kept/kept.csv";
  std::map<std::string, double> bytes;
  for (const auto& row : parse_csv(read_text(file), file.string()).rows)
    bytes[row[0] + ' ' + row[1] + ' ' + row[2] + ' ' + row[3]] = std::stod(row[4]);
  return bytes;
}

workload::ModelSpec llama() {
  workload::ModelSpec model{
      .layers = 2, .hidden = 256, .heads = 8, .kv_heads = 4, .ffn_hidden = 688, .vocab = 512, .seq_len = kTokens};
  model.gated_mlp = true;
  model.norm = workload::Norm::kRmsNorm;
  model.positions = workload::Positions::kRotary;
  model.tied_embeddings = false;
  return model;
}

workload::ModelSpec model_named(const std::string& name) {
  workload::ModelSpec model = llama();
  if (name == "Qwen3") model.qk_norm = workload::QkNorm::kHead;
  if (name == "Mixtral") model.experts = {.count = 4, .per_token = 2, .ffn_hidden = 688};
  if (name == "GPT-2") {
    model = {
        .layers = 2, .hidden = 256, .heads = 8, .kv_heads = 8, .ffn_hidden = 1024, .vocab = 512, .seq_len = kTokens};
  }
  return model;
}

workload::Workload job(const std::string& model, workload::Precision precision = workload::Precision::kBf16) {
  workload::Workload workload;
  workload.model = model_named(model);
  workload.precision = precision;
  workload.framework = workload::Framework::kFsdp;
  return workload;
}

// Of one layer and one token: what backward reads.
double kept_of_a_layer(workload::Workload workload) {
  const auto kept = [&](std::int64_t layers) {
    workload.model.layers = layers;
    const StepPlan plan = plan::build_plan(workload, cpu_ranks(1), {{"micro_batch", std::int64_t{1}}});
    std::set<plan::BufferId> read;
    for (const plan::Operation& operation : plan.operations) {
      if (operation.phase != schedule::Phase::kBackward) continue;
      for (const plan::Operand& operand : operation.operands) read.insert(operand.range.buffer);
    }
    double bytes = 0.0;
    for (const plan::BufferId b : read) {
      const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
      if (buffer.term == schedule::Term::kActivations) bytes += static_cast<double>(buffer.bytes());
    }
    return bytes;
  };
  return (kept(4) - kept(2)) / 2.0 / static_cast<double>(kTokens);
}

TEST(Kept, EagerKernelsKeepWhatHuggingFacesModelsDo) {
  const std::map<std::string, double> of_torch = measured();
  for (const char* model : {"Llama", "Qwen3", "GPT-2"}) {
    const std::string name = model;
    EXPECT_NEAR(kept_of_a_layer(job(name)) / of_torch.at(name + " bfloat16 all "), 1.0, 0.002) << name;
    EXPECT_NEAR(kept_of_a_layer(job(name, workload::Precision::kFp32)) / of_torch.at(name + " float32 all "), 1.0,
                0.002)
        << name;
  }
}

TEST(Kept, ExpertsKeepWhatHuggingFacesModelsDo) {
  const std::map<std::string, double> of_torch = measured();
  EXPECT_NEAR(kept_of_a_layer(job("Mixtral")) / of_torch.at("Mixtral bfloat16 all "), 1.0, 0.01);
  EXPECT_NEAR(kept_of_a_layer(job("Mixtral", workload::Precision::kFp32)) / of_torch.at("Mixtral float32 all "), 1.0,
              0.01);
}

TEST(Kept, AdaptersKeepWhatPeftsDo) {
  const std::map<std::string, double> of_torch = measured();
  workload::Workload workload = job("Llama");
  workload.training.lora.rank = 8;
  EXPECT_NEAR(kept_of_a_layer(workload) / of_torch.at("Llama bfloat16 all-linear fp32, autocast"), 1.0, 0.1);
  workload.training.lora.targets = {true, false, true, false, false, false, false};
  EXPECT_NEAR(kept_of_a_layer(workload) / of_torch.at("Llama bfloat16 q_proj v_proj fp32, autocast"), 1.0, 0.1);
}

// A fused RMS norm keeps its input, which is the residual stream anyway; an eager one keeps it in fp32 and, in 16 bits,
// what the gain multiplies: 4 H + 2 H instead of 2 H. An eager gated activation keeps F values more.
TEST(Kept, FusedKernelsKeepLess) {
  workload::Workload workload = job("Llama");
  const double eager = kept_of_a_layer(workload);
  workload.training.kernels = workload::Kernels::kFused;
  const double fused = kept_of_a_layer(workload);
  EXPECT_EQ(eager - fused, 2.0 * (4.0 + 2.0 - 2.0) * 256.0 + 2.0 * 688.0);
  workload.training = {.compile = true};
  EXPECT_EQ(kept_of_a_layer(workload), fused);
  workload.training = {};
  workload.framework = workload::Framework::kMegatron;
  EXPECT_EQ(kept_of_a_layer(workload), fused);
}

// The logits of a part are about as large as the hidden states: ceil(V / H) parts of every sequence.
TEST(Kept, AFusedLossHasNoWholeLogits) {
  workload::Workload workload = job("Llama");
  workload.model.vocab = 1000;
  const auto largest_logits = [&] {
    std::int64_t bytes = 0;
    const StepPlan plan = plan::build_plan(workload, cpu_ranks(1), {{"micro_batch", std::int64_t{2}}});
    for (const plan::Buffer& buffer : plan.buffers) {
      if (buffer.name == "logits") bytes = std::max(bytes, buffer.bytes());
    }
    return bytes;
  };
  EXPECT_EQ(largest_logits(), 2 * 2 * kTokens * 1000);
  workload.training.loss = workload::LossKind::kFused;
  EXPECT_EQ(workload::fused_loss_parts(1000, 256), 4);
  EXPECT_EQ(largest_logits(), 2 * 2 * (kTokens / 4) * 1000);
}

}  // namespace
}  // namespace krigtune::kept_test
