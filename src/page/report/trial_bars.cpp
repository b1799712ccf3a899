#include "page/report/trial_bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "page/document.h"
#include "page/html/html.h"

namespace krigtune::page {
namespace {

constexpr double kLeastShown = 0.002;  // fraction of the largest bar; thinner parts cannot be seen
constexpr double kRoomBehind = 1.03;

struct TrialRow {
  const journal::Trial* trial = nullptr;
  TrialBar bar;
};

double sum_of(const std::vector<BarPart>& parts) {
  double sum = 0.0;
  for (const BarPart& part : parts) sum += part.size;
  return sum;
}

std::vector<TrialRow> rows_of(const RunFacts& facts, const TrialBars& bars) {
  std::vector<TrialRow> rows;
  for (const journal::Trial* trial : facts.closed()) {
    if (!facts.is_detailed(*trial)) continue;
    if (std::optional<TrialBar> bar = bars.bar_of(*trial)) rows.push_back({trial, std::move(*bar)});
  }
  return rows;
}

// Returns the names of the parts that are visible in any bar, in their order.
std::vector<std::string> shown_parts(const std::vector<TrialRow>& rows) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows.front().bar.parts.size(); ++i) {
    const bool is_seen = std::any_of(rows.begin(), rows.end(), [&](const TrialRow& row) {
      return row.bar.parts[i].size >= kLeastShown * sum_of(row.bar.parts);
    });
    if (is_seen) names.push_back(rows.front().bar.parts[i].name);
  }
  return names;
}

void keep_only(std::vector<BarPart>& parts, const std::vector<std::string>& names) {
  parts.erase(std::remove_if(
                  parts.begin(), parts.end(),
                  [&](const BarPart& part) { return std::find(names.begin(), names.end(), part.name) == names.end(); }),
              parts.end());
}

std::string number_text(double number) { return number == 0.0 ? "0" : fmt::format("{:.4g}", number); }

std::string table_of_all(const RunFacts& facts, const TrialBars& bars, const std::vector<TrialRow>& rows,
                         const std::vector<std::string>& parts) {
  HtmlTable shown{fmt::format("In {}", bars.unit), {"trial", escaped(bars.drawing.mark_name), escaped(bars.whole)}, {}};
  shown.id = bars.id;
  if (rows.size() < facts.closed().size())
    shown.caption += fmt::format("; {} of {} trials", rows.size(), facts.closed().size());
  for (const std::string& part : parts) shown.columns.push_back(escaped(part));
  for (const TrialRow& row : rows) {
    std::vector<std::string>& cells = shown.rows.emplace_back();
    cells.push_back(fmt::format("{}", row.trial->number));
    cells.push_back(row.bar.mark ? number_text(*row.bar.mark) : "");
    cells.push_back(number_text(sum_of(row.bar.parts)));
    std::vector<BarPart> kept = row.bar.parts;
    keep_only(kept, parts);
    for (const BarPart& part : kept) cells.push_back(number_text(part.size));
  }
  return table(shown);
}

}  // namespace

std::string trial_bars_figure(const RunFacts& facts, TrialBars bars) {
  const std::vector<TrialRow> rows = rows_of(facts, bars);
  if (rows.empty()) return "";
  const std::vector<std::string> parts = shown_parts(rows);
  double longest = bars.drawing.limit.value_or(0.0);
  bool is_measured = false;
  for (const ChosenTrial& one : bars.chosen) {
    std::optional<TrialBar> bar = bars.bar_of(*one.trial);
    if (!bar) continue;
    longest = std::max({longest, sum_of(bar->parts), bar->mark.value_or(0.0)});
    is_measured = is_measured || bar->mark;
    keep_only(bar->parts, parts);
    bars.drawing.bars.push_back({one.name, std::move(bar->parts), bar->mark});
  }
  if (bars.drawing.bars.empty()) return "";
  const std::string every_trial = table_of_all(facts, bars, rows, parts);
  if (!is_measured) bars.drawing.mark_name.clear();
  bars.drawing.axis.min = 0.0;
  bars.drawing.axis.max = kRoomBehind * longest;
  const std::string picture = page::bars(bars.drawing) + bar_picker(bars.drawing, bars.id, parts);
  return figure({bars.drawing.title, picture, bars.says, bars.numbers, every_trial});
}

}  // namespace krigtune::page
