#include <fmt/format.h>

#include <algorithm>

#include "forecast/plan_study.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/chosen.h"
#include "page/report/sections.h"
#include "report/labels.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostMemoryBars = 6;
constexpr double kLeastShown = 0.002;  // of the largest bar: thinner parts cannot be seen

/// Of the drawings: small sessions are of MiB.
struct MemoryUnit {
  const char* name = "GiB";
  double bytes = 1024.0 * 1024.0 * 1024.0;
  double of(Bytes memory) const { return static_cast<double>(memory.count) / bytes; }
};

MemoryUnit unit_of(const RunFacts& facts) {
  constexpr double kLeastGib = 2.0;
  double largest = facts.session().usable_per_rank ? to_gib(*facts.session().usable_per_rank) : 0.0;
  for (const journal::Trial* trial : facts.closed()) {
    largest = std::max(largest, to_gib(report::peak_memory_of(*trial).value_or(Bytes{0})));
  }
  return largest >= kLeastGib ? MemoryUnit() : MemoryUnit{"MiB", 1024.0 * 1024.0};
}

std::vector<BarPart> memory_parts(const forecast::MemoryTerms& terms, const MemoryUnit& unit) {
  std::vector<BarPart> parts;
  for (int i = 0; i < schedule::kTermCount; ++i) {
    std::string name = schedule::to_string(static_cast<schedule::Term>(i));
    std::replace(name.begin(), name.end(), '_', ' ');
    parts.push_back({name, unit.of(Bytes{terms.term_bytes.at(static_cast<std::size_t>(i))})});
  }
  parts.push_back({"context and fragmentation", unit.of(Bytes{terms.other_bytes})});
  return parts;
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
  if (const std::optional<Bytes> usable = facts.session().usable_per_rank) {
    drawing.limit = unit.of(*usable);
    drawing.limit_name = fmt::format("usable by a rank: {}", to_string(*usable));
    longest = std::max(longest, *drawing.limit);
  }
  constexpr double kRoom = 1.03;
  drawing.axis = {.title = fmt::format("{} a rank, planned", unit.name), .min = 0.0, .max = kRoom * longest};
  drawing.axis.label = [](double memory) { return fmt::format("{:.4g}", memory); };
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

std::string memory(const RunFacts& facts) {
  std::vector<std::string> all;
  for (const std::string& one : {terms_figure(facts), peaks_figure(facts)}) {
    if (!one.empty()) all.push_back(one);
  }
  return figures(all);
}

}  // namespace krigtune::page
