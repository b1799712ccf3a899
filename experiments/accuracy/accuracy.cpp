// Compares predicted with measured step times of the published tables: by space, by table, and the largest residuals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <map>
#include <utility>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "scores.h"

namespace krigtune::accuracy {
namespace {

using Steps = std::vector<const MeasuredStep*>;
using Spaces = std::map<std::pair<std::string, std::string>, Steps>;  // (table, space)

constexpr std::size_t kSmallest = 12;  // rows of a space that is calibrated and ranked
constexpr std::size_t kLargest = 15;   // residuals shown for each table

struct SpaceResult {
  std::string table, space;
  Score before, held_out_before, after;
  bool calibrated = false;
};

std::string percent(double part) { return fmt::format("{:.1f}", 100.0 * part); }
std::string rank(double value) { return std::isnan(value) ? "" : fmt::format("{:.3f}", value); }

SpaceResult examine(const std::pair<std::string, std::string>& name, const Steps& steps) {
  SpaceResult result{name.first, name.second, {}, {}, {}, false};
  result.before = score(predict(steps, cost::TimeCalibration{}), measured(steps));
  if (steps.size() < kSmallest) return result;
  result.calibrated = true;
  const Split parts = split(steps);
  result.held_out_before = score(predict(parts.rest, cost::TimeCalibration{}), measured(parts.rest));
  result.after = score(predict(parts.rest, calibrate(parts.drawn)), measured(parts.rest));
  return result;
}

// Rows with and without pipeline stages are separate questions, except for a tuner of one space.
Spaces spaces_of(const std::vector<MeasuredStep>& all) {
  Spaces spaces;
  std::map<std::pair<std::string, std::string>, std::size_t> whole;
  for (const MeasuredStep& step : all) ++whole[{step.table, step.space}];
  for (const MeasuredStep& step : all) {
    if (whole[{step.table, step.space}] < kSmallest && step.table == "vtrain_single_node") continue;
    spaces[{step.table, step.space}].push_back(&step);
    if (step.table.rfind("vtrain", 0) != 0) continue;
    spaces[{step.table + (step.stages > 1 ? " pp>1" : " pp=1"), step.space}].push_back(&step);
  }
  return spaces;
}

std::string spaces_csv(const std::vector<SpaceResult>& results) {
  std::string text = csv_line({"table", "space", "rows", "mape_percent", "median_error_percent", "bias_percent",
                               "spearman", "held_out_rows", "held_out_mape_percent", "calibrated_mape_percent",
                               "held_out_spearman", "calibrated_spearman"});
  for (const SpaceResult& r : results) {
    std::vector<std::string> fields = {r.table,
                                       r.space,
                                       std::to_string(r.before.rows),
                                       percent(r.before.mape),
                                       percent(r.before.median_error),
                                       percent(r.before.bias),
                                       rank(r.before.spearman)};
    if (r.calibrated) {
      fields.insert(fields.end(), {std::to_string(r.after.rows), percent(r.held_out_before.mape), percent(r.after.mape),
                                   rank(r.held_out_before.spearman), rank(r.after.spearman)});
    } else {
      fields.insert(fields.end(), 5, "");
    }
    text += csv_line(fields);
  }
  return text;
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Scores over a table's rows and over its spaces.
std::string tables_csv(const Spaces& spaces, const std::vector<SpaceResult>& results) {
  std::map<std::string, Steps> rows;
  for (const auto& [name, steps] : spaces) rows[name.first].insert(rows[name.first].end(), steps.begin(), steps.end());
  std::string text = csv_line({"table", "rows", "mape_percent", "median_error_percent", "bias_percent", "spaces",
                               "mean_spearman", "median_spearman", "least_spearman", "held_out_mape_percent",
                               "calibrated_mape_percent", "calibrated_mean_spearman", "spaces_worse_by_calibration"});
  for (const auto& [table, steps] : rows) {
    const Score whole = score(predict(steps, cost::TimeCalibration{}), measured(steps));
    std::vector<double> ranks, before, after, ranks_after;
    std::size_t worse = 0;
    for (const SpaceResult& r : results) {
      if (r.table != table) continue;
      if (!std::isnan(r.before.spearman)) ranks.push_back(r.before.spearman);
      if (!r.calibrated) continue;
      before.push_back(r.held_out_before.mape);
      after.push_back(r.after.mape);
      ranks_after.push_back(r.after.spearman);
      worse += r.after.mape > r.held_out_before.mape ? 1 : 0;
    }
    std::vector<std::string> fields = {table,
                                       std::to_string(whole.rows),
                                       percent(whole.mape),
                                       percent(whole.median_error),
                                       percent(whole.bias),
                                       std::to_string(ranks.size()),
                                       rank(mean(ranks)),
                                       rank(median(ranks)),
                                       ranks.empty() ? "" : rank(*std::min_element(ranks.begin(), ranks.end()))};
    if (before.empty()) {
      fields.insert(fields.end(), 4, "");
    } else {
      fields.insert(fields.end(), {percent(mean(before)), percent(mean(after)), rank(mean(ranks_after)),
                                   fmt::format("{} of {}", worse, after.size())});
    }
    text += csv_line(fields);
  }
  return text;
}

std::string residuals_csv(const std::vector<MeasuredStep>& all) {
  std::map<std::string, Steps> tables;
  for (const MeasuredStep& step : all) tables[step.table].push_back(&step);
  std::string text = csv_line({"table", "row", "measured_s", "predicted_s", "predicted_over_measured"});
  for (const auto& [table, steps] : tables) {
    const std::vector<double> predicted_s = predict(steps, cost::TimeCalibration{});
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      order.emplace_back(-std::abs(std::log(predicted_s[i] / steps[i]->seconds)), i);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t k = 0; k < std::min(kLargest, order.size()); ++k) {
      const std::size_t i = order[k].second;
      text +=
          csv_line({table, steps[i]->label, fmt::format("{:.4g}", steps[i]->seconds),
                    fmt::format("{:.4g}", predicted_s[i]), fmt::format("{:.3f}", predicted_s[i] / steps[i]->seconds)});
    }
  }
  return text;
}

// The effect of the constants that were fitted to a table: scores with and without them.
std::string left_out_csv(const Spaces& spaces) {
  std::string text = csv_line({"table", "rows", "mape_percent", "without_mape_percent", "bias_percent",
                               "without_bias_percent", "mean_spearman", "without_mean_spearman"});
  for (const char* table : {"llmfoundry", "ultrascale_dev", "vtrain_single_node"}) {
    Steps rows;
    std::vector<double> ranks, ranks_without;
    for (const auto& [name, steps] : spaces) {
      if (name.first != table) continue;
      rows.insert(rows.end(), steps.begin(), steps.end());
      ranks.push_back(spearman(predict(steps, cost::TimeCalibration{}), measured(steps)));
      ranks_without.push_back(spearman(predict(steps, without_table(table)), measured(steps)));
    }
    const Score with = score(predict(rows, cost::TimeCalibration{}), measured(rows));
    const Score without = score(predict(rows, without_table(table)), measured(rows));
    text += csv_line({table, std::to_string(with.rows), percent(with.mape), percent(without.mape), percent(with.bias),
                      percent(without.bias), rank(mean(ranks)), rank(mean(ranks_without))});
  }
  return text;
}

void write_tables(const std::filesystem::path& data, const std::filesystem::path& out) {
  const std::vector<MeasuredStep> all = all_tables(data);
  const Spaces spaces = spaces_of(all);
  std::vector<SpaceResult> results;
  for (const auto& [name, steps] : spaces) results.push_back(examine(name, steps));
  std::filesystem::create_directories(out);
  write_atomically(out / "spaces.csv", spaces_csv(results));
  write_atomically(out / "residuals.csv", residuals_csv(all));
  const std::string left_out = left_out_csv(spaces);
  write_atomically(out / "left_out.csv", left_out);
  const std::string tables = tables_csv(spaces, results);
  write_atomically(out / "tables.csv", tables);
  fmt::print("{}\n{}", tables, left_out);
}

}  // namespace
}  // namespace krigtune::accuracy

int main(int argc, char** argv) try {
  if (argc != 3) {
    fmt::print(stderr, "usage: accuracy DATA_FOLDER RESULT_FOLDER\n");
    return 2;
  }
  krigtune::accuracy::write_tables(argv[1], argv[2]);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "accuracy: {}\n", error.what());
  return 1;
}
