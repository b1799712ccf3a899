#include <fmt/format.h>

#include <algorithm>

#include "forecast/plan_study.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "plan/memory.h"

namespace krigtune::page {
namespace {

bool is_too_large(const forecast::BatchRow& row) {
  return row.forecast.memory && row.forecast.memory->verdict == plan::Verdict::kTooLarge;
}

std::string batch_numbers(const std::vector<forecast::BatchRow>& rows) {
  HtmlTable shown{"", {"micro-batch", "accumulation", "sequences a step", "samples/s", "memory"}, {}};
  for (const forecast::BatchRow& row : rows) {
    const std::string fits = is_too_large(row)                     ? "too large"
                             : row.plateau && &row != &rows.back() ? "fits; the plateau begins"
                                                                   : "fits";
    shown.rows.push_back({fmt::format("{}", row.micro_batch), fmt::format("{}", row.accumulation),
                          fmt::format("{}", row.sequences), fmt::format("{:.4g}", row.forecast.samples_per_s),
                          row.forecast.memory ? fits : "not known"});
  }
  return table(shown);
}

std::string curve(const std::vector<forecast::BatchRow>& rows, const char* title, const char* axis,
                  std::int64_t forecast::BatchRow::*size) {
  Line line{.name = "predicted", .hue = 0, .x = {}, .y = {}};
  Marks too_large{"does not fit", Shape::kSquare, 1, {}};
  Marks plateau{"from here on less than 5 % is gained", Shape::kDiamond, 2, {}};
  std::vector<std::string> sizes;
  std::vector<double> speeds;
  for (const forecast::BatchRow& row : rows) {
    if (!row.forecast.cost) continue;
    const auto x = static_cast<double>(sizes.size());
    sizes.push_back(fmt::format("{}", row.*size));
    speeds.push_back(row.forecast.samples_per_s);
    line.x.push_back(x);
    line.y.push_back(row.forecast.samples_per_s);
    if (is_too_large(row)) too_large.marks.push_back({.x = x, .y = row.forecast.samples_per_s});
    if (row.plateau && &row != &rows.back()) plateau.marks.push_back({.x = x, .y = row.forecast.samples_per_s});
  }
  if (sizes.size() < 2) return "";
  Chart drawing;
  drawing.title = title;
  drawing.description = "Predicted by the cost model; the table below has the batch_numbers";
  drawing.categories = sizes;
  drawing.x = {.title = axis, .min = -0.5, .max = static_cast<double>(sizes.size()) - 0.5};
  speeds.push_back(0.0);
  drawing.y = axis_around("samples/s, predicted", speeds);
  drawing.y.min = 0.0;
  drawing.lines = {line};
  drawing.marks = {too_large, plateau};
  return figure({drawing.title, chart(drawing), "", batch_numbers(rows)});
}

}  // namespace

std::string batch(const RunFacts& facts) {
  if (facts.best() == nullptr || !facts.forecaster().knows_time()) return "";
  const forecast::BatchAnswer answer =
      forecast::batch_answer(facts.session(), facts.forecaster(), facts.best()->configuration);
  return figures({curve(answer.by_micro_batch, "A larger micro-batch, the rest as in the best", "micro-batch",
                        &forecast::BatchRow::micro_batch),
                  curve(answer.by_accumulation, "More accumulation, the rest as in the best", "accumulation",
                        &forecast::BatchRow::accumulation)});
}

}  // namespace krigtune::page
