#include "report/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "cost/machine.h"
#include "search/model/limit_models.h"
#include "trial/measure_spec.h"
#include "trial/outcome.h"

namespace krigtune::report {
std::string field(std::optional<double> number) { return number ? number_text(*number) : ""; }

std::string field(std::optional<Bytes> bytes) { return bytes ? fmt::format("{}", bytes->count) : ""; }

std::string field(std::optional<bool> flag) { return flag ? (*flag ? "true" : "false") : ""; }

std::vector<std::string> fields(const space::Configuration& configuration, const std::vector<std::string>& columns) {
  std::vector<std::string> row;
  row.reserve(columns.size());
  for (const std::string& column : columns) {
    const space::Value* value = configuration.find(column);
    row.push_back(value == nullptr ? "" : space::to_string(*value));
  }
  return row;
}

void append(std::vector<std::string>& row, const std::vector<std::string>& more) {
  row.insert(row.end(), more.begin(), more.end());
}

const trial::Measured* measured_of(const journal::Trial& trial) {
  return trial.outcome ? std::get_if<trial::Measured>(&*trial.outcome) : nullptr;
}

std::optional<double> value_sem_of(const journal::Trial& trial) {
  const trial::Measured* result = measured_of(trial);
  return result != nullptr && result->value_sem > 0.0 ? std::optional(result->value_sem) : std::nullopt;
}

std::optional<double> metric_of(const journal::Trial& trial, const std::string& name) {
  const trial::Measured* result = measured_of(trial);
  if (result == nullptr) return std::nullopt;
  const auto found = result->metrics.find(name);
  return found == result->metrics.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Bytes> peak_memory_of(const journal::Trial& trial) {
  const trial::Measured* result = measured_of(trial);
  return result == nullptr ? std::nullopt : result->peak_memory;
}

namespace {

// The unit of a replayed table is unknown, unless the session says it.
bool has_our_unit(const session::Session& session, const session::Objective& objective) {
  return trial::find_metric(objective.metric) != nullptr && runner::traits_of(session.runner).has_our_units;
}

bool has_our_unit(const session::Session& session) { return has_our_unit(session, session.objective); }

// Four significant digits, but no exponent for numbers that people write out.
std::string digits(double value) {
  const double size = std::abs(value);
  return size >= 1000.0 && size < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

}  // namespace

std::string emulated_note(const session::Session& session) {
  const std::string label = answer::emulated_label(session);
  return label.empty() ? "" : fmt::format(" ({})", label);
}

bool is_speed(const session::Objective& objective) {
  const trial::Metric* known = trial::find_metric(objective.metric);
  return known != nullptr && known->is_speed;
}

std::string value_text(const session::Session& session, double value) {
  return value_text(session, session.objective, value);
}

std::string value_text(const session::Session& session, const session::Objective& objective, double value) {
  const std::string& own = objective.unit;
  const bool is_memory = &objective != &session.objective && objective.field == trial::kPeakMemory && own.empty();
  if (is_memory && value >= 0.0 && value < 1e18) return to_string(Bytes{std::llround(value)});
  if (!has_our_unit(session, objective)) return own.empty() ? digits(value) : fmt::format("{} {}", digits(value), own);
  const trial::Metric& metric = *trial::find_metric(objective.metric);
  if (metric.unit.empty()) return duration_text(value);
  return fmt::format("{} {}", digits(value * metric.units_a_value), metric.unit);
}

std::string value_with_half_width(const session::Session& session, double value, double half_width) {
  const std::string text = value_text(session, value);
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string unit = text.substr(end);
  // The half width has the unit of the value, even if it would be written in another one: 48.2 ms ±0.3 ms, not ±300 us.
  const double shown = std::stod(text.substr(0, end));
  if (unit.find_first_of("0123456789") != std::string::npos || shown == 0.0 || value == 0.0) {
    return fmt::format("{} ±{}", text, value_text(session, half_width));
  }
  const double half = half_width * shown / value;
  return fmt::format("{} ±{}{}", text.substr(0, end),
                     half < 10.0 ? fmt::format("{:.2g}", half) : fmt::format("{:.0f}", half), unit);
}

std::string value_or_named_text(const session::Session& session, double value) {
  return has_our_unit(session) || !session.objective.unit.empty() ? value_text(session, value)
                                                                  : named_value_text(session, value);
}

std::string mean_text(int measurements) {
  return measurements < 2 ? "" : fmt::format(", the mean of {} trials", measurements);
}

std::string named_value_text(const session::Session& session, double value) {
  return session.objective.metric + " " + value_text(session, value);
}

std::string interval_text(const session::Session& session, double low, double high) {
  const std::string from = value_text(session, low);
  const std::string to = value_text(session, high);
  const std::size_t end = from.find(' ');
  const std::string unit = end == std::string::npos ? "" : from.substr(end);
  const bool is_plain = unit.find_first_of("0123456789") == std::string::npos;  // not "1 min 17 s"
  const bool share_it = !unit.empty() && is_plain && to.substr(std::min(to.find(' '), to.size())) == unit;
  return fmt::format("{} to {}", share_it ? from.substr(0, end) : from, to);
}

std::string gain_text(double gain) {
  constexpr double kMostPlain = 1e6;
  if (std::isinf(gain)) return "over 1e308x";
  if (std::abs(gain) >= kMostPlain) return fmt::format("{:.2e}x", gain);
  const int decimals = std::abs(gain) < 9.995 ? 2 : std::abs(gain) < 99.95 ? 1 : 0;  // three significant digits
  return fmt::format("{:.{}f}x", gain, decimals);
}

std::string percent_text(double fraction) {
  const double percent = 100.0 * fraction;
  return percent < 99.5 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string rate_text(double rate) {
  return rate >= 1000.0 ? fmt::format("{:.0f}", rate) : fmt::format("{:#.3g}", rate);
}

std::string share_text(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

std::string mfu_convention(const session::Session& session) {
  constexpr double kTera = 1e12;
  if (!session.workload || !session.cluster.device) return "";
  const workload::Precision precision = session.workload->precision;
  const double peak = cost::peak_flops_per_s(*session.cluster.device, precision);
  if (!(peak > 0.0)) return "";
  return fmt::format(
      "MFU: model FLOPs as in PaLM (Chowdhery et al. 2022), attention included and not halved by the causal mask, of "
      "{:g} TFLOP/s in {} a GPU; HFU counts recomputation too",
      peak / kTera, workload::to_string(precision));
}

std::string short_value_text(const space::Value& value) {
  constexpr double kLong = 1e5;
  std::string text = space::to_string(value);
  if (!space::is_number(value) || std::abs(space::as_number(value)) < kLong) return text;
  const double exponent = std::floor(std::log10(std::abs(space::as_number(value))));
  std::string shorter = fmt::format("{:.6g}e{:.0f}", space::as_number(value) / std::pow(10.0, exponent), exponent);
  return std::stod(shorter) == space::as_number(value) && shorter.size() < text.size() ? shorter : text;
}

std::string reason_text(const session::Session& session, const journal::Trial& trial) {
  const std::string broken = search::broken_limits(session, trial);
  if (!broken.empty()) return "limit: " + broken;
  return trial.outcome ? trial::reason_text(*trial.outcome) : "";
}

std::string outcome_text(const session::Session& session, const journal::Trial& trial) {
  if (!trial.outcome) return "running";
  if (std::holds_alternative<trial::OutOfMemory>(*trial.outcome)) return "OOM";
  if (const auto* bounded = std::get_if<trial::Bounded>(&*trial.outcome)) {
    return (session.objective.maximize ? "<= " : ">= ") + value_text(session, bounded->at_best);
  }
  if (const auto value = search::value_of(trial, session.objective)) {
    const bool is_within = search::broken_limits(session, trial).empty();
    return value_text(session, *value) + (is_within ? "" : " (breaks a limit)");
  }
  return fmt::format("{} ({})", trial::status_text(*trial.outcome), trial::reason_text(*trial.outcome));
}

std::string short_text(const session::Session& session, const space::Configuration& configuration) {
  std::vector<std::string> parts;
  for (const space::Parameter& parameter : session.space.parameters()) {
    const space::Value* value = configuration.find(parameter.name);
    if (value == nullptr || (parameter.values.size() == 1 && parameter.index_of(*value) == 0)) continue;
    parts.push_back(parameter.name + "=" + space::to_string(*value));
  }
  return parts.empty() ? configuration.text() : join(parts, " ");
}

std::string run_noise_sentence(const session::Session& session) {
  const double noise = session.objective.run_noise;
  if (noise <= session::kUsualRunNoise) return "";
  return fmt::format("a trial is taken to differ by {} from run to run, as the session says", percent_text(noise));
}

}  // namespace krigtune::report
