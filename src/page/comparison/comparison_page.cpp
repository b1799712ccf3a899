#include "page/comparison/comparison_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "report/comparison.h"

namespace krigtune::page {
namespace {

constexpr double kPercent = 100.0;
constexpr int kLineHues = 6;
constexpr double kLeastRegret = 0.1;  // per cent: the lower end of a logarithmic axis

std::string summary(const report::Table& rows) {
  HtmlTable shown{"Median, and quartiles in brackets; trials counted from 1", {}, {}};
  for (const report::Column& column : rows.columns) shown.columns.push_back(escaped(column.title));
  for (const std::vector<report::Cell>& row : rows.rows) {
    std::vector<std::string>& cells = shown.rows.emplace_back();
    for (const report::Cell& cell : row) cells.push_back(escaped(cell.text));
  }
  return table(shown);
}

Line curve(const ComparisonSource& source, search::StrategyKind strategy, int hue) {
  Line line{.name = search::to_string(strategy), .hue = hue, .x = {}, .y = {}, .steps = true, .dashed = hue > 0};
  const std::vector<compare::SeedStatistics> regrets =
      compare::regret_curve(source.comparison, strategy, source.budget);
  for (std::size_t i = 0; i < regrets.size(); ++i) {
    line.x.push_back(static_cast<double>(i + 1));
    line.y.push_back(std::max(kLeastRegret, kPercent * regrets[i].median));
    line.low.push_back(std::max(kLeastRegret, kPercent * regrets[i].q25));
    line.high.push_back(std::max(kLeastRegret, kPercent * regrets[i].q75));
  }
  return line;
}

std::string numbers(const std::vector<Line>& lines) {
  HtmlTable shown{"Median regret in per cent", {"trials"}, {}};
  for (const Line& line : lines) shown.columns.push_back(escaped(line.name));
  for (std::size_t i = 0; i < lines.front().x.size(); ++i) {
    std::vector<std::string>& row = shown.rows.emplace_back();
    row.push_back(fmt::format("{}", i + 1));
    for (const Line& line : lines) row.push_back(fmt::format("{:.3g}", line.y[i]));
  }
  return table(shown);
}

std::string curves(const ComparisonSource& source) {
  Chart drawing;
  drawing.title = "How far the best so far is from the optimum";
  drawing.description = "Median regret over the trials, with quartile bands; the table below has the numbers";
  drawing.x = {.title = "trials", .min = 1.0, .max = std::max(2.0, static_cast<double>(source.budget))};
  drawing.y = {.title = "regret (%)", .min = kLeastRegret, .max = kPercent, .logarithmic = true};
  int hue = 0;
  for (const compare::StrategySummary& one : source.comparison.summary) {
    drawing.lines.push_back(curve(source, one.strategy, hue++ % kLineHues));
  }
  if (drawing.lines.empty() || drawing.lines.front().x.empty()) return "";
  const char* optimum = source.comparison.optimum_is_known ? "The optimum is that of the table."
                                                           : "The optimum is the best of all runs here.";
  return figures({figure({drawing.title, chart(drawing), optimum, numbers(drawing.lines)})});
}

std::string tests(const ComparisonSource& source) {
  std::string html;
  for (const double within : compare::kComparedWithin) {
    std::vector<std::string> items;
    for (const std::string& one : report::comparison_sentences(source.comparison, within, source.budget)) {
      items.push_back(escaped(one));
    }
    if (!items.empty())
      html += fmt::format("<h3>To come within {:g} % of the optimum</h3>\n", kPercent * within) + list(items);
  }
  return html;
}

}  // namespace

std::string comparison_page(const ComparisonSource& source) {
  Document document;
  document.title = fmt::format("krigtune compare: {}{}", source.name, source.note);
  document.header = paragraph(fmt::format("{} a run. Made {}.", counted(source.budget, "trial"), escaped(source.made)));
  document.sections = {{"strategies", "The strategies", summary(source.summary) + curves(source)},
                       {"tests", "Which one needs fewer trials", tests(source)}};
  document.footer = paragraph("The numbers are in comparison.csv, comparison_summary.csv and comparison_pairs.csv.");
  return page::document(document);
}

}  // namespace krigtune::page
