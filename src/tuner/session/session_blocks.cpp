#include "session/session_blocks.h"

#include <fmt/format.h>

#include "krigtune/core/text.h"

namespace krigtune {

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
  budget.run_gpu_hours = block.optional_number("run_gpu_hours");
  // Who says what will be trained has said what a gain is worth: the default guesses it.
  budget.least_gain = block.number("least_gain", budget.run_gpu_hours ? 0.0 : budget.least_gain);
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
