#include "trial/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace krigtune::trial {
namespace {

constexpr std::array<std::pair<FailureReason, const char*>, 9> kReasons = {{
    {FailureReason::kTimeout, "timeout"},
    {FailureReason::kHang, "hang"},
    {FailureReason::kCrash, "crash"},
    {FailureReason::kInvalid, "invalid"},
    {FailureReason::kInterrupted, "interrupted"},
    {FailureReason::kLost, "lost"},
    {FailureReason::kBadResult, "bad_result"},
    {FailureReason::kEnvironment, "environment"},
    {FailureReason::kNotApplied, "not_applied"},
}};

struct StatusOf {
  const char* operator()(const Measured& /*outcome*/) const { return "ok"; }
  const char* operator()(const OutOfMemory& /*outcome*/) const { return "oom"; }
  const char* operator()(const Failed& /*outcome*/) const { return "failed"; }
  const char* operator()(const Bounded& /*outcome*/) const { return "bounded"; }
};

struct ReasonOf {
  std::string operator()(const Measured& /*outcome*/) const { return ""; }
  std::string operator()(const OutOfMemory& outcome) const { return outcome.predicted ? "predicted" : ""; }
  std::string operator()(const Failed& outcome) const { return to_string(outcome.reason); }
  std::string operator()(const Bounded& /*outcome*/) const { return ""; }
};

}  // namespace

const char* to_string(FailureReason reason) {
  for (const auto& [value, text] : kReasons) {
    if (value == reason) return text;
  }
  return "crash";
}

FailureReason failure_reason_from(const std::string& text) {
  for (const auto& [value, word] : kReasons) {
    if (text == word) return value;
  }
  return FailureReason::kCrash;
}

Outcome usable(Outcome outcome, const std::string& metric) {
  const auto* measured = std::get_if<Measured>(&outcome);
  if (measured == nullptr) return outcome;
  constexpr double kMost = 1e100;
  const auto found = measured->metrics.find(metric);
  if (found == measured->metrics.end()) return outcome;
  const double value = found->second;
  const double sem = measured->value_sem;
  if (std::isfinite(value) && std::abs(value) > kMost) {
    return Failed{FailureReason::kBadResult, 0,
                  fmt::format("'{}' is {}, which nothing can be calculated with", metric, value)};
  }
  if (std::isfinite(sem) && (sem > kMost || sem / kMost > std::abs(value))) {
    return Failed{FailureReason::kBadResult, 0,
                  fmt::format("the standard error of '{}' is {}, and its value {}", metric, sem, value)};
  }
  return outcome;
}

bool ran(const Outcome& outcome) {
  return std::holds_alternative<Measured>(outcome) || std::holds_alternative<Bounded>(outcome);
}

bool ran_out_of_memory(const Outcome& outcome) {
  const auto* oom = std::get_if<OutOfMemory>(&outcome);
  return oom != nullptr && !oom->predicted;
}

bool is_unforeseen_failure(const Outcome& outcome) {
  return std::holds_alternative<Failed>(outcome) || ran_out_of_memory(outcome);
}

const char* status_text(const Outcome& outcome) { return std::visit(StatusOf{}, outcome); }

std::string reason_text(const Outcome& outcome) { return std::visit(ReasonOf{}, outcome); }

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

}  // namespace krigtune::trial
