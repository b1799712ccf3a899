#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "measured_peaks.h"

namespace krigtune {
namespace {

void report(const char* name, const std::vector<MeasuredStep>& steps, bool print, bool allocated) {
  std::map<std::string, std::unique_ptr<MemoryModel>> models;
  std::vector<double> errors, signed_errors;
  int ran_invalid = 0, invalid = 0, rejected = 0, ran = 0, failed = 0, foreseen = 0, doubted = 0, conservative = 0;
  for (const MeasuredStep& step : steps) {
    auto& model = models[to_json(step.workload).dump() + std::to_string(int(step.workload.framework)) + std::to_string(step.cluster.ranks())];
    if (!model) model = std::make_unique<MemoryModel>(step.workload, step.cluster, MemorySpec{});
    MemoryEstimate e;
    MemoryVerdict v;
    try {
      e = model->estimate(step.configuration);
      v = model->verdict(step.configuration, {(std::int64_t)step.capacity_bytes}, {INT64_MAX});
    } catch (const std::exception&) {
      (step.ran ? ran_invalid : invalid)++;
      continue;
    }
    const bool unlikely = v.verdict == Verdict::kTooLarge || v.probability_fits < 0.5;
    (step.ran ? ran : failed)++;
    if (!step.ran) foreseen += unlikely;
    if (step.ran) {
      rejected += v.verdict == Verdict::kTooLarge;
      doubted += unlikely;
      conservative += v.verdict == Verdict::kFits;
    }
    if (step.peak_bytes > 0) {
      const double p = allocated ? double(e.expected.count - e.overhead_bytes) : double(e.expected.count);
      errors.push_back(std::abs(p / step.peak_bytes - 1));
      signed_errors.push_back(p / step.peak_bytes - 1);
      if (print) {
        printf("%s %-40s meas %.2f pred %.2f (%+.1f%%) opt %.2f cons %.2f GB %s @%s\n", name, step.space.c_str(), step.peak_bytes / 1e9, p / 1e9, 100 * (p / step.peak_bytes - 1), double(e.optimistic.count) / 1e9, double(e.conservative.count) / 1e9, step.configuration.text().c_str(), e.peak_at.c_str());
      }
    } else if (print && (step.ran == unlikely)) {
      printf("%s %s %-20s pred %.2f opt %.2f GB cap %.2f %s @%s\n", name, step.ran ? "ran" : "failed", step.space.c_str(), double(e.expected.count) / 1e9, double(e.optimistic.count) / 1e9, step.capacity_bytes / 1e9, step.configuration.text().c_str(), e.peak_at.c_str());
    }
  }
  std::sort(errors.begin(), errors.end());
  std::sort(signed_errors.begin(), signed_errors.end());
  printf("== %s: invalid ran %d failed %d; ran %d rejected %d doubted %d surely-fit %d | failed %d foreseen %d", name, ran_invalid, invalid, ran, rejected, doubted, conservative, failed, foreseen);
  if (!errors.empty()) printf(" | median err %.2f%% p90 %.2f%% max %.1f%% bias %.2f%%", 100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10], 100 * errors.back(), 100 * signed_errors[signed_errors.size() / 2]);
  printf("\n");
}

TEST(MemoryTables, Print) {
  const bool all = getenv("ALL") != nullptr;
  const std::string which = all ? getenv("ALL") : "";
  report("b200", b200_steps(), which.find('b') != std::string::npos, true);
  report("fsdp", llmfoundry_steps(), which.find('f') != std::string::npos, false);
  report("ultrascale", ultrascale_steps(), which.find('u') != std::string::npos, false);
  report("bigscience", bigscience_steps(), which.find('s') != std::string::npos, false);
}

}  // namespace
}  // namespace krigtune
