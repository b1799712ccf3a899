#include "page/fleet/fleet_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "report/fleet_text.h"
#include "report/labels.h"

namespace krigtune::page {
namespace {

using fleet::ClusterPlan;
using fleet::Fleet;

constexpr std::size_t kHuesOfClusters = 6;

// Sixty clusters in turn differ in their shape or hue.
Shape shape_of(std::size_t entry) {
  constexpr Shape kShapes[] = {Shape::kDot,  Shape::kSquare,   Shape::kDiamond,
                               Shape::kRing, Shape::kTriangle, Shape::kCross};
  return kShapes[(entry + entry / kHuesOfClusters) % std::size(kShapes)];
}
int hue_of(std::size_t entry) { return static_cast<int>(entry % kHuesOfClusters); }

// Returns the plans with a best configuration by their cluster, in the order of the file.
std::vector<std::vector<std::size_t>> by_entry(const Fleet& fleet) {
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    if (!fleet.plans[i].best) continue;
    if (rows.empty() || fleet.plans[rows.back().front()].entry != fleet.plans[i].entry) rows.emplace_back();
    rows.back().push_back(i);
  }
  return rows;
}

std::string answers(const FleetSource& source) {
  std::vector<std::string> items;
  for (const auto& [question, answer] : report::fleet_answers(source.fleet, source.choice, source.deadline_days))
    items.push_back(element("strong", escaped(sentence(question).substr(0, question.size()))) + ": " + escaped(answer));
  return list(items);
}

std::string opinions(const FleetSource& source) {
  std::vector<std::string> items;
  for (const std::string& one : report::fleet_opinions(source.fleet, source.choice)) items.push_back(escaped(one));
  return items.empty() ? "" : list(items);
}

std::string tip_of(const Fleet& fleet, std::size_t row) {
  const fleet::BestOfCluster& best = *fleet.plans[row].best;
  const report::FleetCells cells = report::fleet_cells(best);
  std::string text = fmt::format("{}: {} ({})", report::row_text(fleet, row), cells.days, cells.days_range);
  if (best.price)
    text += fmt::format(", {} ({})", report::price_text(best.price->value, fleet.currency), cells.price_range);
  return text + fmt::format(", {} tokens/s, MFU {}, {}", cells.tokens_per_s, cells.mfu,
                            report::short_text(fleet.session, best.candidate.configuration));
}

// Returns the x of a plan: its price or, if no cluster has one, its GPUs. Empty if it lacks the price.
std::optional<double> place_of(const Fleet& fleet, const ClusterPlan& plan) {
  if (!fleet.has_prices()) return static_cast<double>(plan.cluster.ranks());
  return plan.best->price ? std::optional(plan.best->price->value) : std::nullopt;
}

// Within a decade a logarithmic axis has too few ticks to be read.
bool spans_a_decade(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax_element(values);
  return !values.empty() && *most > 10.0 * *least;
}

Line front_line(const FleetSource& source) {
  Line line{.name = "no other is both faster and cheaper", .hue = 5, .x = {}, .y = {}, .steps = true, .dashed = true};
  for (auto row = source.choice.front.rbegin(); row != source.choice.front.rend(); ++row) {
    const fleet::BestOfCluster& best = *source.fleet.plans[*row].best;
    line.x.push_back(best.price->value);
    line.y.push_back(best.days.value);
  }
  return line;
}

std::string front_numbers(const FleetSource& source) {
  HtmlTable shown{"The Pareto front, the fastest first", {"row", "cluster", "GPUs", "time", "price"}, {}};
  for (const std::size_t row : source.choice.front) {
    const ClusterPlan& plan = source.fleet.plans[row];
    const report::FleetCells cells = report::fleet_cells(*plan.best);
    shown.rows.push_back({fmt::format("{}", row + 1), user_text(plan.name), report::size_text(plan.cluster),
                          fmt::format("{} ({})", cells.days, cells.days_range),
                          fmt::format("{} ({})", cells.price, cells.price_range)});
  }
  return table(shown);
}

std::string time_and_price(const FleetSource& source) {
  const Fleet& fleet = source.fleet;
  const bool has_prices = fleet.has_prices();
  Chart drawing;
  std::vector<double> places;
  std::vector<double> days;
  for (const std::vector<std::size_t>& rows : by_entry(fleet)) {
    const ClusterPlan& first = fleet.plans[rows.front()];
    Marks marks{first.name, shape_of(first.entry), hue_of(first.entry), {}};
    for (const std::size_t row : rows) {
      const std::optional<double> x = place_of(fleet, fleet.plans[row]);
      if (!x) continue;
      const fleet::Estimate& time = fleet.plans[row].best->days;
      places.push_back(*x);
      days.insert(days.end(), {time.low, time.high});
      marks.marks.push_back({*x, time.value, time.low, time.high, tip_of(fleet, row), fmt::format("#row-{}", row + 1)});
    }
    drawing.marks.push_back(std::move(marks));
  }
  drawing.title = has_prices ? "Time against price" : "Time against GPUs";
  drawing.description = "Predicted, a mark for each size of each cluster; the table below has the numbers";
  drawing.x = axis_around(!has_prices              ? "GPUs"
                          : fleet.currency.empty() ? "price"
                                                   : fmt::format("price ({})", fleet.currency),
                          places, spans_a_decade(places));
  drawing.y = axis_around("days", days, spans_a_decade(days));
  if (has_prices) drawing.lines = {front_line(source)};
  return figure({drawing.title, chart(drawing),
                 "The lines through marks reach as far as 80 % of published runs did. Prices vary by the same factor.",
                 has_prices ? front_numbers(source) : ""});
}

std::string efficiency(const Fleet& fleet) {
  Chart drawing;
  std::vector<double> sizes;
  std::vector<double> shares = {0.0, 100.0};
  for (const std::vector<std::size_t>& rows : by_entry(fleet)) {
    if (rows.size() < 2) continue;
    const ClusterPlan& first = fleet.plans[rows.front()];
    Line line{.name = "", .hue = hue_of(first.entry), .x = {}, .y = {}};
    Marks marks{first.name, shape_of(first.entry), hue_of(first.entry), {}};
    for (const std::size_t row : rows) {
      line.x.push_back(static_cast<double>(fleet.plans[row].cluster.ranks()));
      line.y.push_back(100.0 * fleet.plans[row].best->efficiency);
      marks.marks.push_back({.x = line.x.back(), .y = line.y.back(), .tip = tip_of(fleet, row)});
    }
    sizes.insert(sizes.end(), line.x.begin(), line.x.end());
    shares.insert(shares.end(), line.y.begin(), line.y.end());
    drawing.lines.push_back(std::move(line));
    drawing.marks.push_back(std::move(marks));
  }
  if (sizes.empty()) return "";
  drawing.title = "Efficiency against size";
  drawing.description = "Tokens a second and GPU, in per cent of the smallest size of the same cluster";
  drawing.x = axis_around("GPUs", sizes, true);
  drawing.y = axis_around("% per GPU", shares);
  return figure({drawing.title, chart(drawing), drawing.description + ".", ""});
}

std::string assumptions(const Fleet& fleet) {
  std::vector<std::string> items;
  for (const std::string& line : report::fleet_assumptions(fleet)) items.push_back(escaped(line));
  for (const std::string& line : fleet.session.workload->caveats.assumed) items.push_back(escaped(line));
  std::string html = "<h3>What these numbers assume</h3>\n" + list(items);
  std::vector<std::string> left_out;
  for (const auto* caveats :
       {&fleet.session.workload->caveats.not_modelled, &fleet.session.workload->caveats.also_not_modelled})
    for (const std::string& line : *caveats) left_out.push_back(escaped(line));
  if (!left_out.empty()) html += "<h3>Not in these numbers</h3>\n" + list(left_out);
  return element("div", html);
}

// Their configurations, with what the time consists of if that is not steps alone, and the energy if a power is stated.
std::string configurations(const Fleet& fleet) {
  const auto says = [&](auto more) {
    return std::ranges::any_of(fleet.plans,
                               [&](const ClusterPlan& plan) { return plan.best && more(plan.best->whole); });
  };
  const bool has_parts = says([](const fleet::WholeRun& whole) { return whole.wall_s > whole.steps_s; });
  const bool has_energy = says([](const fleet::WholeRun& whole) { return whole.energy_kwh.has_value(); });
  HtmlTable shown{"The configurations", {"row", "cluster", "GPUs", "configuration"}, {}};
  if (has_parts) shown.columns.emplace_back("the time consists of");
  if (has_energy) shown.columns.emplace_back("energy");
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const ClusterPlan& plan = fleet.plans[i];
    if (!plan.best) continue;
    const report::FleetCells cells = report::fleet_cells(*plan.best);
    std::vector<std::string>& row = shown.rows.emplace_back();
    row = {fmt::format("{}", i + 1), user_text(plan.name), report::size_text(plan.cluster),
           user_text(report::short_text(fleet.session, plan.best->candidate.configuration))};
    if (has_parts) row.push_back(escaped(cells.parts));
    if (has_energy) row.push_back(escaped(cells.energy));
  }
  return shown.rows.empty() ? "" : table(shown);
}

