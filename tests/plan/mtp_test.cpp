// Plans with layers that predict further tokens, compared with closed forms of what they compute and keep.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"
#include "workload/model_presets.h"

namespace krigtune::mtp_plan_test {
namespace {

using plan::StepPlan;

constexpr std::int64_t kTokens = 8;
constexpr std::int64_t kHidden = 32;

// Two layers of attention and an MLP; 2 bytes a number.
workload::Workload job(std::int64_t further_tokens, bool repeated = false) {
  workload::Workload workload;
  workload.model = {
      .layers = 2, .hidden = kHidden, .heads = 4, .kv_heads = 2, .ffn_hidden = 64, .vocab = 50, .seq_len = kTokens};
  workload.model.gated_mlp = true;
  workload.model.tied_embeddings = false;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.model.positions = workload::Positions::kRotary;
  workload.model.mtp = {further_tokens, repeated, {}};
  workload::resolve(workload.model);
  workload.precision = workload::Precision::kBf16;
  return workload;
}

// Forward and backward of all products of a block, as the difference of models of three layers and two.
double flops_of_block() {
  workload::Workload three = job(0);
  three.model.layers = 3;
  return product_flops(plan_of(three)) - product_flops(plan_of(job(0)));
}

TEST(MtpPlan, EachLayerComputesItsProductABlockAndTheHead) {
  for (const bool repeated : {false, true}) {
    for (const std::int64_t further : {1, 2, 3}) {
      const StepPlan plan = plan_of(job(further, repeated));
      const double each = 6.0 * kTokens * (2.0 * kHidden * kHidden + 50.0 * kHidden) + flops_of_block();
      EXPECT_EQ(product_flops(plan) - product_flops(plan_of(job(0))), static_cast<double>(further) * each);
      std::int64_t elems = 0;
      for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.elems;
      EXPECT_EQ(elems, parameter_count(job(further, repeated).model));
    }
  }
}

TEST(MtpPlan, TensorRanksShareTheProducts) {
  for (const bool sequence_parallel : {false, true})
    EXPECT_EQ(2.0 * product_flops(plan_of(job(2), 2, sequence_parallel)), product_flops(plan_of(job(2))));
}

// Recomputation repeats the product and the block, not the head.
TEST(MtpPlan, LayersAreComputedAgainWithFullCheckpointing) {
  const double blocks = flops_of_block() / 3.0;
  const double join = 2.0 * kTokens * 2.0 * kHidden * kHidden;
  EXPECT_NEAR(product_flops(plan_of(job(1), 1, false, "full")) - product_flops(plan_of(job(1))), 3.0 * blocks + join,
              1e-3);
}

// The embedding of the next token, both norms side by side, their product, and what the head's norm makes; three norms
// keep a number of fp32 for each token.
TEST(MtpPlan, EachLayerKeepsWhatBackwardReads) {
  const auto kept = [](const workload::Workload& workload, const char* checkpointing) {
    return bytes_of(plan_of(workload, 1, false, checkpointing), schedule::Term::kActivations);
  };
  workload::Workload three = job(0);
  three.model.layers = 3;
  const std::int64_t block = kept(three, "none") - kept(job(0), "none");
  EXPECT_EQ(kept(job(1), "none") - kept(job(0), "none"), block + kTokens * (2 * kHidden * (1 + 2 + 1 + 1) + 3 * 4));
  EXPECT_EQ(kept(job(1), "full") - kept(job(0), "full"), kTokens * (2 * kHidden * (1 + 1 + 1) + 4));
}

TEST(MtpPlan, AllLogitsExistAtOnce) {
  workload::Workload with = job(1);
  workload::Workload without = job(0);
  with.model.vocab = without.model.vocab = 50'000;
  const auto logits = [](const workload::Workload& workload) {
    return bytes_of(plan_of(workload), schedule::Term::kLogits);
  };
  const std::int64_t more = logits(with) - logits(without);
  EXPECT_GE(more, 2 * kTokens * 50'000);
  EXPECT_GE(plan::explain(plan_of(with)).lower_bound_bytes - plan::explain(plan_of(without)).lower_bound_bytes, more);
}

// Every gradient is sent once, and nothing is added to it afterwards, though one layer may serve several tokens and
// head and table are used more than once.
TEST(MtpPlan, GradientsAreSentOnceTheyAreComplete) {
  for (const bool repeated : {false, true}) {
    for (const bool tied : {false, true}) {
      for (const std::int64_t bucket : {1, 2'000, 100'000'000}) {
        workload::Workload workload = job(2, repeated);
        workload.model.tied_embeddings = tied;
        const StepPlan plan = plan::build_plan(workload, cpu_ranks(2), knobs(1, 1, 1, bucket, true));
        std::map<std::int64_t, std::int64_t> sent;  // elements, by beginning
        for (const plan::Operation& operation : plan.operations) {
          const bool sends = operation.kind == schedule::OpKind::kReduceScatter;
          if (operation.phase == schedule::Phase::kOptimizer && !sends) continue;
          for (const plan::Operand& operand : operation.operands) {
            const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(operand.range.buffer)];
            if (buffer.term != schedule::Term::kGradients || operand.access == plan::Access::kRead) continue;
            EXPECT_FALSE(sent.contains(operand.range.begin_elems)) << plan::to_string(operation.kind);
            if (sends) sent[operand.range.begin_elems] = operand.range.elems;
          }
        }
        std::int64_t elems = 0;
        for (const auto& [begin, count] : sent) elems += count;
        EXPECT_EQ(elems, plan.padded_parameter_elems) << repeated << tied << bucket;
      }
    }
  }
}

}  // namespace
}  // namespace krigtune::mtp_plan_test
