// Plans of models with other norms than one before each branch, compared with closed forms.
#include <gtest/gtest.h>

#include <cstdint>

#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"

namespace krigtune::norms_test {
namespace {

using plan::StepPlan;
using workload::NormPlaces;
using workload::QkNorm;

constexpr std::int64_t kLayers = 2, kTokens = 8, kHidden = 32, kHeads = 4, kKvHeads = 2, kHead = 8;
constexpr std::int64_t kQueriesAndKeys = (kHeads + kKvHeads) * kHead;
constexpr std::int64_t kAll = kQueriesAndKeys + kKvHeads * kHead;

workload::Workload small() {
  workload::Workload workload;
  workload.model = {.layers = kLayers,
                    .hidden = kHidden,
                    .heads = kHeads,
                    .kv_heads = kKvHeads,
                    .ffn_hidden = 64,
                    .vocab = 50,
                    .seq_len = kTokens};
  workload.model.gated_mlp = true;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.model.positions = workload::Positions::kRotary;
  workload.precision = workload::Precision::kBf16;
  return workload;
}

workload::Workload with(NormPlaces places, QkNorm qk = QkNorm::kNone) {
  workload::Workload workload = small();
  workload.model.norm_places = places;
  workload.model.qk_norm = qk;
  return workload;
}

std::int64_t count(const StepPlan& plan, schedule::OpKind kind) {
  std::int64_t found = 0;
  for (const plan::Operation& operation : plan.operations) found += operation.kind == kind ? 1 : 0;
  return found;
}

std::int64_t bytes_of(const StepPlan& plan, schedule::OpKind kind) {
  std::int64_t bytes = 0;
  for (const plan::Operation& operation : plan.operations)
    if (operation.kind == kind) bytes += operation.bytes_read + operation.bytes_written;
  return bytes;
}

TEST(Norms, APlanHasTheParametersOfTheModel) {
  for (const NormPlaces places : {NormPlaces::kPre, NormPlaces::kPost, NormPlaces::kSandwich, NormPlaces::kShared}) {
    for (const QkNorm qk : {QkNorm::kNone, QkNorm::kHead, QkNorm::kFull}) {
      for (const workload::Norm norm : {workload::Norm::kLayerNorm, workload::Norm::kRmsNorm}) {
        for (const bool bias : {true, false}) {
          workload::Workload workload = with(places, qk);
          workload.model.norm = norm;
          workload.model.norm_bias = bias;
          workload.model.others = {3, 70};
          const StepPlan plan = plan_of(workload);
          std::int64_t elems = 0;
          for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.elems;
          EXPECT_EQ(elems, parameter_count(workload.model));
        }
      }
    }
  }
}

// Each norm reads its input and its gain, and writes its output and one number a token; so do all norms.
TEST(Norms, AreAsManyAsTheBlockHas) {
  const auto norms = [](NormPlaces places) { return count(plan_of(with(places)), schedule::OpKind::kRmsNormForward); };
  EXPECT_EQ(norms(NormPlaces::kPre), 2 * kLayers + 1);
  EXPECT_EQ(norms(NormPlaces::kPost), 2 * kLayers + 1);
  EXPECT_EQ(norms(NormPlaces::kSandwich), 4 * kLayers + 1);
  EXPECT_EQ(norms(NormPlaces::kShared), kLayers + 1);
  const StepPlan sandwich = plan_of(with(NormPlaces::kSandwich));
  EXPECT_EQ(bytes_of(sandwich, schedule::OpKind::kRmsNormForward),
            (4 * kLayers + 1) * (2 * 2 * kTokens * kHidden + 2 * kHidden + 4 * kTokens));
  EXPECT_EQ(count(sandwich, schedule::OpKind::kRmsNormBackward), 4 * kLayers + 1);
}

// In bytes a layer: a norm before a branch keeps its output, one after a branch its input, each with a number a token.
TEST(Norms, KeepWhatBackwardReads) {
  const auto more = [](const workload::Workload& workload) {
    return kept_bytes(plan_of(workload)) - kept_bytes(plan_of(small()));
  };
  const std::int64_t each = kTokens * (2 * kHidden + 4);
  EXPECT_EQ(more(with(NormPlaces::kPost)), 0);
  EXPECT_EQ(more(with(NormPlaces::kSandwich)), kLayers * 2 * each);
  EXPECT_EQ(more(with(NormPlaces::kShared)), -kLayers * each);
  // Queries and keys before their norm, and a number for each head.
  const std::int64_t qk = kTokens * (2 * kQueriesAndKeys + 4 * (kHeads + kKvHeads));
  EXPECT_EQ(more(with(NormPlaces::kPre, QkNorm::kHead)), kLayers * qk);
  EXPECT_EQ(more(with(NormPlaces::kPre, QkNorm::kFull)), kLayers * qk);
  // Full checkpointing keeps the layers' inputs alone.
  EXPECT_EQ(kept_bytes(plan_of(with(NormPlaces::kSandwich, QkNorm::kHead), 1, false, "full")),
            kept_bytes(plan_of(small(), 1, false, "full")));
}

// They are read and written where they are, beside the values, and a copy is kept.
TEST(Norms, OfQueriesAndKeysMoveThem) {
  const StepPlan plan = plan_of(with(NormPlaces::kPre, QkNorm::kHead));
  EXPECT_EQ(bytes_of(plan, schedule::OpKind::kQkNormForward),
            kLayers * (kTokens * (2 * 2 * kAll + 2 * kQueriesAndKeys + 4 * (kHeads + kKvHeads)) + 2 * 2 * kHead));
  const StepPlan half = plan_of(with(NormPlaces::kPre, QkNorm::kHead), 2);
  EXPECT_EQ(bytes_of(half, schedule::OpKind::kQkNormForward),
            kLayers * (kTokens * (2 * 2 * kAll + 2 * kQueriesAndKeys + 4 * (kHeads + kKvHeads)) / 2 + 2 * 2 * kHead));
  for (const auto& [qk, share] : {std::pair(QkNorm::kHead, 1), std::pair(QkNorm::kFull, 2)}) {
    const StepPlan whole = plan_of(with(NormPlaces::kPre, qk));
    workload::Workload on_two_ranks = with(NormPlaces::kPre, qk);
    on_two_ranks.framework = workload::Framework::kMegatron;  // krigtune-bench does not divide a norm of all queries
    const StepPlan split = plan_of(on_two_ranks, 2);
    for (std::size_t t = 0; t < whole.tensors.size(); ++t) {
      if (!whole.tensors[t].name.ends_with("q_norm")) continue;
      EXPECT_EQ(split.tensors[t].elems * share, whole.tensors[t].elems);
    }
  }
}

// Mean and 1 / stddev of each row are kept, whether the norm has a bias, a gain, or neither.
TEST(Norms, OfLayersWithoutBiasSubtractTheMeanToo) {
  const auto plan_with = [](bool has_gain, bool has_bias) {
    workload::Workload workload = small();
    workload.model.norm = workload::Norm::kLayerNorm;
    workload.model.norm_gain = has_gain;
    workload.model.norm_bias = has_bias;
    return plan_of(workload);
  };
  const StepPlan whole = plan_with(true, true);
  for (const bool has_gain : {true, false}) {
    const StepPlan plan = plan_with(has_gain, false);
    EXPECT_EQ(count(plan, schedule::OpKind::kLayerNormForward), 2 * kLayers + 1);
    EXPECT_EQ(kept_bytes(plan), kept_bytes(whole));
    const std::int64_t vectors = has_gain ? 1 : 2;  // that are missing
    EXPECT_EQ(
        bytes_of(whole, schedule::OpKind::kLayerNormForward) - bytes_of(plan, schedule::OpKind::kLayerNormForward),
        (2 * kLayers + 1) * vectors * 2 * kHidden);
  }
}

TEST(Norms, SharedByBothBranchesAreComputedAgainOnce) {
  const StepPlan plan = plan_of(with(NormPlaces::kShared), 1, false, "selective");
  EXPECT_EQ(count(plan, schedule::OpKind::kRmsNormForward), 2 * kLayers + 1);
}

}  // namespace
}  // namespace krigtune::norms_test
