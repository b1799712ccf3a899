// Plans with latent attention (DeepSeek-V2), compared with closed forms: parameters, products, what is kept, what
// tensor ranks exchange.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/csv.h"
#include "core/files.h"
#include "plan/memory.h"
#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"

namespace krigtune::latent_attention_test {
namespace {

using plan::StepPlan;
using schedule::OpKind;

constexpr std::int64_t kLayers = 2, kTokens = 8, kHidden = 32, kHeads = 4, kVocab = 50, kFfn = 64;
constexpr std::int64_t kKvRank = 20, kNope = 8, kRope = 4, kValue = 6;
constexpr std::int64_t kQueries = kHeads * (kNope + kRope), kOutputs = kHeads * kValue;

// An ordinary model, whose heads are as wide as those of latent attention.
workload::Workload plain() {
  workload::Workload workload;
  workload.model = {.layers = kLayers,
                    .hidden = kHidden,
                    .heads = kHeads,
                    .kv_heads = kHeads,
                    .head_dim = kNope + kRope,
                    .ffn_hidden = kFfn,
                    .vocab = kVocab,
                    .seq_len = kTokens};
  workload.model.gated_mlp = true;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.model.positions = workload::Positions::kRotary;
  workload.precision = workload::Precision::kBf16;
  return workload;
}

workload::Workload latent(std::int64_t q_rank) {
  workload::Workload workload = plain();
  workload.model.head_dim = 0;
  workload.model.latent = {q_rank, kKvRank, kNope, kRope, kValue};
  return workload;
}

std::int64_t tensor_elems(const StepPlan& plan, schedule::Split split) {
  std::int64_t elems = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.split == split ? tensor.elems : 0;
  return elems;
}

// Matrices of one layer's attention: what makes the latents, and what makes the heads.
std::int64_t down_elems(std::int64_t q_rank) { return kHidden * (q_rank + kKvRank + kRope); }
std::int64_t up_elems(std::int64_t q_rank) {
  return (q_rank > 0 ? q_rank : kHidden) * kQueries + kKvRank * kHeads * (kNope + kValue) + kOutputs * kHidden;
}

TEST(LatentAttention, APlanHasTheParametersAndTheProductsOfTheModel) {
  for (const std::int64_t q_rank : {0, 24}) {
    const workload::Workload workload = latent(q_rank);
    const StepPlan plan = plan_of(workload);
    const std::int64_t norms = (2 * kLayers + 1) * kHidden + kLayers * (q_rank + kKvRank);
    const std::int64_t mlps = kLayers * 3 * kHidden * kFfn;
    const std::int64_t attention = kLayers * (down_elems(q_rank) + up_elems(q_rank));
    EXPECT_EQ(parameter_count(workload.model), attention + mlps + norms + kVocab * kHidden);
    std::int64_t elems = 0;
    for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.elems;
    EXPECT_EQ(elems, parameter_count(workload.model));
    const auto matrices = static_cast<double>(attention + mlps + kVocab * kHidden);
    EXPECT_EQ(product_flops(plan), 6.0 * kTokens * matrices);
    // Scores are as wide as the queries, and the sums of values as the values; row i attends to i + 1 keys.
    const double pairs = kTokens * (kTokens + 1) / 2.0;
    EXPECT_EQ(flops_of(plan, OpKind::kAttentionForward), kLayers * 2.0 * pairs * (kQueries + kOutputs));
    EXPECT_EQ(flops_of(plan, OpKind::kAttentionBackward), kLayers * 2.0 * pairs * (3 * kQueries + 2 * kOutputs));
    EXPECT_EQ(model_flops(workload.model, 1), 6.0 * kTokens * matrices + kLayers * 6.0 * pairs * (kQueries + kOutputs));
  }
}

// In bytes a token and layer, beside an ordinary model with values as wide as keys: narrower values and outputs, and
// the latents, their norms' outputs and one number for each norm.
TEST(LatentAttention, KeepsTheLatentsAndTheRowsThatAttentionReads) {
  const std::int64_t ordinary = kept_bytes(plan_of(plain()));
  for (const std::int64_t q_rank : {0, 24}) {
    const std::int64_t latents = 2 * (2 * q_rank + 2 * kKvRank + kRope) + (q_rank > 0 ? 8 : 4);
    EXPECT_EQ(kept_bytes(plan_of(latent(q_rank))),
              ordinary + kLayers * kTokens * (latents - 2 * 2 * (kQueries - kOutputs)));
    EXPECT_EQ(kept_bytes(plan_of(latent(q_rank), 1, false, "full")), kept_bytes(plan_of(plain(), 1, false, "full")));
  }
}

// In Hugging Face transformers the values stay in one tensor with the keys that have no positions.
TEST(LatentAttention, KeepsKeysBesideValuesThatAreNotCopied) {
  workload::Workload workload = latent(24);
  workload.framework = workload::Framework::kMegatron;
  const std::int64_t copied = kept_bytes(plan_of(workload));
  EXPECT_EQ(copied, kept_bytes(plan_of(latent(24))));
  workload.framework = workload::Framework::kFsdp;
  workload.training.kernels = workload::Kernels::kFused;
  EXPECT_EQ(kept_bytes(plan_of(workload)), copied + kLayers * kTokens * 2 * kHeads * kNope);
}

// What latents_kept.py measured of transformers 5.24, in bytes a token and layer. Not planned are the fp32 copies of
// the norms' inputs, as with other norms, and a copy of attention's output on the processor.
double measured_bytes(const std::string& attention, const std::string& q_rank) {
  const std::filesystem::path file = std::filesystem::path(KRIGTUNE_EXPERIMENTS) / "results/models/latents_kept.csv";
  double bytes = 0.0;
  for (const auto& row : parse_csv(read_text(file), file.string()).rows) {
    const bool is_planned = row[3] == "torch.bfloat16" && row[2] != "256x768";
    if (row[0] == attention && row[1] == q_rank && is_planned) bytes += std::stod(row[5]);
  }
  return bytes;
}

TEST(LatentAttention, KeepsMoreThanOrdinaryAttentionByWhatPyTorchKeeps) {
  workload::Workload ordinary = plain();
  ordinary.framework = workload::Framework::kFsdp;
  ordinary.model = {.layers = 2,
                    .hidden = 256,
                    .heads = 8,
                    .kv_heads = 8,
                    .head_dim = 96,
                    .ffn_hidden = 512,
                    .vocab = 64,
                    .seq_len = 256,
                    .gated_mlp = true,
                    .positions = workload::Positions::kRotary,
                    .norm = workload::Norm::kRmsNorm};
  const auto of_a_layer = [](workload::Workload workload) {
    const std::int64_t two = kept_bytes(plan_of(workload));
    workload.model.layers = 3;
    return static_cast<double>(kept_bytes(plan_of(workload)) - two) / 256.0;
  };
  for (const std::int64_t q_rank : {0, 96}) {
    workload::Workload latents = ordinary;
    latents.model.head_dim = 0;
    latents.model.latent = {q_rank, 64, 64, 32, 96};
    const double more = measured_bytes("latent", std::to_string(q_rank)) - measured_bytes("ordinary", "0");
    EXPECT_NEAR((of_a_layer(latents) - of_a_layer(ordinary)) / more, 1.0, 0.06) << q_rank << ": " << more;
  }
}

// Heads are divided, and what makes the latents is whole on every rank, with its norms.
TEST(LatentAttention, TensorRanksShareTheHeads) {
  for (const std::int64_t q_rank : {0, 24}) {
    const StepPlan one = plan_of(latent(q_rank));
    const StepPlan two = plan_of(latent(q_rank), 2);
    const std::int64_t whole = (2 * kLayers + 1) * kHidden + kLayers * (q_rank + kKvRank + down_elems(q_rank));
    EXPECT_EQ(tensor_elems(one, schedule::Split::kNone), whole);
    EXPECT_EQ(tensor_elems(two, schedule::Split::kNone), whole);
    EXPECT_EQ(2 * tensor_elems(two, schedule::Split::kRows), tensor_elems(one, schedule::Split::kRows));
    EXPECT_EQ(2 * tensor_elems(two, schedule::Split::kColumns), tensor_elems(one, schedule::Split::kColumns));
    const double replicated = 6.0 * kTokens * static_cast<double>(kLayers * down_elems(q_rank));
    EXPECT_EQ(product_flops(two) - replicated, (product_flops(one) - replicated) / 2.0);
  }
}

// Backward sums the gradients of the latents' norms and of the keys' part with positions, not that of the block's
// input. Of a sum over two ranks each sends as many bytes as it has.
TEST(LatentAttention, TensorRanksSumTheGradientsOfTheLatents) {
  const std::int64_t ordinary = plan::wire_bytes(plan_of(plain(), 2)).all_reduce;
  for (const std::int64_t q_rank : {0, 24}) {
    const std::int64_t summed = (q_rank > 0 ? q_rank : kHidden) + kKvRank + kRope;
    EXPECT_EQ(plan::wire_bytes(plan_of(latent(q_rank), 2)).all_reduce,
              ordinary + kLayers * kTokens * 2 * (summed - kHidden));
  }
}

// With sequence parallelism each rank makes the latents of its own tokens, once.
TEST(LatentAttention, SequenceRanksMakeTheLatentsOfTheirTokens) {
  for (const std::int64_t q_rank : {0, 24}) {
    const StepPlan one = plan_of(latent(q_rank));
    const StepPlan two = plan_of(latent(q_rank), 2, true);
    EXPECT_EQ(2.0 * product_flops(two), product_flops(one));
  }
}

TEST(LatentAttention, IsComputedAgainWithFullCheckpointing) {
  const StepPlan once = plan_of(latent(24));
  const StepPlan again = plan_of(latent(24), 1, false, "full");
  EXPECT_EQ(flops_of(again, OpKind::kAttentionForward), 2.0 * flops_of(once, OpKind::kAttentionForward));
}

// Norms without gains: nothing to train, and as much to keep.
TEST(PlainNorms, KeepWhatOthersKeepAndHaveNoParameters) {
  workload::Workload without = plain();
  without.model.norm_gain = false;
  const StepPlan plan = plan_of(without);
  std::int64_t elems = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.elems;
  EXPECT_EQ(elems, parameter_count(without.model));
  EXPECT_EQ(parameter_count(plain().model) - elems, (2 * kLayers + 1) * kHidden);
  EXPECT_EQ(kept_bytes(plan), kept_bytes(plan_of(plain())));
  std::int64_t norms = 0;
  for (const plan::Operation& operation : plan.operations) {
    const bool has_no_gain = operation.operands.size() == 3;
    norms += operation.kind == OpKind::kRmsNormForward && has_no_gain ? 1 : 0;
  }
  EXPECT_EQ(norms, 2 * kLayers + 1);
}

}  // namespace
}  // namespace krigtune::latent_attention_test
