#include "session/session_blocks.h"

#include <fmt/format.h>

#include "krigtune/core/text.h"

namespace krigtune {

Budget read_budget(const Json* json, const std::string& source, const std::string& pointer) {
  Budget budget;
  if (json == nullptr) return budget;
  JsonObject block(*json, source, pointer);
  const std::int64_t trials = block.integer("trials", budget.trials);
  budget.hours = block.optional_number("hours");
  const std::optional<std::int64_t> patience = block.optional_integer("patience");
  budget.gpu_hours = block.optional_number("gpu_hours");
  block.finish();
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

const char* to_string(GridOrder order) { return order == GridOrder::kSeed ? "seed" : "session"; }

GridOrder read_grid(const Json* json, const std::string& source, const std::string& pointer) {
  if (json == nullptr) return GridOrder::kSeed;
  JsonObject block(*json, source, pointer);
  const std::string word = block.text("order", to_string(GridOrder::kSeed));
  block.finish();
  for (const GridOrder order : {GridOrder::kSeed, GridOrder::kSession}) {
    if (word == to_string(order)) return order;
  }
  block.fail("order", fmt::format("unknown order '{}'", word), suggestion(word, {"seed", "session"}));
}

}  // namespace krigtune
