#include <fmt/format.h>

#include <algorithm>

#include "forecast/plan_study.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/plan/memory_bars.h"
#include "page/report/chosen.h"
#include "page/report/sections.h"
#include "report/labels.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostMemoryBars = 6;
constexpr double kLeastShown = 0.002;  // of the largest bar: thinner parts cannot be seen

MemoryUnit unit_of(const RunFacts& facts) {
  constexpr double kLeastGib = 2.0;
  double largest = facts.session().usable_per_rank ? to_gib(*facts.session().usable_per_rank) : 0.0;
  for (const journal::Trial* trial : facts.closed()) {
    largest = std::max(largest, to_gib(report::peak_memory_of(*trial).value_or(Bytes{0})));
  }
  return largest >= kLeastGib ? MemoryUnit() : MemoryUnit{"MiB", 1024.0 * 1024.0};
}

void drop_thin_parts(Bars& drawing, double longest) {
  const auto is_thin = [&](const std::string& name) {
    return std::all_of(drawing.bars.begin(), drawing.bars.end(), [&](const Bar& bar) {
      return std::all_of(bar.parts.begin(), bar.parts.end(),
                         [&](const BarPart& part) { return part.name != name || part.size < kLeastShown * longest; });
    });
  };
  for (std::size_t i = drawing.bars.front().parts.size(); i-- > 0;) {
    if (!is_thin(drawing.bars.front().parts[i].name)) continue;
    for (Bar& bar : drawing.bars) bar.parts.erase(bar.parts.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::string bytes_text(const std::optional<Bytes>& bytes) { return bytes ? escaped(to_string(*bytes)) : ""; }

std::string terms_figure(const RunFacts& facts) {
  const MemoryUnit unit = unit_of(facts);
  Bars drawing;
  drawing.title = "The peak, by what it is for";
  drawing.mark_name = "measured peak";
  HtmlTable numbers{"", {"trial", "planned peak", "at", "measured peak"}, {}};
  double longest = 0.0;
  bool is_measured = false;
  for (const ChosenTrial& one : chosen_trials(facts, kMostMemoryBars, true)) {
    const space::Configuration& configuration = one.trial->proposal.configuration;
    const auto terms = forecast::memory_terms(facts.session(), facts.source().filter, configuration);
    if (!terms) continue;
    const std::optional<Bytes> peak = report::peak_memory_of(*one.trial);
    Bar bar{one.name, memory_parts(*terms, unit), peak ? std::optional(unit.of(*peak)) : std::nullopt};
    is_measured = is_measured || peak;
    longest = std::max({longest, unit.of(terms->peak), bar.mark.value_or(0.0)});
    drawing.bars.push_back(std::move(bar));
    numbers.rows.push_back({escaped(one.name), bytes_text(terms->peak), escaped(terms->peak_at), bytes_text(peak)});
  }
  if (drawing.bars.empty()) return "";
  drop_thin_parts(drawing, longest);
  if (!is_measured) drawing.mark_name.clear();
  scale_memory(drawing, facts.session(), unit, longest);
  drawing.description = "Planned before anything ran; the table below has the numbers";
  const char* says =
      "Of other trials than the recommended one the name says what differs from it. One that ran out of memory "
      "although its bar ends before the line needed more than was planned, or there was less than the session says.";
  return figure({drawing.title, bars(drawing), says, table(numbers)});
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
  drawing.description = "What was planned when a trial was asked; the table of all trials has the measured peaks";
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
