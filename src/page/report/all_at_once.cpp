#include <fmt/format.h>

#include <algorithm>

#include "page/chart/chart.h"
#include "page/chart/svg.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostLines = 1000;
constexpr double kGood = 0.25;  // the best quarter of the measured values

// Returns the values of a column that occur, in ascending order if they are numbers.
std::vector<space::Value> values_of(const RunFacts& facts, const std::string& name) {
  std::vector<space::Value> values;
  for (const journal::Trial* trial : facts.closed()) {
    const space::Value* value = trial->proposal.configuration.find(name);
    const auto is_it = [&](const space::Value& other) { return space::same_value(other, *value); };
    if (value != nullptr && std::none_of(values.begin(), values.end(), is_it)) values.push_back(*value);
  }
  const space::Parameter* parameter = facts.session().space.find(name);
  const auto place = [&](const space::Value& value) {
    if (parameter != nullptr) {
      for (std::size_t i = 0; i < parameter->values.size(); ++i) {
        if (space::same_value(parameter->values[i], value)) return static_cast<double>(i);
      }
    }
    return space::is_number(value) ? space::as_number(value) : 0.0;
  };
  std::stable_sort(values.begin(), values.end(),
                   [&](const space::Value& a, const space::Value& b) { return place(a) < place(b); });
  return values;
}

double place_of(const std::vector<space::Value>& values, const space::Value& value) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (space::same_value(values[i], value)) return (static_cast<double>(i) + 0.5) / static_cast<double>(values.size());
  }
  return -1.0;
}

// With many values some labels are left out, so that they do not overlap.
ParallelAxis axis_of(const std::string& name, const std::vector<space::Value>& values) {
  constexpr std::size_t kMostLabels = 10;
  ParallelAxis axis{name, {}, {}};
  const std::size_t stride = (values.size() + kMostLabels - 1) / kMostLabels;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    axis.labels.push_back(space::to_string(values[i]));
    axis.places.push_back(place_of(values, values[i]));
  }
  return axis;
}

class Drawing {
 public:
  explicit Drawing(const RunFacts& facts) : facts_(facts) {
    for (const journal::Trial* trial : facts_.closed()) {
      if (const std::optional<double> value = facts_.value_of(*trial)) measured_.push_back(*value);
    }
    std::sort(measured_.begin(), measured_.end(), [&](double a, double b) { return facts_.objective().better(a, b); });
  }

  std::string html() {
    parallel_.title = "Parallel coordinates of all trials";
    parallel_.description =
        "A line for each trial across its parameters and its value; the table of trials has the numbers";
    for (const std::string& name : facts_.session().space.columns()) {
      const std::vector<space::Value> values = values_of(facts_, name);
      if (values.size() < 2) continue;  // it has no information
      names_.push_back(name);
      values_.push_back(values);
      parallel_.axes.push_back(axis_of(name, values));
    }
    if (names_.empty() || measured_.empty()) return "";
    add_value_axis();
    const std::size_t first = facts_.closed().size() - std::min(kMostLines, facts_.closed().size());
    for (std::size_t i = first; i < facts_.closed().size(); ++i) add_line(*facts_.closed()[i]);
    return parallel(parallel_);
  }

 private:
  void add_value_axis() {
    axis_ = axis_around(facts_.value_title(), shown());
    ParallelAxis values{facts_.value_title(), {}, {}};
    constexpr int kTicks = 6;
    for (const double tick : report::axis_ticks(axis_, kTicks)) {
      values.labels.push_back(fmt::format("{:.6g}", tick));
      values.places.push_back((tick - axis_.min) / (axis_.max - axis_.min));
    }
    parallel_.axes.push_back(std::move(values));
  }

  std::vector<double> shown() const {
    std::vector<double> values;
    for (const double value : measured_) values.push_back(facts_.shown(value));
    return values;
  }

  const char* kind_of(const journal::Trial& trial, const std::optional<double>& value) const {
    if (!value) return "failed";
    if (facts_.best() != nullptr && facts_.best()->trial == trial.number) return "best";
    const auto last_good = static_cast<std::size_t>(kGood * static_cast<double>(measured_.size()));
    return facts_.objective().better(measured_[last_good], *value) ? "other" : "good";
  }

  void add_line(const journal::Trial& trial) {
    const std::optional<double> value = facts_.value_of(trial);
    ParallelLine line{trial.number, facts_.tip_of(trial), kind_of(trial, value), {}};
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const space::Value* has = trial.proposal.configuration.find(names_[i]);
      line.places.push_back(has == nullptr ? -1.0 : place_of(values_[i], *has));
    }
    line.places.push_back(value ? (facts_.shown(*value) - axis_.min) / (axis_.max - axis_.min) : -1.0);
    parallel_.lines.push_back(std::move(line));
  }

  const RunFacts& facts_;
  std::vector<double> measured_;  ///< the best first
  std::vector<std::string> names_;
  std::vector<std::vector<space::Value>> values_;
  report::PlotAxis axis_;
  Parallel parallel_;
};

}  // namespace

std::string all_at_once(const RunFacts& facts) {
  const std::string drawing = Drawing(facts).html();
  if (drawing.empty()) return "";
  std::string entries;
  for (const auto& [kind, name] : {std::pair{"best", "recommended"}, std::pair{"good", "the best quarter"},
                                   std::pair{"other", "others"}, std::pair{"failed", "without a value"}}) {
    entries += svg::legend_entry(fmt::format("<path d=\"M0 7h26\" class=\"trial {}\"/>", kind), name);
  }
  return "<p class=\"needs-script\">Drag along an axis to keep the trials that cross it there; click on it to see all "
         "again.</p>\n" +
         drawing + svg::legend(entries);
}

}  // namespace krigtune::page
