// Shows which parameters matter, and what each one does around the best configuration.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "insight/sobol_indices.h"
#include "page/chart/chart.h"
#include "page/chart/svg.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/front_text.h"
#include "report/importance_text.h"
#include "report/labels.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostSlices = 6;
constexpr std::size_t kMostParameters = 12;

std::string importance_numbers(const insight::Importance& importance) {
  HtmlTable shown{"", {"parameter", "total", "alone"}, {}};
  const report::Table rows = report::importance_table(importance);
  for (const std::vector<report::Cell>& row : rows.rows) {
    shown.rows.push_back({user_text(row[0].text), escaped(row[1].text), escaped(row[2].text)});
  }
  return table(shown);
}

std::string importance_figure(const insight::Importance& importance) {
  Intervals drawing;
  drawing.title = "How much of the differences each parameter explains";
  drawing.axis = {.title = "total Sobol index, with its 95 % interval", .min = 0.0, .max = 1.0};
  for (const insight::ParameterImportance& one : importance.parameters) {
    if (drawing.intervals.size() == kMostParameters) break;
    drawing.intervals.push_back({one.name, one.total.value, one.total.lower_95, one.total.upper_95});
  }
  drawing.description = "The largest first; the table below has the numbers";
  const std::string says =
      escaped(fmt::format("1 means that nothing else matters. {} In the table: alone is the part that is the same "
                          "whatever the others are, interaction what neither of two explains without the other. {}",
                          sentence(report::importance_note(importance)), sentence(report::pair_sentence(importance))));
  return figure({drawing.title, intervals(drawing), says, importance_numbers(importance) + pair_numbers(importance)});
}

// Returns in how many closed trials the parameter had the value, if all of them ran out of memory; otherwise 0.
int trials_without_memory(const RunFacts& facts, const std::string& name, const space::Value& value) {
  int tried = 0;
  for (const journal::Trial* trial : facts.closed()) {
    const space::Value* its = trial->proposal.configuration.find(name);
    if (its == nullptr || !space::same_value(*its, value)) continue;
    if (!std::holds_alternative<trial::OutOfMemory>(*trial->outcome)) return 0;
    ++tried;
  }
  return tried;
}

/// The values of one parameter, with the other parameters as in the best configuration.
struct Slice {
  const space::Parameter* parameter = nullptr;
  std::vector<space::Value> values;
  std::vector<insight::PredictionRow> rows;
  std::vector<std::string> doubts;  ///< why the value is no choice: "out of memory in 7 of 7 trials"; "": it is one
};

std::string doubt_of(const RunFacts& facts, const std::string& name, const space::Value& value,
                     const insight::PredictionRow& row) {
  if (const int tried = trials_without_memory(facts, name, value); tried > 0) {
    return fmt::format("out of memory in {} of {}", tried, counted(tried, "trial"));
  }
  return row.probability_feasible < 0.5 ? report::percent_text(row.probability_feasible) + " likely to run" : "";
}

std::optional<Slice> slice_of(const RunFacts& facts, const std::string& name) {
  const space::Space& space = facts.session().space;
  Slice slice{space.find(name), {}, {}, {}};
  if (slice.parameter == nullptr) return std::nullopt;
  const space::Configuration& best = facts.best()->configuration;
  const space::Value* own = best.find(name);
  if (own == nullptr) return std::nullopt;
  std::vector<space::Value> levels = insight::levels_of(*slice.parameter);
  const auto is_own = [&](const space::Value& value) { return space::same_value(value, *own); };
  if (std::none_of(levels.begin(), levels.end(), is_own)) levels.push_back(*own);
  std::vector<space::Configuration> configurations;
  for (const space::Value& value : levels) {
    const auto other = is_own(value) ? std::optional(best) : insight::with_values(space, best, {name}, {value});
    if (!other || !facts.source().filter.may_fit(*other)) continue;
    slice.values.push_back(value);
    configurations.push_back(*other);
  }
  if (configurations.size() < 2) return std::nullopt;
  slice.rows = (*facts.predictor())(configurations);
  for (std::size_t i = 0; i < slice.rows.size(); ++i) {
    slice.doubts.push_back(doubt_of(facts, name, slice.values[i], slice.rows[i]));
  }
  return slice;
}

std::string slice_numbers(const RunFacts& facts, const Slice& slice) {
  HtmlTable shown{"", {escaped(slice.parameter->name), "expected", "95 % from", "to", "measured", "runs"}, {}};
  for (std::size_t i = 0; i < slice.values.size(); ++i) {
    const insight::PredictionRow& row = slice.rows[i];
    const auto text = [&](const std::optional<double>& value) {
      return value ? escaped(facts.value_text(*value)) : std::string();
    };
    shown.rows.push_back({user_text(space::to_string(slice.values[i])), text(row.median), text(row.lower_95),
                          text(row.upper_95), text(row.observed),
                          escaped(slice.doubts[i].empty() ? "yes" : slice.doubts[i])});
  }
  return table(shown);
}

