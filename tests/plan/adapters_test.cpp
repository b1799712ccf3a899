// Plans that train adapters, compared with closed forms: trained and stored elements, products, what is kept, what is
// reduced over the ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "plan/memory.h"
#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"

namespace krigtune::adapters_test {
namespace {

using plan::StepPlan;
using schedule::OpKind;

constexpr std::int64_t kHidden = 32, kFfn = 48, kKv = 16, kLayers = 2, kVocab = 64, kSeq = 8, kRank = 4;

workload::Workload job(const workload::TrainingSpec& training) {
  workload::Workload workload;
  workload.model = {.layers = kLayers,
                    .hidden = kHidden,
                    .heads = 4,
                    .kv_heads = 2,
                    .ffn_hidden = kFfn,
                    .vocab = kVocab,
                    .seq_len = kSeq};
  workload.model.gated_mlp = true;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.model.positions = workload::Positions::kRotary;
  workload.model.tied_embeddings = false;
  workload.precision = workload::Precision::kBf16;
  workload.training = training;
  return workload;
}

workload::TrainingSpec adapters(std::initializer_list<workload::AdaptedLayer> layers = {}) {
  workload::TrainingSpec training;
  training.lora.rank = kRank;
  if (layers.size() > 0) training.lora.targets = {};
  for (const workload::AdaptedLayer layer : layers) training.lora.targets[static_cast<std::size_t>(layer)] = true;
  return training;
}

StepPlan plan_of(const workload::Workload& workload, std::int64_t data = 1, std::int64_t tensor = 1,
                 std::int64_t stage = 0, const char* checkpointing = "none") {
  return plan::build_plan(workload, cpu_ranks(data * tensor),
                          {{"micro_batch", std::int64_t{1}},
                           {"zero_stage", stage},
                           {"tensor_parallel", tensor},
                           {"stage3_param_persistence_threshold", std::int64_t{0}},
                           {"activation_checkpointing", std::string(checkpointing)}});
}

double product_flops(const StepPlan& plan, std::set<OpKind> kinds) {
  double flops = 0.0;
  for (const plan::Operation& operation : plan.operations)
    if (kinds.contains(operation.kind)) flops += operation.flops;
  return flops;
}

std::int64_t store_bytes(const StepPlan& plan, schedule::Term term) {
  std::int64_t bytes = 0;
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.persistent && buffer.term == term) bytes += buffer.bytes();
  return bytes;
}

std::int64_t trained_elems(const StepPlan& plan, bool trained = true) {
  std::int64_t elems = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors)
    if (tensor.trained == trained) elems += tensor.padded_elems;
  return elems;
}

TEST(Adapters, OnlyTheyAreTrained) {
  const workload::Workload workload = job(adapters());
  const StepPlan plan = plan_of(workload);
  std::int64_t trained = 0;
  std::int64_t frozen = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) (tensor.trained ? trained : frozen) += tensor.elems;
  EXPECT_EQ(trained, workload::adapter_parameter_count(workload));
  EXPECT_EQ(frozen, workload::parameter_count(workload.model));
  // 2 bytes of every weight; 2 of a gradient, 4 of a master and 8 of moments of the trained ones only.
  EXPECT_EQ(store_bytes(plan, schedule::Term::kParameters), 2 * (trained_elems(plan) + trained_elems(plan, false)));
  EXPECT_EQ(store_bytes(plan, schedule::Term::kGradients), 2 * trained_elems(plan));
  EXPECT_EQ(store_bytes(plan, schedule::Term::kOptimizerState), 12 * trained_elems(plan));
}

