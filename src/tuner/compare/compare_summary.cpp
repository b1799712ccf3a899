// The statistics of a comparison. A run is a stretch of rows of one strategy and seed.
#include <algorithm>
#include <cmath>

#include "krigtune/tuner/compare.h"

namespace krigtune {
namespace {

constexpr int kFirstTrials = 20;  // of failed_first_20

using Row = std::vector<ComparedTrial>::iterator;

struct RunStatistics {
  double trials_to_5pct = 0.0;
  double trials_to_1pct = 0.0;
  double failed_first = 0.0;
  std::array<double, kComparedAt.size()> best_over_optimum{};
};

Row end_of_run(Row first, Row last) {
  return std::find_if(first, last, [&](const ComparedTrial& row) {
    return row.strategy != first->strategy || row.seed != first->seed;
  });
}

// Trials from 1 until the regret is no more than `within`; budget + 1 when it never is.
double trials_to(Row first, Row last, double within, int budget) {
  const Row reached = std::find_if(first, last, [&](const ComparedTrial& row) { return row.regret <= within; });
  return reached == last ? budget + 1.0 : static_cast<double>(reached - first) + 1.0;
}

void fill_regret(Row first, Row last, const Objective& objective, std::optional<double> optimum) {
  std::optional<double> best;
  for (Row row = first; row != last; ++row) {
    if (row->value && (!best || objective.better(*row->value, *best))) best = row->value;
    row->best_so_far = best;
    row->regret = 1.0;
    if (best && optimum) row->regret = objective.maximize ? 1.0 - *best / *optimum : 1.0 - *optimum / *best;
  }
}

RunStatistics statistics_of(Row first, Row last, int budget) {
  RunStatistics run;
  // Rounding of 1 - best / optimum must not count against a value that is at the edge.
  constexpr double kRounding = 1e-12;
  run.trials_to_5pct = trials_to(first, last, 0.05 + kRounding, budget);
  run.trials_to_1pct = trials_to(first, last, 0.01 + kRounding, budget);
  const auto length = static_cast<int>(last - first);
  run.failed_first =
      static_cast<double>(std::count_if(first, first + std::min(kFirstTrials, length), [](const ComparedTrial& row) {
        return row.status != "ok" && row.status != "bounded";
      }));
  for (std::size_t i = 0; i < kComparedAt.size(); ++i) {
    run.best_over_optimum[i] = 1.0 - (first + std::min(kComparedAt[i], length) - 1)->regret;
  }
  return run;
}

double quantile(const std::vector<double>& sorted, double probability) {
  const double position = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

SeedStatistics over_seeds(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), mean(values), quantile(values, 0.25), quantile(values, 0.75)};
}

template <class Get>
std::vector<double> collect(const std::vector<RunStatistics>& runs, Get get) {
  std::vector<double> values;
  for (const RunStatistics& run : runs) values.push_back(get(run));
  return values;
}

StrategySummary summary_of(StrategyKind strategy, const std::vector<RunStatistics>& runs, int budget) {
  StrategySummary summary;
  summary.strategy = strategy;
  summary.seeds = static_cast<int>(runs.size());
  summary.trials_to_5pct = over_seeds(collect(runs, [](const RunStatistics& run) { return run.trials_to_5pct; }));
  summary.trials_to_1pct = over_seeds(collect(runs, [](const RunStatistics& run) { return run.trials_to_1pct; }));
  summary.failed_first_20_mean = mean(collect(runs, [](const RunStatistics& run) { return run.failed_first; }));
  for (std::size_t i = 0; i < kComparedAt.size(); ++i) {
    if (kComparedAt[i] > budget) continue;
    summary.best_over_optimum_at[i] =
        mean(collect(runs, [i](const RunStatistics& run) { return run.best_over_optimum[i]; }));
  }
  return summary;
}

std::optional<double> best_of_all(const std::vector<ComparedTrial>& rows, const Objective& objective) {
  std::optional<double> best;
  for (const ComparedTrial& row : rows) {
    if (row.value && (!best || objective.better(*row.value, *best))) best = row.value;
  }
  return best;
}

}  // namespace

void summarise(Comparison& comparison, const Objective& objective, int budget) {
  if (!comparison.optimum_is_known) comparison.optimum = best_of_all(comparison.trials, objective);
  comparison.summary.clear();
  const Row end = comparison.trials.end();
  std::vector<RunStatistics> runs;
  for (Row first = comparison.trials.begin(); first != end;) {
    const Row last = end_of_run(first, end);
    fill_regret(first, last, objective, comparison.optimum);
    runs.push_back(statistics_of(first, last, budget));
    const bool strategy_ends = last == end || last->strategy != first->strategy;
    if (strategy_ends) {
      comparison.summary.push_back(summary_of(first->strategy, runs, budget));
      runs.clear();
    }
    first = last;
  }
}

}  // namespace krigtune