// Returns "500M" instead of 500000000.
std::string category_of(const space::Value& value) {
  const bool is_integer = std::holds_alternative<std::int64_t>(value);
  return is_integer ? svg::label({}, space::as_number(value)) : space::to_string(value);
}

// Many numbers are drawn as a curve in their order, everything else side by side.
bool is_curve_of(const std::vector<space::Value>& values) {
  constexpr std::size_t kSideBySide = 6;
  return values.size() > kSideBySide && std::all_of(values.begin(), values.end(), space::is_number);
}

// Returns the positions of the values: numbers ascend, others keep their order.
std::vector<std::size_t> in_order(const std::vector<space::Value>& values) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!std::all_of(values.begin(), values.end(), space::is_number)) return order;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return space::as_number(values[a]) < space::as_number(values[b]); });
  return order;
}

report::PlotAxis axis_of(const Slice& slice, const std::vector<double>& places) {
  constexpr double kWide = 16.0;
  if (is_curve_of(slice.values)) {
    const bool wide = places.front() > 0.0 && places.back() > kWide * places.front();
    return axis_around(slice.parameter->name, places, wide);
  }
  return {.title = slice.parameter->name, .min = -0.5, .max = static_cast<double>(slice.values.size()) - 0.5};
}

void draw(const RunFacts& facts, const Slice& slice, Chart& drawing) {
  const bool is_curve = is_curve_of(slice.values);
  Line curve{.name = is_curve ? "expected, with its 95 % interval" : "", .hue = 0, .x = {}, .y = {}};
  Marks points{is_curve ? "" : "expected, with its 95 % interval", Shape::kRing, 0, {}};
  Marks measured{"measured", Shape::kDot, 2, {}};
  Marks doubtful{"expected, if it ran: it is unlikely to", Shape::kCross, 1, {}};
  std::vector<double> places;
  std::vector<double> heights;
  for (const std::size_t i : in_order(slice.values)) {
    const insight::PredictionRow& row = slice.rows[i];
    const double x = is_curve ? space::as_number(slice.values[i]) : static_cast<double>(drawing.categories.size());
    if (!is_curve) drawing.categories.push_back(category_of(slice.values[i]));
    const double mean = facts.shown(row.median.value_or(0.0));
    const double low = facts.shown(row.lower_95.value_or(0.0));
    const double high = facts.shown(row.upper_95.value_or(0.0));
    places.push_back(x);
    if (row.observed) measured.marks.push_back({.x = x, .y = facts.shown(*row.observed)});
    if (!slice.doubts[i].empty()) {
      heights.push_back(mean);
      doubtful.marks.push_back({.x = x, .y = mean, .tip = slice.doubts[i]});
      continue;
    }
    heights.insert(heights.end(), {low, high});
    curve.x.push_back(x);
    curve.y.push_back(mean);
    curve.low.push_back(low);
    curve.high.push_back(high);
    points.marks.push_back({.x = x, .y = mean, .low = low, .high = high});
  }
  drawing.x = axis_of(slice, places);
  drawing.y = axis_around(facts.value_title(), heights);
  if (is_curve) drawing.lines = {curve};
  drawing.marks = {measured};
  if (!doubtful.marks.empty()) drawing.marks.push_back(doubtful);
  if (!is_curve) drawing.marks.insert(drawing.marks.begin(), points);
}

std::string slice_figure(const RunFacts& facts, const Slice& slice) {
  Chart drawing;
  drawing.title = fmt::format("{} around the best", slice.parameter->name);
  drawing.description = "The others as in the recommended configuration; the table below has the numbers";
  draw(facts, slice, drawing);
  return figure({drawing.title, chart(drawing), "", slice_numbers(facts, slice)});
}

}  // namespace

std::string effects(const RunFacts& facts) {
  const std::optional<insight::Importance>& importance = facts.importance();
  if (!importance) return "";
  std::vector<std::string> sentences;
  for (const std::string& one : report::effect_sentences(facts.session(), *importance)) {
    const bool begins_with_a_name = one.rfind("no clear", 0) != 0;  // names keep the session's spelling
    sentences.push_back(escaped(begins_with_a_name ? one + "." : sentence(one)));
  }
  std::vector<std::string> all = {importance_figure(*importance)};
  for (std::string& pair : pair_figures(facts)) all.push_back(std::move(pair));
  const std::size_t most = all.size() + kMostSlices;
  for (const insight::ParameterImportance& one : importance->parameters) {
    if (all.size() == most) break;
    if (const std::optional<Slice> slice = slice_of(facts, one.name)) all.push_back(slice_figure(facts, *slice));
  }
  const char* const what =
      "Neighbours of the recommended configuration: one parameter has another value, all others stay as they are. "
      "(What "
      "changes against yours, in the answer above, compares with your values only, whatever goes along with them.)";
  const std::string note = report::first_objective_note(facts.session());
  return (note.empty() ? "" : paragraph(escaped(sentence("This is " + note)))) +
         (sentences.empty() ? "" : paragraph(what)) + list(sentences) + figures(all);
}

}  // namespace krigtune::page
