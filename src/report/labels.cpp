#include "krigtune/report/labels.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "krigtune/core/text.h"

namespace krigtune {
namespace {

struct Unit {
  const char* field;  // of krigtune-bench's result
  double scale;
  const char* text;
};
constexpr std::array<Unit, 3> kUnits{
    {{"samples_per_s", 1.0, "samples/s"}, {"tokens_per_s", 1.0, "tokens/s"}, {"flops_per_s", 1e-12, "TFLOP/s"}}};

// Four significant digits, never an exponent for numbers that people write out.
std::string digits(double value) {
  const double size = std::abs(value);
  return size >= 1000.0 && size < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

}  // namespace

bool is_emulated(const Session& session) { return session.cluster.emulated_network.has_value(); }

std::string emulated_label(const Session& session) {
  return is_emulated(session) ? "emulated network " + session.cluster.emulated_network->name : "";
}

std::string emulated_note(const Session& session) {
  return is_emulated(session) ? fmt::format(" ({})", emulated_label(session)) : "";
}

std::string value_text(const Session& session, double value) {
  if (session.runner.kind == RunnerKind::kReplay) return digits(value);
  if (session.objective.field == "step_time_s") return duration_text(value);
  for (const Unit& unit : kUnits) {
    if (session.objective.field == unit.field) return digits(value * unit.scale) + " " + unit.text;
  }
  return digits(value);
}

std::string named_value_text(const Session& session, double value) {
  return session.objective.metric + " " + value_text(session, value);
}

std::string gain_text(double gain) { return fmt::format("{:.2f}x", gain); }

std::string outcome_text(const Session& session, const Trial& trial) {
  if (!trial.outcome) return "running";
  if (std::holds_alternative<OutOfMemory>(*trial.outcome)) return "OOM";
  if (const auto* bounded = std::get_if<Bounded>(&*trial.outcome)) {
    return (session.objective.maximize ? "<= " : ">= ") + value_text(session, bounded->at_best);
  }
  if (const auto value = value_of(trial, session.objective)) return value_text(session, *value);
  return fmt::format("{} ({})", status_text(*trial.outcome), reason_text(*trial.outcome));
}

std::string short_text(const Session& session, const Configuration& configuration) {
  std::vector<std::string> parts;
  for (const Parameter& parameter : session.space.parameters()) {
    const Value* value = configuration.find(parameter.name);
    if (value == nullptr || (parameter.values.size() == 1 && parameter.index_of(*value) == 0)) continue;
    parts.push_back(parameter.name + "=" + to_string(*value));
  }
  return parts.empty() ? configuration.text() : join(parts, " ");
}

}  // namespace krigtune