std::string clusters(const Fleet& fleet) {
  HtmlTable shown{
      "Ranges in parentheses; per GPU: relative to the smallest size of the cluster",
      {"row", "cluster", "GPUs", "tokens/s", "MFU", "memory of a rank", "fits", "per GPU", "links x2", "time", "price"},
      {}};
  const auto with_range = [](const std::string& number, const std::string& range) {
    return number.empty() ? "" : fmt::format("{} ({})", number, range);
  };
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const ClusterPlan& plan = fleet.plans[i];
    if (!plan.best) continue;
    const report::FleetCells cells = report::fleet_cells(*plan.best);
    shown.rows.push_back({element("span", {{"id", fmt::format("row-{}", i + 1)}}, fmt::format("{}", i + 1)),
                          user_text(plan.name), report::size_text(plan.cluster),
                          with_range(cells.tokens_per_s, cells.tokens_per_s_range),
                          with_range(cells.mfu, cells.mfu_range), with_range(cells.memory, cells.memory_range),
                          cells.fits, cells.efficiency, cells.network, with_range(cells.days, cells.days_range),
                          with_range(cells.price, cells.price_range)});
  }
  return shown.rows.empty() ? "" : table(shown);
}

std::string impossible(const Fleet& fleet) {
  std::vector<std::string> items;
  for (const std::string& line : report::fleet_impossible(fleet)) items.push_back(user_text(line));
  return list(items);
}

}  // namespace

