#include "krigtune/plan/check_plan.h"

#include <gtest/gtest.h>

#include "krigtune/plan/memory.h"
#include "plan/random_plans.h"
#include <nlohmann/json.hpp>

namespace krigtune {
namespace {

std::string text(const PlanCase& of) {
  return to_json(of.workload).dump() + " " + std::to_string(of.cluster.ranks()) + " ranks " + of.configuration.text();
}

TEST(CheckPlan, FindsNothingInThePlansOfRandomModelsAndConfigurations) {
  RandomPlans draws(1);
  for (int i = 0; i < 400; ++i) {
    const PlanCase drawn = draws.next();
    const StepPlan plan = drawn.plan();
    const PlanFindings findings = check_plan(plan);
    EXPECT_TRUE(findings.empty()) << text(drawn) << "\n" << findings.front();
  }
}

}  // namespace
}  // namespace krigtune
