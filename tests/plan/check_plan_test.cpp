#include "plan/check/check_plan.h"

#include <gtest/gtest.h>

#include "plan/memory.h"
#include "plan/mutants.h"
#include "plan/random_plans.h"
#include "plan/reference_run.h"

namespace krigtune::check_plan_test {

// Nothing says what other parameters compute, so they have no data flow.
bool has_others(const PlanCase& drawn) { return drawn.workload.model.others != workload::OtherParameters{}; }

void find_nothing_in(const PlanCase& drawn, const plan::StepPlan& plan) {
  const plan::PlanFindings findings = plan::check_plan(plan);
  EXPECT_TRUE(findings.empty()) << drawn.text() << "\n" << findings.front();
}

TEST(CheckPlan, FindsNothingInPlansOfOtherOptimizersKernelsAndLosses) {
  RandomPlans draws(2);
  for (int checked = 0; checked < sweep(100);) {
    const PlanCase drawn = draws.with_more_parts(draws.next_predicted());
    // The checker follows the tokens of a whole micro-step, and does not know the parts of a fused loss.
    if (drawn.workload.training.loss == workload::LossKind::kFused || has_others(drawn)) continue;
    find_nothing_in(drawn, drawn.plan());
    ++checked;
  }
}

TEST(CheckPlan, FindsNothingInThePlansOfRandomModelsAndConfigurations) {
  RandomPlans draws(1);
  for (int i = 0; i < sweep(400); ++i) {
    const PlanCase drawn = draws.with_more_parts(draws.next());
    if (has_others(drawn)) continue;
    find_nothing_in(drawn, drawn.plan());
  }
}

TEST(CheckPlan, FindsNothingInPlansThatTrainAdapters) {
  RandomPlans draws(3);
  for (int checked = 0; checked < sweep(200);) {
    const PlanCase drawn = draws.with_adapters(draws.next());
    if (has_others(drawn)) continue;
    find_nothing_in(drawn, drawn.plan());
    ++checked;
  }
}

// Parts of a model of which tensor ranks compute sums, or gather tokens.
TEST(CheckPlan, FindsNothingWhereTensorRanksShareExpertsAndFurtherTokens) {
  workload::Workload workload = small_workload();
  workload.model.kv_heads = 2;
  for (const std::int64_t expert_latent : {0, 12}) {
    for (const std::int64_t shared : {0, 16}) {
      for (const std::int64_t dense_layers : {0, 1, 3}) {
        for (const bool has_bias : {false, true}) {
          for (const std::int64_t further_tokens : {0, 2}) {
            for (const bool sequence_parallel : {false, true}) {
              workload.model.experts = {3, 2, 12, shared, dense_layers};
              workload.model.experts.latent = expert_latent;
              workload.model.mlp_bias = has_bias;
              workload.model.mtp = {further_tokens, shared > 0, {}};
              workload::resolve(workload.model);
              PlanCase of{workload, cpu_ranks(4), knobs(2, 1, 2, 5'000, true)};
              of.configuration.set("tensor_parallel", std::int64_t{2});
              of.configuration.set("sequence_parallel", sequence_parallel);
              find_nothing_in(of, of.plan());
            }
          }
        }
      }
    }
  }
}

workload::Workload tiny_workload(bool llama) {
  workload::Workload workload;
  workload.model = {.layers = 1, .hidden = 16, .heads = 2, .kv_heads = 2, .ffn_hidden = 16, .vocab = 8, .seq_len = 2};
  if (!llama) return workload;
  workload.model.gated_mlp = true;
  workload.model.positions = workload::Positions::kRotary;
  workload.model.norm = workload::Norm::kRmsNorm;
  workload.precision = workload::Precision::kBf16;
  workload.gradient_clipping = 1.0;
  return workload;
}

void share_experts(workload::Workload& workload) {
  workload.model.experts = {2, 1, 8, 8};
  workload.model.experts.latent = 6;
}
void predict_a_further_token(workload::Workload& workload) {
  workload.model.mtp = {1, false, {}};
  workload::resolve(workload.model);
}
void orthogonalize(workload::Workload& workload) { workload.optimizer = workload::OptimizerKind::kMuon; }
void train_adapters(workload::Workload& workload) {
  workload.training.lora.rank = 3;
  workload.training.lora.dropout = 0.1;
  workload.model.qk_norm = workload::QkNorm::kHead;
}

std::vector<PlanCase> tiny_cases() {
  const auto knobs_of = [](std::int64_t stage, std::int64_t micro_steps, bool overlap) {
    space::Configuration configuration = knobs(stage, 1, micro_steps, 300, overlap);
    return configuration;
  };
  std::vector<PlanCase> cases;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    cases.push_back({tiny_workload(stage % 2 == 1), cpu_ranks(2), knobs_of(stage, stage == 1 ? 1 : 2, stage != 1)});
  }
  cases.push_back(cases[2]);
  cases.back().workload.dialect = workload::Dialect::kDeepSpeed;
  cases.push_back({tiny_workload(true), cpu_ranks(4), knobs_of(2, 1, true)});
  cases.back().configuration.set("tensor_parallel", std::int64_t{2});
  cases.back().configuration.set("offload_optimizer", std::string("cpu"));
  for (const auto change : {share_experts, predict_a_further_token, orthogonalize, train_adapters}) {
    cases.push_back({tiny_workload(true), cpu_ranks(4), knobs_of(change == orthogonalize ? 2 : 1, 1, true)});
    cases.back().configuration.set("tensor_parallel", std::int64_t{2});
    cases.back().configuration.set("sequence_parallel", change != orthogonalize);
    change(cases.back().workload);
  }
  cases.push_back({tiny_workload(false), cpu_ranks(2), knobs_of(3, 1, false)});
  cases.back().configuration.set("activation_checkpointing", std::string("full"));
  cases.back().configuration.set("offload_param", std::string("cpu"));
  return cases;
}

// Of frozen parameters alone nothing has a gradient, so that a mistake in what the forward pass computes of them shows
// nowhere. `name` is that of a mutant: "without 29 (add)".
bool is_in_frozen_forward(const PlanCase& of, const plan::StepPlan& plan, const std::string& name) {
  const std::size_t end = name.rfind(" (");
  if (!of.workload.training.freezes() || end == std::string::npos) return false;
  const std::size_t begin = name.find_last_of(' ', end - 1) + 1;
  const auto operation = static_cast<std::size_t>(std::stoul(name.substr(begin, end - begin)));
  return plan.operations.at(operation).phase == schedule::Phase::kForward;
}

// A mutant without findings must be correct: it has no races and leaves the same results behind. This is decided by
// executing it byte by byte (reference_run.h), and not by the checker.
TEST(CheckPlan, FindsEveryMistakeThatChangesWhatAStepDoes) {
  int found = 0;
  int equivalent = 0;
  for (const PlanCase& of : tiny_cases()) {
    const plan::StepPlan plan = of.plan();
    ASSERT_TRUE(plan::check_plan(plan).empty()) << of.text() << plan::check_plan(plan).front();
    const std::vector<std::uint64_t> left = ReferenceRun(plan).left_behind();
    constexpr std::size_t kStride = 12;
    Mutants(plan).for_each(kStride, [&](const std::string& name, const plan::StepPlan& mutant) {
      if (is_in_frozen_forward(of, plan, name)) return;
      if (!plan::check_plan(mutant).empty()) {
        ++found;
        return;
      }
      ++equivalent;
      EXPECT_FALSE(has_race(mutant)) << name << ": " << of.text();
      EXPECT_EQ(ReferenceRun(mutant).left_behind(), left) << name << ": " << of.text();
    });
  }
  RecordProperty("found", found);
  RecordProperty("equivalent", equivalent);
  EXPECT_GT(found, 5 * equivalent);
}

}  // namespace krigtune::check_plan_test
