// The axis of regret has bands, each about half the one above, because the interesting part of a search is its end.
#include "programs/krigtune/regret_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text.h"
#include "report/plot.h"

namespace krigtune::cli {
namespace {

// Lower ends of the bands. A regret belongs to the first band whose lower end it reaches.
constexpr std::array<double, 10> kBands{0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0};
constexpr int kMargin = 10;

std::size_t band_of(double regret) {
  std::size_t band = 0;
  while (band + 1 < kBands.size() && !(regret >= kBands[band])) ++band;
  return band;
}

// A special mark shows that several strategies are in the same band.
void put(char& place, char mark) { place = place == ' ' || place == mark ? mark : '*'; }

/// Maps columns to trials: few trials have several columns each, many share one.
struct ChartColumns {
  int trials;
  int count;

  ChartColumns(int all_trials, int width) : trials(all_trials) {
    constexpr int kWidest = 6;
    const int room = std::max(width - kMargin - 1, 20);
    count = trials > room ? room : trials * std::clamp(room / trials, 1, kWidest);
  }
  // Counted from 0.
  int trial(int column) const {
    if (count >= trials) return column / (count / trials);
    return static_cast<int>(static_cast<std::int64_t>(column) * (trials - 1) / (count - 1));
  }
  int column(int trial) const {
    if (count >= trials) return trial * (count / trials);
    return static_cast<int>(static_cast<std::int64_t>(trial) * (count - 1) / (trials - 1));
  }
};

// Returns the line below the chart, with the numbers of trials below its ticks.
std::string axis(const ChartColumns& columns) {
  constexpr int kLeastTick = 8;  // columns
  std::string line(static_cast<std::size_t>(columns.count), '-');
  std::string numbers;
  const report::PlotAxis trials{"", 1.0, std::max(columns.trials, 2) * 1.0};
  for (const double tick : report::axis_ticks(trials, std::max(3, columns.count / kLeastTick))) {
    const auto at = static_cast<std::size_t>(columns.column(static_cast<int>(tick) - 1));
    if (tick != std::floor(tick) || at >= line.size()) continue;
    line[at] = '+';
    if (!numbers.empty() && at <= numbers.size()) continue;
    numbers.resize(at, ' ');
    numbers += fmt::format("{:g}", tick);
  }
  return fmt::format("{:>{}}+{}\n{:>{}} {}\n", "", kMargin - 1, line, "", kMargin - 1, numbers);
}

}  // namespace

std::string regret_chart(const compare::Comparison& comparison, int trials, int width) {
  const ChartColumns columns(trials, width);
  std::vector<std::string> rows(kBands.size(), std::string(static_cast<std::size_t>(columns.count), ' '));
  std::vector<std::string> legend;
  for (const compare::StrategySummary& summary : comparison.summary) {
    const std::string name = search::to_string(summary.strategy);
    const std::vector<compare::SeedStatistics> regret = compare::regret_curve(comparison, summary.strategy, trials);
    legend.push_back(fmt::format("{} {}", name.front(), name));
    for (int column = 0; column < columns.count && !regret.empty(); ++column) {
      const double median = regret[static_cast<std::size_t>(columns.trial(column))].median;
      put(rows[band_of(median)][static_cast<std::size_t>(column)], name.front());
    }
  }
  std::string text = fmt::format("median regret after 1 to {} trials ({}, * several)\n", trials, join(legend, ", "));
  for (std::size_t band = 0; band < kBands.size(); ++band) {
    rows[band].erase(rows[band].find_last_not_of(' ') + 1);
    const std::string label = kBands[band] > 0.0 ? fmt::format(">= {:g} %", kBands[band] * 100.0) : "less";
    text += fmt::format("{:>{}} |{}\n", label, kMargin - 2, rows[band]);
  }
  return text + axis(columns);
}

}  // namespace krigtune::cli
