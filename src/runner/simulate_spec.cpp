// The session's block of the runner "simulate".
#include <fmt/format.h>

#include "krigtune/core/text.h"
#include "registry.h"

namespace krigtune {
namespace {

void check(const JsonObject& block, const char* key, double value, double low, double high) {
  if (value >= low && value <= high) return;
  block.fail(key, fmt::format("{} is out of range", number_text(value)),
             fmt::format("write a number from {} to {}", number_text(low), number_text(high)));
}

double spread(JsonObject& block, const char* key, double fallback) {
  constexpr double kMost = 2.0;  // a factor of 7, one time in three
  const double value = block.number(key, fallback);
  check(block, key, value, 0.0, kMost);
  return value;
}

double fraction(JsonObject& block, const char* key, double fallback) {
  constexpr double kMost = 0.9;  // something must run
  const double value = block.number(key, fallback);
  check(block, key, value, 0.0, kMost);
  return value;
}

void read_stragglers(JsonObject& block, SimulateSpec& spec) {
  if (block.find("stragglers") == nullptr) return;
  constexpr double kMost = 100.0;
  JsonObject stragglers = block.object("stragglers");
  spec.straggler_probability = fraction(stragglers, "probability", spec.straggler_probability);
  spec.straggler_slowdown = stragglers.number("slowdown", spec.straggler_slowdown);
  stragglers.finish();
  check(stragglers, "slowdown", spec.straggler_slowdown, 1.0, kMost);
}

void read_failures(JsonObject& block, SimulateSpec& spec) {
  if (block.find("failures") == nullptr) return;
  JsonObject failures = block.object("failures");
  spec.unforeseen_fraction = fraction(failures, "unforeseen_fraction", spec.unforeseen_fraction);
  spec.crash_probability = fraction(failures, "crash_probability", spec.crash_probability);
  failures.finish();
}

void read_today(JsonObject& block, SimulateSpec::Today& today) {
  if (block.find("today") == nullptr) return;
  constexpr double kMost = 100.0;
  JsonObject object = block.object("today");
  today.slowdown = object.number("slowdown", today.slowdown);
  today.seed = object.optional_integer("seed");
  object.finish();
  check(object, "slowdown", today.slowdown, 1.0 / kMost, kMost);
  if (today.seed.value_or(0) < 0) object.fail("seed", "is negative", "write 0 or more");
}

void read_simulate(JsonObject& block, const std::filesystem::path& /*base_dir*/, RunnerSpec& spec) {
  SimulateSpec& simulate = spec.simulate;
  simulate.noise = spread(block, "noise", simulate.noise);
  simulate.systematic_error = spread(block, "systematic_error", simulate.systematic_error);
  simulate.memory_error = spread(block, "memory_error", simulate.memory_error);
  read_stragglers(block, simulate);
  read_failures(block, simulate);
  simulate.seed = block.integer("seed", simulate.seed);
  if (simulate.seed < 0) block.fail("seed", "is negative", "write 0 or more");
  simulate.early_end = block.boolean("early_end", simulate.early_end);
  read_today(block, simulate.today);
}

void write_simulate(const RunnerSpec& spec, Json& block) {
  const SimulateSpec& simulate = spec.simulate;
  block["noise"] = json_number(simulate.noise);
  block["systematic_error"] = json_number(simulate.systematic_error);
  block["memory_error"] = json_number(simulate.memory_error);
  block["stragglers"] = {{"probability", json_number(simulate.straggler_probability)},
                         {"slowdown", json_number(simulate.straggler_slowdown)}};
  block["failures"] = {{"unforeseen_fraction", json_number(simulate.unforeseen_fraction)},
                       {"crash_probability", json_number(simulate.crash_probability)}};
  block["seed"] = simulate.seed;
  block["early_end"] = simulate.early_end;
  block["today"] = {{"slowdown", json_number(simulate.today.slowdown)},
                    {"seed", simulate.today.seed ? Json(*simulate.today.seed) : Json(nullptr)}};
}

}  // namespace

RunnerEntry simulate_runner_entry() { return {RunnerKind::kSimulate, "simulate", read_simulate, write_simulate}; }

}  // namespace krigtune
