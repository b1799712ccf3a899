#include "report/whole_run_text.h"

#include <fmt/format.h>

#include "core/text.h"
#include "core/units.h"
#include "report/fleet_text.h"

namespace krigtune::report {
namespace {

constexpr double kFew = 9.95;  // failures; of more, tenths say nothing

std::string time_text(double seconds) { return days_text(seconds / fleet::kDayInSeconds); }

}  // namespace

std::string whole_run_parts(const fleet::WholeRun& whole) {
  std::vector<std::string> parts = {"steps " + time_text(whole.steps_s)};
  if (whole.evaluation_s > 0.0) parts.push_back("evaluation and data " + time_text(whole.evaluation_s));
  if (whole.checkpoints_s > 0.0) parts.push_back("checkpoints " + time_text(whole.checkpoints_s));
  if (whole.failures > 0.0)
    parts.push_back(
        fmt::format("{:.{}f} failures {}", whole.failures, whole.failures < kFew ? 1 : 0, time_text(whole.failures_s)));
  return join(parts, ", ");
}

std::string checkpoint_sentence(const fleet::WholeRun& whole) {
  if (!whole.interval_s) return "";
  std::string text = fmt::format("a checkpoint every {}", duration_text(*whole.interval_s));
  if (!whole.best_interval_s || whole.interval_s == whole.best_interval_s)
    return text + (whole.best_interval_s ? ", which is best (Young 1974, Daly 2006)" : "");
  if (!whole.interval_is_far_off()) return text;
  return text + fmt::format("; every {} would be best (Young 1974, Daly 2006), and save {:.1f} % of the time",
                            duration_text(*whole.best_interval_s), 100.0 * (1.0 - *whole.best_wall_s / whole.wall_s));
}

std::string energy_text(const fleet::WholeRun& whole) {
  return whole.energy_kwh ? price_text(*whole.energy_kwh, "kWh") : "";
}

std::vector<std::string> whole_run_lines(const fleet::WholeRun& whole, const fleet::StepTimeRange& range) {
  const fleet::Estimate days = range.time(whole.wall_s / fleet::kDayInSeconds);
  std::vector<std::string> lines = {
      fmt::format("{} ({}, as {} took {:.2f} to {:.2f} times as long as predicted)", days_text(days.value),
                  days_range_text(days), range.subject, range.low, range.high),
      whole_run_parts(whole)};
  if (const std::string text = checkpoint_sentence(whole); !text.empty()) lines.push_back(text);
  if (const std::string text = energy_text(whole); !text.empty()) lines.push_back("energy: " + text);
  if (whole.wall_s == whole.steps_s)
    lines.emplace_back("evaluation, checkpoints and failures come on top, unless \"run\" in the session states them");
  return lines;
}

}  // namespace krigtune::report
