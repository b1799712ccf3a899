#include "krigtune/runner/metrics.h"

#include <algorithm>
#include <array>

namespace krigtune {
namespace {

constexpr std::array<Metric, 5> kMetrics{{
    {MetricKind::kThroughput, "throughput", "samples_per_s", true, true, "samples/s", 1.0},
    {MetricKind::kTokensPerSecond, "tokens_per_second", "tokens_per_s", true, true, "tokens/s", 1.0},
    {MetricKind::kLatency, "latency", "step_time_s", false, true, "", 1.0},
    {MetricKind::kFlops, "flops", "flops_per_s", true, true, "TFLOP/s", 1e-12},
    {MetricKind::kGoodput, "goodput", "goodput", true, false, "samples/s", 1.0},
}};

}  // namespace

std::span<const Metric> known_metrics() { return kMetrics; }

const Metric* find_metric(std::string_view name) {
  const auto found =
      std::find_if(kMetrics.begin(), kMetrics.end(), [name](const Metric& metric) { return metric.name == name; });
  return found == kMetrics.end() ? nullptr : &*found;
}

bool tells_speed(std::string_view name_or_field) {
  return std::any_of(kMetrics.begin(), kMetrics.end(), [name_or_field](const Metric& metric) {
    return metric.name == name_or_field || metric.field == name_or_field;
  });
}

}  // namespace krigtune
