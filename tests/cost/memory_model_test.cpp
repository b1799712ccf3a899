#include "krigtune/cost/memory_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/random_plans.h"

namespace krigtune {
namespace {

MemoryEstimate estimate_of(const PlanCase& drawn) {
  return MemoryModel(drawn.workload, drawn.cluster, {}).estimate(drawn.configuration);
}

TEST(MemoryModel, FollowsThePlanOfRandomConfigurations) {
  RandomPlans plans(7);
  std::vector<double> errors, arenas;
  for (int i = 0; i < sweep(6000); ++i) {
    const PlanCase drawn = plans.next();
    const MemoryReport report = explain(drawn.plan());
    const MemoryEstimate estimate = estimate_of(drawn);
    const auto planned = static_cast<double>(report.lower_bound_bytes);
    const double error = std::abs(static_cast<double>(estimate.expected.count) / planned - 1.0);
    errors.push_back(error);
    arenas.push_back(static_cast<double>(report.peak_bytes) / static_cast<double>(estimate.expected.count));
    if (!(error <= 0.002)) {
      printf("%+.4f plan %ld est %ld %s | %s vs %s\n", static_cast<double>(estimate.expected.count) / planned - 1.0,
             report.lower_bound_bytes, estimate.expected.count, drawn.text().c_str(), report.peak_at.c_str(),
             estimate.peak_at.c_str());
      for (int t = 0; t < kTermCount; ++t)
        printf("  %s %ld %ld\n", to_string(Term(t)), report.term_bytes[t], estimate.term_bytes[t]);
    }
  }
  std::sort(errors.begin(), errors.end());
  std::sort(arenas.begin(), arenas.end());
  printf("arena min %g median %g p99 %g max %g\n", arenas.front(), arenas[arenas.size() / 2],
         arenas[arenas.size() * 99 / 100], arenas.back());
  printf("median %g p90 %g p99 %g max %g\n", errors[errors.size() / 2], errors[errors.size() * 9 / 10],
         errors[errors.size() * 99 / 100], errors.back());
  EXPECT_LE(errors.back(), 0.03);
}

}  // namespace
}  // namespace krigtune