std::string fleet_page(const FleetSource& source) {
  const Fleet& fleet = source.fleet;
  const workload::ModelSpec& model = fleet.session.workload->model;
  const std::string job = fmt::format("{} parameters, {} tokens a sequence, {} tokens in all",
                                      count_text(static_cast<double>(workload::parameter_count(model))), model.seq_len,
                                      count_text(fleet.tokens));
  Document document;
  document.title = fmt::format("krigtune plan: {} on {}", source.name,
                               counted(static_cast<std::int64_t>(fleet.plans.size()), "cluster"));
  document.header =
      paragraph(fmt::format("{}. Predicted; nothing has run. Made {}.", escaped(job), escaped(source.made)));
  const bool is_any = source.choice.fastest.has_value();
  document.sections = {{"answers", "The answers", answers(source)},
                       {"front", "Time, price, size",
                        is_any ? figures({time_and_price(source), assumptions(fleet), efficiency(fleet)}) : ""},
                       {"opinion", "Second opinion", opinions(source)},
                       {"clusters", "The clusters", clusters(fleet) + configurations(fleet)},
                       {"impossible", "Impossible", impossible(fleet)}};
  document.footer = paragraph("krigtune plan SESSION --clusters FILE --csv FILE writes every number.");
  return page::document(document);
}

}  // namespace krigtune::page
