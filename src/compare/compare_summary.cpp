// The statistics of a comparison. A run is a stretch of rows of one strategy and seed.
//
// If measurements are noisy, the largest value of a run is too optimistic. So a run is judged by the configuration that
// it would name, the one with the best mean of its own measurements so far, and that configuration by its worth: its
// value in the replayed table, otherwise the mean of its measurements in all runs. Without noise both are equal to the
// value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "compare/compare.h"
#include "core/statistics.h"

namespace krigtune::compare {
namespace {

constexpr int kFirstTrials = 20;  // of failed_first_20

using Row = std::vector<ComparedTrial>::iterator;
using ConstRow = std::vector<ComparedTrial>::const_iterator;

struct RunningMean {
  double sum = 0.0;
  int count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return sum / count; }
};

bool same_run(const ComparedTrial& a, const ComparedTrial& b) { return a.strategy == b.strategy && a.seed == b.seed; }

template <class Iterator>
Iterator end_of_run(Iterator first, Iterator last) {
  return std::find_if(first, last, [&](const ComparedTrial& row) { return !same_run(row, *first); });
}

// Rows without a configuration key are treated as distinct configurations.
std::string key_of(const ComparedTrial& row, std::size_t index) {
  return row.configuration.empty() ? fmt::format("#{}", index) : row.configuration;
}

// Uses the table's value if known, otherwise the mean over all runs.
void fill_worth(Comparison& comparison) {
  std::map<std::string, RunningMean> means;
  for (std::size_t i = 0; i < comparison.trials.size(); ++i) {
    const ComparedTrial& row = comparison.trials[i];
    if (row.value) means[key_of(row, i)].add(*row.value);
  }
  for (std::size_t i = 0; i < comparison.trials.size(); ++i) {
    ComparedTrial& row = comparison.trials[i];
    if (!row.value || (row.worth && comparison.optimum_is_known)) continue;
    row.worth = means.at(key_of(row, i)).value();
  }
}

std::optional<double> best_worth(const std::vector<ComparedTrial>& rows, const session::Objective& objective) {
  std::optional<double> best;
  for (const ComparedTrial& row : rows) {
    if (row.worth && (!best || objective.better(*row.worth, *best))) best = row.worth;
  }
  return best;
}

/// The configuration that a run considers best.
class Incumbent {
 public:
  explicit Incumbent(const session::Objective& objective) : objective_(objective) {}

  void add(const std::string& key, double value, double worth) {
    Seen& seen = seen_[key];
    seen.mean.add(value);
    seen.worth = worth;
    if (best_.empty() || objective_.better(seen.mean.value(), seen_[best_].mean.value())) {
      best_ = key;
    } else if (key == best_ && seen.mean.count > 1) {  // it may have fallen behind another
      best_ = std::min_element(seen_.begin(), seen_.end(), [&](const auto& a, const auto& b) {
                return objective_.better(a.second.mean.value(), b.second.mean.value());
              })->first;
    }
  }
  std::optional<double> worth() const { return best_.empty() ? std::nullopt : std::optional(seen_.at(best_).worth); }

