#include <fmt/format.h>

#include "krigtune/core/csv.h"
#include "krigtune/report/fields.h"
#include "krigtune/report/tables_csv.h"

namespace krigtune {
namespace {

void append_statistics(std::vector<std::string>& row, const SeedStatistics& statistics) {
  for (const double number : {statistics.median, statistics.mean, statistics.q25, statistics.q75}) {
    row.push_back(field(std::optional(number)));
  }
}

}  // namespace

std::string comparison_csv(const Comparison& comparison) {
  std::string text = csv_line({"strategy", "seed", "trial", "status", "value", "best_so_far", "regret", "wall_s"});
  for (const ComparedTrial& trial : comparison.trials) {
    text += csv_line({to_string(trial.strategy), fmt::format("{}", trial.seed), fmt::format("{}", trial.trial),
                      trial.status, field(trial.value), field(trial.best_so_far), field(std::optional(trial.regret)),
                      field(std::optional(trial.wall_s))});
  }
  return text;
}

std::string comparison_summary_csv(const Comparison& comparison) {
  std::vector<std::string> header = {"strategy", "seeds"};
  for (const char* target : {"5pct", "1pct"}) {
    for (const char* statistic : {"median", "mean", "q25", "q75"}) {
      header.push_back(fmt::format("trials_to_{}_{}", target, statistic));
    }
  }
  header.emplace_back("failed_first_20_mean");
  for (const int trials : kComparedAt) header.push_back(fmt::format("best_over_optimum_at_{}", trials));
  std::string text = csv_line(header);
  for (const StrategySummary& summary : comparison.summary) {
    std::vector<std::string> row = {to_string(summary.strategy), fmt::format("{}", summary.seeds)};
    append_statistics(row, summary.trials_to_5pct);
    append_statistics(row, summary.trials_to_1pct);
    row.push_back(field(std::optional(summary.failed_first_20_mean)));
    for (const std::optional<double>& quotient : summary.best_over_optimum_at) row.push_back(field(quotient));
    text += csv_line(row);
  }
  return text;
}

}  // namespace krigtune