// A frozen matrix of m elements takes 2 m FLOPs a token forward and 2 m for the gradient of its input; one of an
// adapter 6 m.
TEST(Adapters, FrozenMatricesHaveNoGradientProducts) {
  const workload::Workload full = job({});
  for (const auto& training : {adapters(), adapters({workload::AdaptedLayer::kQuery, workload::AdaptedLayer::kValue}),
                               adapters({workload::AdaptedLayer::kDown})}) {
    const workload::Workload workload = job(training);
    const StepPlan plan = plan_of(workload);
    const auto of_adapters = static_cast<double>(2 * kSeq * workload::adapter_parameter_count(workload));
    const StepPlan whole = plan_of(full);
    for (const OpKind kind : {OpKind::kLinearForward, OpKind::kLinearBackwardInput})
      EXPECT_DOUBLE_EQ(product_flops(plan, {kind}), product_flops(whole, {kind}) + of_adapters);
    EXPECT_DOUBLE_EQ(product_flops(plan, {OpKind::kLinearBackwardWeight}), of_adapters);
    const std::set<OpKind> products = {OpKind::kLinearForward, OpKind::kLinearBackwardInput,
                                       OpKind::kLinearBackwardWeight};
    EXPECT_DOUBLE_EQ(product_flops(whole, products) - product_flops(plan, products),
                     workload::spared_flops(workload, 1));
  }
}

// Without an adapter on down, nothing needs its input for a gradient: the activation's output is gone after forward.
TEST(Adapters, AnInputWithoutAdapterIsNotKept) {
  const auto lives_until_backward = [](const StepPlan& plan, const std::string& name) {
    bool lives = false;
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].name != name) continue;
      for (const plan::Operation& operation : plan.operations) {
        if (operation.phase != schedule::Phase::kBackward) continue;
        lives = lives || std::ranges::any_of(operation.operands, [&](const plan::Operand& operand) {
                  return operand.range.buffer == static_cast<int>(b);
                });
      }
    }
    return lives;
  };
  const StepPlan few = plan_of(job(adapters({workload::AdaptedLayer::kQuery})));
  const StepPlan all = plan_of(job(adapters()));
  EXPECT_FALSE(lives_until_backward(few, "activated"));
  EXPECT_FALSE(lives_until_backward(few, "norm2"));
  EXPECT_TRUE(lives_until_backward(few, "norm1"));
  EXPECT_TRUE(lives_until_backward(all, "activated"));
  EXPECT_LT(few.arena_bytes, all.arena_bytes);
}

TEST(Adapters, DropoutKeepsAnInputAndAMaskForEach) {
  workload::TrainingSpec training = adapters();
  const auto kept = [](const StepPlan& plan) {
    std::int64_t bytes = 0;
    for (const plan::Buffer& buffer : plan.buffers)
      if (buffer.term == schedule::Term::kActivations && buffer.name.starts_with("adapter ")) bytes += buffer.bytes();
    return bytes;
  };
  const std::int64_t hidden_bytes = kLayers * 7 * kSeq * kRank * 2;  // A x
  EXPECT_EQ(kept(plan_of(job(training))), hidden_bytes);
  training.lora.dropout = 0.1;
  const std::int64_t inputs = kLayers * kSeq * (6 * kHidden + kFfn);  // down's is as wide as the MLP
  EXPECT_EQ(kept(plan_of(job(training))), hidden_bytes + 3 * inputs);
}

TEST(Adapters, RanksExchangeOnlyTheirGradients) {
  const workload::Workload workload = job(adapters());
  const auto sent = [&](std::int64_t stage) { return plan::wire_bytes(plan_of(workload, 2, 1, stage)); };
  const StepPlan plan = plan_of(workload, 2, 1, 0);
  const std::int64_t trained_bytes = 2 * trained_elems(plan);
  EXPECT_EQ(sent(0).all_reduce + sent(0).reduce_scatter + sent(0).all_gather, trained_bytes);  // 2 (N - 1) / N
  // Stage 3 gathers every weight twice, but for the token table, which has no backward.
  const std::int64_t all_bytes = 2 * (trained_elems(plan) + trained_elems(plan, false));
  EXPECT_LE(sent(3).all_gather, 2 * all_bytes / 2);
  EXPECT_GE(sent(3).all_gather, 2 * (all_bytes - 2 * kVocab * kHidden) / 2 - trained_bytes);
  EXPECT_EQ(sent(3).reduce_scatter, trained_bytes / 2);
}