 private:
  struct Seen {
    RunningMean mean;
    double worth = 0.0;
  };
  const session::Objective& objective_;
  std::map<std::string, Seen> seen_;
  std::string best_;
};

void fill_regret(Row first, Row last, const session::Objective& objective, std::optional<double> optimum) {
  Incumbent incumbent(objective);
  for (Row row = first; row != last; ++row) {
    if (row->value) incumbent.add(key_of(*row, static_cast<std::size_t>(row - first)), *row->value, *row->worth);
    row->best_so_far = incumbent.worth();
    row->regret = 1.0;
    const std::optional<double>& best = row->best_so_far;
    if (best && optimum) row->regret = objective.maximize ? 1.0 - *best / *optimum : 1.0 - *optimum / *best;
  }
}

// Returns the first row with at most this regret, or `last`.
ConstRow first_within(ConstRow first, ConstRow last, double within) {
  // Rounding of 1 - best / optimum must not count against a value that is at the edge.
  constexpr double kRounding = 1e-12;
  return std::find_if(first, last, [&](const ComparedTrial& row) { return row.regret <= within + kRounding; });
}

bool has_failed(const ComparedTrial& row) { return row.status != "ok" && row.status != "bounded"; }

double seconds_of(ConstRow first, ConstRow last) {
  return std::accumulate(first, last, 0.0, [](double sum, const ComparedTrial& row) { return sum + row.wall_s; });
}

ComparedRun run_of(ConstRow first, ConstRow last, int budget) {
  ComparedRun run;
  run.strategy = first->strategy;
  run.seed = first->seed;
  for (std::size_t i = 0; i < kComparedWithin.size(); ++i) {
    const ConstRow reached = first_within(first, last, kComparedWithin[i]);
    run.trials_to[i] = reached == last ? budget + 1.0 : static_cast<double>(reached - first) + 1.0;
    run.seconds_to[i] = seconds_of(first, reached == last ? last : reached + 1);
  }
  run.seconds = seconds_of(first, last);
  const auto length = static_cast<int>(last - first);
  run.failed_first_20 = static_cast<double>(std::count_if(first, first + std::min(kFirstTrials, length), has_failed));
  for (std::size_t i = 0; i < kComparedAt.size(); ++i) {
    run.best_over_optimum[i] = 1.0 - (first + std::min(kComparedAt[i], length) - 1)->regret;
  }
  return run;
}

SeedStatistics over_seeds(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return {quantile(values, 0.5), mean, quantile(values, 0.25), quantile(values, 0.75)};
}

template <class Get>
SeedStatistics over_runs(const std::vector<ComparedRun>& runs, Get get) {
  std::vector<double> values;
  for (const ComparedRun& run : runs) values.push_back(get(run));
  return over_seeds(std::move(values));
}

StrategySummary summary_of(const std::vector<ComparedRun>& runs, int budget) {
  StrategySummary summary;
  summary.strategy = runs.front().strategy;
  summary.seeds = static_cast<int>(runs.size());
  summary.trials_to_5pct = over_runs(runs, [](const ComparedRun& run) { return run.trials_to[0]; });
  summary.trials_to_1pct = over_runs(runs, [](const ComparedRun& run) { return run.trials_to[1]; });
  summary.seconds_to_5pct = over_runs(runs, [](const ComparedRun& run) { return run.seconds_to[0]; });
  summary.seconds = over_runs(runs, [](const ComparedRun& run) { return run.seconds; });
  summary.failed_first_20_mean = over_runs(runs, [](const ComparedRun& run) { return run.failed_first_20; }).mean;
  for (std::size_t i = 0; i < kComparedAt.size(); ++i) {
    if (kComparedAt[i] > budget) continue;
    summary.best_over_optimum_at[i] =
        over_runs(runs, [i](const ComparedRun& run) { return run.best_over_optimum[i]; }).mean;
  }
  return summary;
}

std::vector<std::vector<ComparedRun>> by_strategy(const std::vector<ComparedRun>& runs) {
  std::vector<std::vector<ComparedRun>> groups;
  for (const ComparedRun& run : runs) {
    if (groups.empty() || groups.back().front().strategy != run.strategy) groups.emplace_back();
    groups.back().push_back(run);
  }
  return groups;
}

PairedRuns to_pair(const std::vector<ComparedRun>& runs, std::size_t target) {
  PairedRuns paired;
  for (const ComparedRun& run : runs) {
    paired.seeds.push_back(run.seed);
    paired.trials.push_back(run.trials_to[target]);
  }
  return paired;
}

bool is_cut_short(const Comparison& comparison, const ComparedTrial& row) {
  const auto& cut = comparison.cut_short;
  return std::find(cut.begin(), cut.end(), std::pair(row.strategy, row.seed)) != cut.end();
}

void fill_pairs(Comparison& comparison, const std::vector<std::vector<ComparedRun>>& groups, int budget) {
  comparison.pairs.clear();
  for (std::size_t target = 0; target < kComparedWithin.size(); ++target) {
    for (std::size_t other = 1; other < groups.size(); ++other) {
      auto pair = paired_comparison(to_pair(groups[0], target), to_pair(groups[other], target), budget);
      if (!pair) continue;
      pair->first = groups[0].front().strategy;
      pair->other = groups[other].front().strategy;
      pair->within = kComparedWithin[target];
      comparison.pairs.push_back(*pair);
    }
  }
}

}  // namespace

void summarise(Comparison& comparison, const session::Objective& objective, int budget) {
  fill_worth(comparison);
  if (!comparison.optimum_is_known) comparison.optimum = best_worth(comparison.trials, objective);
  comparison.runs.clear();
  const Row end = comparison.trials.end();
  for (Row first = comparison.trials.begin(); first != end;) {
    const Row last = end_of_run(first, end);
    fill_regret(first, last, objective, comparison.optimum);
    if (!is_cut_short(comparison, *first)) comparison.runs.push_back(run_of(first, last, budget));
    first = last;
  }
  const std::vector<std::vector<ComparedRun>> groups = by_strategy(comparison.runs);
  comparison.summary.clear();
  for (const auto& runs : groups) comparison.summary.push_back(summary_of(runs, budget));
  fill_pairs(comparison, groups, budget);
}

std::vector<SeedStatistics> regret_curve(const Comparison& comparison, search::StrategyKind strategy, int trials) {
  std::vector<std::vector<double>> runs;
  const ConstRow end = comparison.trials.end();
  for (ConstRow first = comparison.trials.begin(); first != end;) {
    const ConstRow last = end_of_run(first, end);
    if (first->strategy == strategy && !is_cut_short(comparison, *first)) {
      auto& regrets = runs.emplace_back();
      std::transform(first, last, std::back_inserter(regrets), [](const ComparedTrial& row) { return row.regret; });
    }
    first = last;
  }
  std::vector<SeedStatistics> curve;
  for (std::size_t i = 0; !runs.empty() && i < static_cast<std::size_t>(trials); ++i) {
    std::vector<double> at;
    for (const auto& regrets : runs) at.push_back(regrets[std::min(i, regrets.size() - 1)]);
    curve.push_back(over_seeds(std::move(at)));
  }
  return curve;
}

}  // namespace krigtune::compare
