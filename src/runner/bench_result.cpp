#include "bench_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>

#include "krigtune/core/bench_exit.h"

namespace krigtune {
namespace {

constexpr const char* kStepTime = "step_time_s";

// All of them are so many per step time.
constexpr std::array kPerStep = {"samples_per_s", "tokens_per_s", "flops_per_s"};

// What the document says of itself and of what was asked: no results.
constexpr std::array kEchoed = {"schema_version", "seed", "configuration", "workload", "cluster"};

bool is_rate(const std::string& field) { return std::find(kPerStep.begin(), kPerStep.end(), field) != kPerStep.end(); }

void flatten_metrics(const Json& json, const std::string& prefix, std::map<std::string, double>& metrics) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = prefix.empty() ? key : prefix + "_" + key;
    if (value.is_object()) flatten_metrics(value, name, metrics);
    if (value.is_number()) metrics[name] = value.get<double>();
  }
}

std::optional<Bytes> bytes_field(const std::optional<Json>& document, const char* name) {
  if (!document || !document->contains(name) || !(*document)[name].is_number()) return std::nullopt;
  return Bytes{(*document)[name].get<std::int64_t>()};
}

Failed failed(FailureReason reason, const BenchEnd& end, const std::string& what = "") {
  std::string lines = what;
  if (!what.empty() && !end.last_lines.empty()) lines += "\n";
  return {reason, end.process.exit_code, lines + end.last_lines};
}

// What is wrong with the numbers, or "".
std::string complaint(const std::map<std::string, double>& metrics, const std::string& metric_field) {
  for (const std::string& name : {metric_field, std::string("step_time_s")}) {
    const auto found = metrics.find(name);
    if (found == metrics.end()) return fmt::format("the result has no number '{}'", name);
    const bool positive = name == "step_time_s" || is_rate(name);
    const bool good = positive ? found->second > 0.0 : found->second >= 0.0;
    if (!good || !std::isfinite(found->second)) {
      return fmt::format("the result's '{}' is {}", name, found->second);
    }
  }
  for (const char* name : {"step_time_sem_s", "arena_peak_bytes"}) {
    const auto found = metrics.find(name);
    if (found != metrics.end() && !(found->second >= 0.0 && std::isfinite(found->second))) {
      return fmt::format("the result's '{}' is {}", name, found->second);
    }
  }
  return "";
}

// The standard error of f(t) = c / t by the delta method: |f'(t)| sem_t = f sem_t / t.
double objective_sem(const std::map<std::string, double>& metrics, const std::string& metric_field) {
  const auto sem = metrics.find("step_time_sem_s");
  if (sem == metrics.end()) return 0.0;
  if (metric_field == "step_time_s") return sem->second;
  if (!is_rate(metric_field)) return 0.0;
  return metrics.at(metric_field) * sem->second / metrics.at("step_time_s");
}

Outcome measured_from_document(const BenchEnd& end, const std::string& metric_field) {
  if (!end.document) return failed(FailureReason::kBadResult, end, "its standard output is no JSON document");
  const Json& document = *end.document;
  const std::string status = document.contains("status") && document["status"].is_string() ? document["status"] : "";
  if (status != "ok") {
    return failed(FailureReason::kBadResult, end, fmt::format("exit code 0, but the result's status is '{}'", status));
  }
  Measured outcome;
  outcome.metrics = bench_metrics(document);
  const std::string wrong = complaint(outcome.metrics, metric_field);
  if (!wrong.empty()) return failed(FailureReason::kBadResult, end, wrong);
  outcome.value_sem = objective_sem(outcome.metrics, metric_field);
  outcome.peak_memory = bytes_field(end.document, "arena_peak_bytes");
  return outcome;
}

std::string signal_message(int number) {
  std::string text = fmt::format("ended by signal {} ({})", number, ::strsignal(number));
  if (number == SIGKILL) text += "; the system does this when the machine's memory is exhausted";
  return text;
}

}  // namespace

std::optional<Json> bench_document(const std::string& text) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  return document;
}

std::map<std::string, double> bench_metrics(const Json& document) {
  std::map<std::string, double> metrics;
  Json results = document;
  for (const char* key : kEchoed) results.erase(key);
  flatten_metrics(results, "", metrics);
  return metrics;
}

std::optional<Provisional> provisional_objective(const std::map<std::string, double>& metrics,
                                                 const std::string& metric_field) {
  const bool known = metric_field == kStepTime || is_rate(metric_field);
  const auto steps = metrics.find("steps");
  if (!known || steps == metrics.end() || metrics.count("step_time_sem_s") == 0) return std::nullopt;
  if (!complaint(metrics, metric_field).empty()) return std::nullopt;
  return Provisional{metrics.at(metric_field), objective_sem(metrics, metric_field),
                     static_cast<std::int64_t>(steps->second)};
}

Outcome bench_outcome(const BenchEnd& end, const std::string& metric_field) {
  const ProcessResult& process = end.process;
  if (!process.start_error.empty()) {
    return failed(FailureReason::kEnvironment, end, "krigtune-bench does not start: " + process.start_error);
  }
  if (process.stopped) return failed(FailureReason::kInterrupted, end);
  // Unless it had come to its own end in the meantime.
  if (process.cut_short && end.bound && process.exit_code != BenchExit::kOk) return Bounded{*end.bound};
  if (process.timed_out) {
    return failed(FailureReason::kTimeout, end, fmt::format("ended after {:.1f} s", process.wall_s));
  }
  if (process.hung) {
    const std::string last = end.last_heartbeat.empty() ? "none" : end.last_heartbeat;
    return failed(FailureReason::kHang, end,
                  fmt::format("no sign of life; ended after {:.1f} s; last heartbeat: {}", process.wall_s, last));
  }
  if (process.signal != 0) return failed(FailureReason::kCrash, end, signal_message(process.signal));
  switch (process.exit_code) {
    case BenchExit::kOk:
      return measured_from_document(end, metric_field);
    // Under a limit of its own it is not what the session predicted: that believed that it fits, and learns how much
    // was asked for.
    case BenchExit::kPredictedOutOfMemory:
      return OutOfMemory{bytes_field(end.document, "planned_peak_bytes"), end.limit_is_the_sessions};
    case BenchExit::kOutOfMemory:
      return OutOfMemory{bytes_field(end.document, "planned_peak_bytes"), false};
    case BenchExit::kBadInput:
      return failed(FailureReason::kInvalid, end);
    case BenchExit::kHang:
      return failed(FailureReason::kHang, end);
    case BenchExit::kNumericalFailure:
      return failed(FailureReason::kBadResult, end);
    case BenchExit::kEnvironmentLacks:
    case BenchExit::kNoDevice:
      return failed(FailureReason::kEnvironment, end);
    case BenchExit::kCommunication:
    default:
      // mpirun passes on what ended one of its processes.
      return failed(FailureReason::kCrash, end, process.exit_code > 128 ? signal_message(process.exit_code - 128) : "");
  }
}

}  // namespace krigtune
