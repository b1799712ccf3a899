#include "session/session_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "krigtune/core/json.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

struct KnownObjective {
  const char* metric;
  bool maximize;
  const char* bench_field;
};
constexpr std::array<KnownObjective, 5> kKnownObjectives{{
    {"throughput", true, "samples_per_s"},
    {"tokens_per_second", true, "tokens_per_s"},
    {"latency", false, "step_time_s"},
    {"flops", true, "flops_per_s"},
    {"goodput", true, "goodput"},
}};

const char* direction_text(bool maximize) { return maximize ? "maximize" : "minimize"; }

std::optional<bool> read_direction(JsonObject& block) {
  const std::string word = block.text("direction", "");
  if (word.empty()) return std::nullopt;
  if (word == "maximize" || word == "minimize") return word == "maximize";
  block.fail("direction", fmt::format("unknown direction '{}'", word), suggestion(word, {"maximize", "minimize"}));
}

Objective own_objective(JsonObject& block, const std::string& metric, std::optional<bool> maximize) {
  if (metric.empty()) block.fail("metric", "is empty", "name a field of the runner's result");
  if (!maximize) {
    block.fail("direction", fmt::format("is missing for the metric '{}'", metric),
               "write \"maximize\" or \"minimize\"; known without: throughput, tokens_per_second, latency, flops");
  }
  return {metric, *maximize, metric};
}

}  // namespace

Objective read_objective(const Json* json, const std::string& source, const std::string& pointer, RunnerKind runner) {
  const Json empty = Json::object();
  JsonObject block(json == nullptr ? empty : *json, source, pointer);
  const std::string metric = block.text("metric", "throughput");
  const std::optional<bool> maximize = read_direction(block);
  block.finish();
  const bool is_ours = runner == RunnerKind::kBench || runner == RunnerKind::kSimulate;
  if (metric == "goodput" && is_ours) {
    block.fail("metric", "'goodput' is not supported yet", "use \"throughput\"");
  }
  const auto known = std::find_if(kKnownObjectives.begin(), kKnownObjectives.end(),
                                  [&](const KnownObjective& candidate) { return candidate.metric == metric; });
  if (known == kKnownObjectives.end()) return own_objective(block, metric, maximize);
  if (maximize && *maximize != known->maximize) {
    block.fail(
        "direction",
        fmt::format("'{}' is to {}, not to {}", metric, direction_text(known->maximize), direction_text(*maximize)),
        "leave the direction out");
  }
  // A program of the user's reports the metric under its name; in a replayed table it is only a label.
  return {metric, known->maximize, is_ours ? known->bench_field : metric};
}

namespace {

// Of the rules that end a session before its budget is spent.
void check_expectations(const Budget& budget, const JsonObject& block) {
  for (const auto& [key, value] : {std::pair("regret", budget.regret), std::pair("least_gain", budget.least_gain)}) {
    if (value >= 0.0 && value < 1.0) continue;
    block.fail(key, fmt::format("{} is no fraction", value), "write 0.01 for 1 %, or 0 for no such rule");
  }
  if (!(budget.confidence >= 0.5 && budget.confidence < 1.0)) {
    block.fail("confidence", fmt::format("{} is not within 0.5 and 1", budget.confidence), "write 0.95 for 95 %");
  }
  if (budget.run_gpu_hours && !(*budget.run_gpu_hours > 0.0)) {
    block.fail("run_gpu_hours", "must be above 0", "write null for no such rule");
  }
}

}  // namespace

Budget read_budget(const Json* json, const std::string& source, const std::string& pointer) {
  Budget budget;
  if (json == nullptr) return budget;
  JsonObject block(*json, source, pointer);
  const std::int64_t trials = block.integer("trials", budget.trials);
  budget.hours = block.optional_number("hours");
  const std::optional<std::int64_t> patience = block.optional_integer("patience");
  budget.gpu_hours = block.optional_number("gpu_hours");
  budget.regret = block.number("regret", budget.regret);
  budget.confidence = block.number("confidence", budget.confidence);
  budget.least_gain = block.number("least_gain", budget.least_gain);
  budget.run_gpu_hours = block.optional_number("run_gpu_hours");
  block.finish();
  check_expectations(budget, block);
  constexpr std::int64_t kMost = 1'000'000;
  if (trials < 1 || trials > kMost) block.fail("trials", "out of range", "write a number from 1 to 1000000");
  if (budget.hours && !(*budget.hours > 0.0)) block.fail("hours", "must be above 0", "write null for no limit");
  if (budget.gpu_hours && !(*budget.gpu_hours > 0.0)) {
    block.fail("gpu_hours", "must be above 0", "write null for no limit");
  }
  if (patience && (*patience < 1 || *patience > kMost)) {
    block.fail("patience", "must be at least 1 trial", "write null for no such rule");
  }
  budget.trials = static_cast<int>(trials);
  if (patience) budget.patience = static_cast<int>(*patience);
  return budget;
}

}  // namespace krigtune
