// The result file of a command trial. Any program may have written it, so every error in it is an outcome.
#include "runner/command_result.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace krigtune::runner {
namespace {

constexpr std::size_t kMostMetrics = 1000;  // each becomes a column of trials.csv

// Fields that describe the result, so they do not become columns.
constexpr std::array kReserved = {"status", "reason", "value_sem", "peak_memory_bytes"};

trial::Failed bad(const std::string& what) { return {trial::FailureReason::kBadResult, 0, "the result " + what}; }

// Returns what is wrong with text that is no JSON.
std::string parse_error(const std::string& text, const UserError& error) {
  std::string what = fmt::format("is {}", error.what());
  if (text.find("NaN") != std::string::npos || text.find("Infinity") != std::string::npos) {
    what += "; JSON has no NaN and no Infinity, write null";
  }
  return what;
}

void flatten_result(const Json& object, const std::string& prefix, std::map<std::string, double>& metrics) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : prefix + "_" + key;
    if (prefix.empty() && is_one_of(key, kReserved)) continue;
    if (value.is_object()) flatten_result(value, name, metrics);
    if (value.is_number()) metrics[name] = value.get<double>();
  }
}

// Reads a number of at least 0 that may be absent; otherwise sets the complaint.
std::optional<double> not_negative(const Json& result, const char* name, std::string& complaint) {
  const auto found = result.find(name);
  if (found == result.end() || found->is_null()) return std::nullopt;
  if (!found->is_number() || !(found->get<double>() >= 0.0)) {
    complaint = fmt::format("has {} as '{}', where a number of 0 or more was expected", found->dump(), name);
    return std::nullopt;
  }
  return found->get<double>();
}

std::string objective_complaint(const Json& result, const std::map<std::string, double>& metrics,
                                const std::string& metric) {
  const auto found = metrics.find(metric);
  if (found != metrics.end()) {
    if (found->second > 0.0 || trial::find_metric(metric) == nullptr) return "";
    return fmt::format("has {} as '{}', which must be above 0", found->second, metric);
  }
  const auto there = result.find(metric);
  if (there != result.end()) {
    constexpr std::size_t kShown = 60;
    const std::string dump = there->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, kShown);
    return fmt::format("has {} as '{}', where a number was expected", dump, metric);
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  const std::string near = nearest_name(metric, names);
  return fmt::format("has no number '{}'{}", metric, near.empty() ? "" : fmt::format(" (but '{}')", near));
}

trial::Outcome read_measured(const Json& result, const std::string& metric) {
  std::string complaint;
  trial::Measured measured;
  flatten_result(result, "", measured.metrics);
  if (measured.metrics.size() > kMostMetrics) {
    return bad(fmt::format("has {} numbers; at most {} become columns", measured.metrics.size(), kMostMetrics));
  }
  measured.value_sem = not_negative(result, "value_sem", complaint).value_or(0.0);
  if (const auto bytes = not_negative(result, "peak_memory_bytes", complaint)) {
    constexpr double kMost = 1e18;
    if (*bytes > kMost) return bad(fmt::format("has {} as 'peak_memory_bytes'", *bytes));
    measured.peak_memory = Bytes{std::llround(*bytes)};
    if (metric == "peak_memory_bytes") measured.metrics[metric] = *bytes;
  }
  if (complaint.empty()) complaint = objective_complaint(result, measured.metrics, metric);
  if (!complaint.empty()) return bad(complaint);
  return measured;
}

// A program must not report an interrupted or a lost trial, because krigtune would run such a trial again.
trial::Failed read_failed(const std::string& reason) {
  const trial::FailureReason word = trial::failure_reason_from(reason);
  const bool ours = reason == trial::to_string(word) && word != trial::FailureReason::kInterrupted &&
                    word != trial::FailureReason::kLost;
  return {ours ? word : trial::FailureReason::kCrash, 0, ours ? "" : reason};
}

}  // namespace

CommandResult interpret_result(const std::string& text, const std::string& metric) {
  Json result;
  try {
    result = parse_program_json(text);
  } catch (const UserError& error) {
    const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
    return {bad(blank ? "is empty" : parse_error(text, error)), false};
  }
  if (!result.is_object()) return {bad("is not a JSON object"), false};
  for (const char* key : {"status", "reason"}) {
    if (result.contains(key) && !result[key].is_string() && !result[key].is_null()) {
      return {bad(fmt::format("has a '{}' that is not text", key)), false};
    }
  }
  const auto word = [&](const char* key) {
    return result.contains(key) && result[key].is_string() ? result[key].get<std::string>() : std::string();
  };
  const std::string status = result.contains("status") && result["status"].is_string() ? word("status") : "ok";
  if (status == "ok") return {read_measured(result, metric), false};
  if (status == "oom") return {trial::OutOfMemory{}, true};
  if (status == "failed") return {read_failed(word("reason")), true};
  return {bad(fmt::format("has the status '{}'; known: ok, oom, failed", status)), false};
}

trial::Outcome read_command_result(const std::string& text, const std::string& metric) {
  return interpret_result(text, metric).outcome;
}

}  // namespace krigtune::runner
