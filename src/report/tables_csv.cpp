#include "report/tables_csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/csv.h"
#include "report/labels.h"

namespace krigtune::report {

std::string plan_header(const std::vector<std::string>& columns) {
  std::vector<std::string> row = columns;
  append(row, {"predicted_value", "predicted_step_time_s", "predicted_memory_bytes", "memory_verdict",
               "probability_fits", "bottleneck"});
  return csv_line(row);
}

std::string plan_line(const space::Configuration& configuration, const forecast::Forecast& forecast,
                      const std::vector<std::string>& columns) {
  std::vector<std::string> row = fields(configuration, columns);
  const std::optional<cost::StepCost>& cost = forecast.cost;
  append(row, {field(forecast.value), field(cost ? std::optional(cost->step_time_s) : std::nullopt)});
  if (const std::optional<plan::MemoryVerdict>& memory = forecast.memory) {
    append(row, {field(std::optional(memory->predicted)), plan::to_string(memory->verdict),
                 field(std::optional(memory->probability_fits))});
  } else {
    append(row, {"", "", ""});
  }
  row.emplace_back(cost ? cost::to_string(cost->bottleneck()) : "");
  return csv_line(row);
}

namespace {

// For predictions, because the surrogate is not more precise.
std::string rounded_field(std::optional<double> number) { return number ? fmt::format("{:.6g}", *number) : ""; }

std::vector<std::string> prediction_fields(const insight::PredictionRow& row, const std::vector<std::string>& columns) {
  std::vector<std::string> line = fields(row.configuration, columns);
  append(line, {rounded_field(row.median), rounded_field(row.stddev), rounded_field(row.lower_95),
                rounded_field(row.upper_95), rounded_field(row.expected_improvement),
                rounded_field(row.log_expected_improvement), rounded_field(row.probability_feasible),
                field(row.predicted_memory), field(row.memory_feasible), rounded_field(row.observed), row.status,
                rounded_field(row.median)});
  return line;
}

}  // namespace

PredictionsCsv::PredictionsCsv(std::vector<std::string> columns, bool maximize, std::vector<std::string> others)
    : columns_(std::move(columns)), maximize_(maximize), others_(std::move(others)) {}

void PredictionsCsv::add(const insight::PredictionRow& row) {
  std::string line = csv_line(prediction_fields(row, columns_));
  line.pop_back();
  if (row.median && row.memory_feasible.value_or(true)) ranked_.emplace_back(*row.median, lines_.size());
  lines_.push_back(std::move(line));
  std::string& end = ends_.emplace_back();
  for (const insight::OtherPrediction& other : row.others) {
    end += fmt::format(",{},{},{},{}", rounded_field(other.median), rounded_field(other.lower_95),
                       rounded_field(other.upper_95), rounded_field(other.observed));
  }
}

std::string PredictionsCsv::text() const {
  std::vector<std::pair<double, std::size_t>> order = ranked_;
  std::stable_sort(order.begin(), order.end(),
                   [this](const auto& a, const auto& b) { return maximize_ ? a.first > b.first : a.first < b.first; });
  std::vector<std::string> ranks(lines_.size());
  for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i].second] = std::to_string(i + 1);
  std::vector<std::string> header = columns_;
  append(header,
         {"mean", "stddev", "lower_95", "upper_95", "expected_improvement", "log_expected_improvement",
          "probability_feasible", "predicted_memory_bytes", "memory_feasible", "observed", "status", "median", "rank"});
  for (const std::string& metric : others_) {
    for (const char* what : {"median", "lower_95", "upper_95", "observed"})
      header.push_back(fmt::format("{}_{}", metric, what));
  }
  std::string text = csv_line(header);
  for (std::size_t i = 0; i < lines_.size(); ++i) text += fmt::format("{},{}{}\n", lines_[i], ranks[i], ends_[i]);
  return text;
}

}  // namespace krigtune::report
