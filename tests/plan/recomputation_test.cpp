// Modules that are computed again: what is kept instead, and which operations are added, against closed forms. That the
// plans are correct is what random plans with modules show (check_plan_test.cpp, and the executors' tests).
#include "plan/recomputation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "plan/check/check_plan.h"
#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"

namespace krigtune::recomputation_test {
namespace {

using plan::StepPlan;
using schedule::OpKind;

constexpr std::int64_t kLayers = 2, kTokens = 8, kHidden = 32, kHeads = 4, kFfn = 64;
constexpr std::int64_t kExperts = 4, kPerToken = 2, kExpertFfn = 24, kSharedFfn = 40;
constexpr std::int64_t kQRank = 12, kKvRank = 20, kNope = 8, kRope = 4, kValue = 6;

workload::Workload dense() {
  workload::Workload workload;
  workload.model = {.layers = kLayers,
                    .hidden = kHidden,
                    .heads = kHeads,
                    .kv_heads = kHeads,
                    .ffn_hidden = kFfn,
                    .vocab = 50,
                    .seq_len = kTokens};
  workload.model.gated_mlp = true;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.model.positions = workload::Positions::kRotary;
  workload.precision = workload::Precision::kBf16;
  workload.framework = workload::Framework::kMegatron;
  return workload;
}

workload::Workload mixture() {
  workload::Workload workload = dense();
  workload.model.experts = {kExperts, kPerToken, kExpertFfn, kSharedFfn};
  return workload;
}

workload::Workload latent() {
  workload::Workload workload = dense();
  workload.model.latent = {kQRank, kKvRank, kNope, kRope, kValue};
  return workload;
}

// "": nothing is computed again.
StepPlan plan_of(const workload::Workload& workload, const std::string& modules, std::int64_t tensor_parallel = 1,
                 std::int64_t steps = 1) {
  const std::string checkpointing = modules.empty() ? "none" : "selective";
  return plan::build_plan(workload, cpu_ranks(tensor_parallel),
                          {{"micro_batch", std::int64_t{1}},
                           {"gradient_accumulation_steps", steps},
                           {"tensor_parallel", tensor_parallel},
                           {"sequence_parallel", tensor_parallel > 1},
                           {"activation_checkpointing", checkpointing},
                           {"recompute_modules", modules.empty() ? std::string("usual") : modules}});
}

// Of one layer.
std::int64_t freed_bytes(const workload::Workload& workload, const std::string& modules) {
  const std::int64_t freed = kept_bytes(plan_of(workload, "")) - kept_bytes(plan_of(workload, modules));
  EXPECT_EQ(freed % kLayers, 0);
  return freed / kLayers;
}

// How many operations of each kind are computed again in a layer.
std::map<OpKind, std::int64_t> again(const StepPlan& plan) {
  std::map<OpKind, std::int64_t> kinds;
  for (const plan::Operation& operation : plan.operations)
    if (operation.phase == schedule::Phase::kRecompute && operation.layer == 0) ++kinds[operation.kind];
  return kinds;
}

using Kinds = std::map<OpKind, std::int64_t>;

// The output is what the next product keeps, so that only the logarithms of sums (fp32) are not kept.
TEST(Recomputation, TheCoreOfAttentionIsComputedAgainForItsStatistics) {
  EXPECT_EQ(freed_bytes(dense(), "core_attn"), kTokens * kHeads * 4);
  EXPECT_EQ(again(plan_of(dense(), "core_attn")), (Kinds{{OpKind::kAttentionForward, 1}}));
}

// Norms that are fused with the product behind them, as those of an ordinary dense model, are no modules.
TEST(Recomputation, NormsAreModulesBeforeLatentsAndExperts) {
  EXPECT_EQ(freed_bytes(dense(), "layernorm"), 0);
  const std::int64_t norm = kTokens * (2 * kHidden + 4);  // output, and the inverse deviation in fp32
  EXPECT_EQ(freed_bytes(mixture(), "layernorm"), norm);
  EXPECT_EQ(freed_bytes(latent(), "layernorm"), norm);
  EXPECT_EQ(again(plan_of(mixture(), "layernorm")), (Kinds{{OpKind::kRmsNormForward, 1}}));
}

// Queries, keys and values of all heads, and the norms of the latents, of which only the latents stay.
TEST(Recomputation, HeadsAreMadeOfLatentsAgain) {
  const std::int64_t heads = kHeads * (2 * (kNope + kRope) + kValue);
  const std::int64_t norms = 2 * (kQRank + kKvRank) + 4 + 4;
  EXPECT_EQ(freed_bytes(latent(), "mla_up_proj"), kTokens * (2 * heads + norms));
  EXPECT_EQ(again(plan_of(latent(), "mla_up_proj")), (Kinds{{OpKind::kRmsNormForward, 1},
                                                            {OpKind::kLatentNormForward, 1},
                                                            {OpKind::kLinearForward, 2},
                                                            {OpKind::kLatentHeadsForward, 1}}));
}

TEST(Recomputation, ADenseMlpKeepsItsInputAlone) {
  EXPECT_EQ(freed_bytes(dense(), "mlp"), kTokens * (2 * (kHidden + 3 * kFfn) + 4));
  EXPECT_EQ(again(plan_of(dense(), "mlp")),
            (Kinds{{OpKind::kRmsNormForward, 1}, {OpKind::kLinearForward, 2}, {OpKind::kSwigluForward, 1}}));
  EXPECT_EQ(freed_bytes(mixture(), "mlp"), 0) << "experts are none";
}

TEST(Recomputation, ExpertsAreRoutedAndComputedAgain) {
  const std::int64_t activation = kTokens * kPerToken * 2 * kExpertFfn;
  EXPECT_EQ(freed_bytes(mixture(), "moe_act"), activation);
  EXPECT_EQ(freed_bytes(mixture(), "shared_experts"), kTokens * 2 * 3 * kSharedFfn);
  const std::int64_t routed = kPerToken * (2 * (kHidden + 3 * kExpertFfn) + 4 + 4);
  EXPECT_EQ(freed_bytes(mixture(), "moe"), kTokens * (routed + 2 * kExperts + 2 * 3 * kSharedFfn));
  const Kinds kinds = again(plan_of(mixture(), "moe"));
  EXPECT_EQ(kinds.at(OpKind::kDispatchForward), 1) << "tokens travel again";
  EXPECT_EQ(kinds.at(OpKind::kCombineForward), 1);
  EXPECT_EQ(kinds.at(OpKind::kGroupedForward), 2);
  EXPECT_EQ(kinds.at(OpKind::kSwigluForward), 2);
  EXPECT_EQ(again(plan_of(mixture(), "moe+moe_act+shared_experts")), kinds) << "parts of moe";
}

TEST(Recomputation, ModulesAddUp) {
  workload::Workload workload = mixture();
  workload.model.latent = latent().model.latent;
  const auto freed = [&](const std::string& modules) { return freed_bytes(workload, modules); };
  EXPECT_EQ(freed("layernorm,mla_up_proj moe_act"), freed("layernorm") + freed("mla_up_proj") + freed("moe_act"));
  EXPECT_EQ(freed("core_attn+moe"), freed("core_attn") + freed("moe"));
}

// Every value that is read was written, and every gradient is that of the forward pass.
TEST(Recomputation, PlansAreCorrect) {
  workload::Workload both = mixture();
  both.model.latent = latent().model.latent;
  both.model.experts.dense_layers = 1;
  both.framework = workload::Framework::kKrigtune;
  const auto expect_correct = [](const workload::Workload& workload, const char* modules, std::int64_t ranks) {
    const plan::PlanFindings findings = plan::check_plan(plan_of(workload, modules, ranks, 2));
    EXPECT_TRUE(findings.empty()) << modules << ", " << ranks << " ranks: " << findings.front();
  };
  for (const std::int64_t ranks : {1, 2}) {
    for (const char* modules : {"", "core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts",
                                "layernorm+mla_up_proj+moe_act", "core_attn+layernorm+mla_up_proj+mlp+moe"}) {
      for (const std::int64_t expert_latent : {0, 12}) {
        both.model.experts.latent = expert_latent;
        expect_correct(both, modules, ranks);
      }
    }
    for (const char* modules : {"core_attn", "layernorm", "mla_up_proj", "mlp", "core_attn+layernorm+mla_up_proj+mlp"})
      expect_correct(latent(), modules, ranks);
  }
}

// With tensor and sequence parallelism an MLP gathers its tokens and reduces its sums again.
TEST(Recomputation, RepeatsTheExchangesOfAModule) {
  const auto exchanges = [](const StepPlan& plan) {
    std::int64_t count = 0;
    for (const plan::Operation& operation : plan.operations)
      count += operation.group == schedule::Group::kTensor && plan::is_collective(operation.kind) ? 1 : 0;
    return count;
  };
  for (const std::int64_t steps : {1, 3}) {
    EXPECT_EQ(exchanges(plan_of(dense(), "mlp", 2, steps)) - exchanges(plan_of(dense(), "", 2, steps)),
              steps * kLayers * 2);
  }
}

TEST(Recomputation, MeansNothingUnlessItIsSelective) {
  const auto plan = [](const char* checkpointing, const char* modules) {
    return plan::build_plan(
        mixture(), cpu_ranks(1),
        {{"activation_checkpointing", std::string(checkpointing)}, {"recompute_modules", std::string(modules)}});
  };
  for (const char* checkpointing : {"none", "full"})
    EXPECT_EQ(plan(checkpointing, "moe").arena_bytes, plan(checkpointing, "usual").arena_bytes);
  const auto known = schedule::knobs_of(
      mixture(), cpu_ranks(1),
      {{"activation_checkpointing", std::string("selective")}, {"recompute_modules", std::string("mla_upproj")}});
  ASSERT_TRUE(std::holds_alternative<schedule::NotModelled>(known));
  EXPECT_NE(std::get<schedule::NotModelled>(known).hint.find("mla_up_proj"), std::string::npos);
}

TEST(Recomputation, RefusesWhatMegatronRefuses) {
  const auto is_modelled = [](const workload::Workload& workload, space::Configuration configuration) {
    configuration.set("activation_checkpointing", std::string("selective"));
    return std::holds_alternative<schedule::Knobs>(schedule::knobs_of(workload, cpu_ranks(2), configuration));
  };
  const auto with = [](const char* modules) {
    return space::Configuration{
        {"recompute_modules", std::string(modules)}, {"expert_parallel", std::int64_t{2}}, {"moe_overlap", true}};
  };
  EXPECT_FALSE(is_modelled(mixture(), with("moe")));
  EXPECT_TRUE(is_modelled(mixture(), with("moe_act")));
  workload::Workload delayed = mixture();
  delayed.training.products = workload::ProductFormat::kFp8Delayed;
  EXPECT_FALSE(is_modelled(delayed, with("layernorm")));
  EXPECT_TRUE(is_modelled(delayed, with("mla_up_proj")));
}

}  // namespace
}  // namespace krigtune::recomputation_test