// Of one product that makes queries, keys and values, an adapter adds to its own columns and reads their gradient.
TEST(Adapters, UseTheColumnsOfTheirLayer) {
  const StepPlan plan = plan_of(job(adapters({workload::AdaptedLayer::kKey, workload::AdaptedLayer::kDown})));
  constexpr std::int64_t kQkv = kHidden + 2 * kKv;
  std::int64_t of_columns = 0;
  for (const plan::Operation& operation : plan.operations) {
    const plan::Shape& shape = operation.shape;
    const bool of_adapter = shape.inner == kRank && plan::is_matrix_product(operation.kind);
    if (!of_adapter) continue;
    const bool is_key = shape.outer == kKv;
    EXPECT_EQ(shape.width, is_key ? kQkv : 0);
    EXPECT_EQ(shape.begin, is_key ? kHidden : 0);
    const std::size_t y = operation.kind == OpKind::kLinearForward ? 2 : 0;
    EXPECT_EQ(operation.operands[y].range.elems, kSeq * (is_key ? kQkv : kHidden));
    const plan::Access access = y == 2 ? plan::Access::kReadWrite : plan::Access::kRead;
    EXPECT_EQ(operation.operands[y].access, access);
    // Only its columns are moved, forward there and back.
    if (y == 2) {
      EXPECT_EQ(operation.bytes_read + operation.bytes_written,
                2 * (kSeq * kRank + shape.outer * kRank + 2 * kSeq * shape.outer));
    }
    of_columns += is_key ? 1 : 0;
  }
  EXPECT_EQ(of_columns, 3 * kLayers);
}

TEST(Adapters, TensorRanksShareThemAsTheyShareTheLayer) {
  const workload::Workload workload = job(adapters());
  const StepPlan one = plan_of(workload);
  const StepPlan two = plan_of(workload, 1, 2);
  std::int64_t split = 0;
  std::int64_t whole = 0;
  for (const schedule::ParameterTensor& tensor : two.tensors) {
    if (!tensor.trained) continue;
    (tensor.split == schedule::Split::kNone ? whole : split) += tensor.elems;
  }
  EXPECT_EQ(2 * split + whole, workload::adapter_parameter_count(workload));
  // The matrices of the layers' full side: A of q, k, v, gate and up, and B of o and down.
  EXPECT_EQ(whole, kLayers * 7 * kRank * kHidden);
  EXPECT_LT(product_flops(two, {OpKind::kLinearForward}), product_flops(one, {OpKind::kLinearForward}));
}

TEST(Adapters, AQuantisedBaseIsStoredPackedAndRestoredForEachProduct) {
  workload::TrainingSpec training = adapters();
  training.base = workload::BaseFormat::kNf4;
  const StepPlan plan = plan_of(job(training));
  constexpr std::int64_t kMatrices = kLayers * (kHidden * (2 * kHidden + 2 * kKv) + 3 * kHidden * kFfn);
  std::int64_t packed_bytes = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) {
    const bool is_matrix = !tensor.trained && tensor.name.starts_with("block") && tensor.elems > kHidden;
    if (is_matrix) packed_bytes += 2 * tensor.elems;
  }
  EXPECT_EQ(packed_bytes, kMatrices * 9 / 16);  // 4.5 bits
  std::int64_t restored = 0;
  for (const plan::Operation& operation : plan.operations)
    if (operation.kind == OpKind::kDequantize) restored += operation.shape.inner;
  EXPECT_EQ(restored, 2 * kMatrices);  // forward and backward
  const StepPlan again = plan_of(job(training), 1, 1, 0, "full");
  restored = 0;
  for (const plan::Operation& operation : again.operations)
    if (operation.kind == OpKind::kDequantize) restored += operation.shape.inner;
  EXPECT_EQ(restored, 3 * kMatrices);
}

// A plan is laid out and prefetched as any other: no stage, and no checkpointing, needs more than all weights do.
TEST(Adapters, EveryStageTakesLessThanTrainingAllWeights) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (const char* checkpointing : {"none", "selective", "full"}) {
      const StepPlan some = plan_of(job(adapters()), 2, 1, stage, checkpointing);
      const StepPlan all = plan_of(job({}), 2, 1, stage, checkpointing);
      EXPECT_LT(plan::explain(some).peak_bytes, plan::explain(all).peak_bytes) << stage << checkpointing;
    }
  }
}

}  // namespace
}  // namespace krigtune::adapters_test
