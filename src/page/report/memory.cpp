#include <fmt/format.h>

#include <algorithm>

#include "forecast/plan_study.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/plan/memory_bars.h"
#include "page/report/sections.h"
#include "page/report/trial_bars.h"
#include "report/labels.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostMemoryBars = 6;

MemoryUnit unit_of(const RunFacts& facts) {
  constexpr double kLeastGib = 2.0;
  double largest = facts.session().usable_per_rank ? to_gib(*facts.session().usable_per_rank) : 0.0;
  for (const journal::Trial* trial : facts.closed()) {
    largest = std::max(largest, to_gib(report::peak_memory_of(*trial).value_or(Bytes{0})));
  }
  return largest >= kLeastGib ? MemoryUnit() : MemoryUnit{"MiB", 1024.0 * 1024.0};
}

std::string bytes_text(const std::optional<Bytes>& bytes) { return bytes ? escaped(to_string(*bytes)) : ""; }

std::string chosen_peaks(const RunFacts& facts, const std::vector<ChosenTrial>& chosen) {
  HtmlTable numbers{"", {"trial", "planned peak", "at", "measured peak"}, {}};
  for (const ChosenTrial& one : chosen) {
    const auto terms =
        forecast::memory_terms(facts.session(), facts.source().filter, one.trial->proposal.configuration);
    if (!terms) continue;
    numbers.rows.push_back({escaped(one.name), bytes_text(terms->peak), escaped(terms->peak_at),
                            bytes_text(report::peak_memory_of(*one.trial))});
  }
  return table(numbers);
}

std::string terms_figure(const RunFacts& facts) {
  const MemoryUnit unit = unit_of(facts);
  TrialBars bars;
  bars.drawing.title = "The peak, by what it is for";
  bars.drawing.description = "Planned before anything ran; the tables below have the numbers";
  bars.drawing.mark_name = "measured peak";
  bars.id = "memory-of-trials";
  bars.whole = "planned peak";
  bars.unit = unit.name;
  bars.chosen = chosen_trials(facts, kMostMemoryBars, true);
  bars.bar_of = [&](const journal::Trial& trial) -> std::optional<TrialBar> {
    const auto terms = forecast::memory_terms(facts.session(), facts.source().filter, trial.proposal.configuration);
    if (!terms) return std::nullopt;
    const std::optional<Bytes> peak = report::peak_memory_of(trial);
    return TrialBar{memory_parts(*terms, unit), peak ? std::optional(unit.of(*peak)) : std::nullopt};
  };
  bars.says =
      "Of other trials than the recommended one the name says what differs from it. One that ran out of memory "
      "although its bar ends before the line needed more than was planned, or there was less than the session says.";
  bars.numbers = chosen_peaks(facts, bars.chosen);
  scale_memory(bars.drawing, facts.session(), unit, 0.0);
  return trial_bars_figure(facts, std::move(bars));
}

std::string peaks_figure(const RunFacts& facts) {
  const MemoryUnit unit = unit_of(facts);
  Marks marks{"", Shape::kDot, 0, {}};
  std::vector<double> values;
  for (const journal::Trial* trial : facts.closed()) {
    const std::optional<Bytes> measured = report::peak_memory_of(*trial);
    const std::optional<Bytes> planned = trial->proposal.predicted_memory;
    if (!measured || !planned || planned->count <= 0) continue;
    marks.marks.push_back(
        {.x = unit.of(*measured), .y = unit.of(*planned), .tip = facts.tip_of(*trial), .link = facts.link_of(*trial)});
    values.insert(values.end(), {unit.of(*measured), unit.of(*planned)});
  }
  if (marks.marks.size() < 2) return "";
  Chart drawing;
  drawing.title = "Planned and measured peaks";
  drawing.description = "What was planned when a trial was proposed; the table of all trials has the measured peaks";
  drawing.x = axis_around(fmt::format("measured peak ({})", unit.name), values);
  drawing.y = axis_around(fmt::format("planned peak ({})", unit.name), values);
  const std::vector<double> ends = {drawing.x.min, drawing.x.max};
  drawing.lines = {{.name = "planned = measured", .hue = 5, .x = ends, .y = ends, .dashed = true}};
  drawing.marks = {marks};
  return figure({drawing.title, chart(drawing), "", ""});
}

}  // namespace

std::string memory(const RunFacts& facts) { return figures({terms_figure(facts), peaks_figure(facts)}); }

}  // namespace krigtune::page
