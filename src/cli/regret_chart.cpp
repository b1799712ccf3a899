// The axis of regret is one of bands, each about half the one above: the interesting part of a search is its end.
#include "regret_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "krigtune/core/text.h"

namespace krigtune {
namespace {

// Lower ends of the bands; a regret belongs to the first band whose end it reaches.
constexpr std::array<double, 10> kBands{0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0};
constexpr int kMargin = 10;

std::size_t band_of(double regret) {
  std::size_t band = 0;
  while (band + 1 < kBands.size() && !(regret >= kBands[band])) ++band;
  return band;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

// Where several strategies lie in one band, the mark says so.
void put(char& place, char mark) { place = place == ' ' || place == mark ? mark : '*'; }

}  // namespace

std::vector<double> median_regret(const Comparison& comparison, StrategyKind strategy, int trials) {
  std::map<std::uint64_t, std::vector<double>> runs;
  for (const ComparedTrial& trial : comparison.trials) {
    if (trial.strategy == strategy) runs[trial.seed].push_back(trial.regret);
  }
  std::vector<double> medians;
  for (std::size_t i = 0; !runs.empty() && i < static_cast<std::size_t>(trials); ++i) {
    std::vector<double> at;
    for (const auto& [seed, regrets] : runs) at.push_back(i < regrets.size() ? regrets[i] : regrets.back());
    medians.push_back(median(at));
  }
  return medians;
}

std::string regret_chart(const Comparison& comparison, int trials, int width) {
  const int columns = std::clamp(width - kMargin - 1, 20, std::max(trials, 20));
  std::vector<std::string> rows(kBands.size(), std::string(static_cast<std::size_t>(columns), ' '));
  std::vector<std::string> legend;
  for (const StrategySummary& summary : comparison.summary) {
    const std::string name = to_string(summary.strategy);
    const std::vector<double> regret = median_regret(comparison, summary.strategy, trials);
    legend.push_back(fmt::format("{} {}", name.front(), name));
    for (int column = 0; column < columns && !regret.empty(); ++column) {
      const auto trial = trials <= columns
                             ? column
                             : static_cast<int>(static_cast<std::int64_t>(column) * (trials - 1) / (columns - 1));
      if (trial >= trials) break;
      put(rows[band_of(regret[static_cast<std::size_t>(trial)])][static_cast<std::size_t>(column)], name.front());
    }
  }
  std::string text = fmt::format("median regret after 1 to {} trials ({}, * several)\n", trials, join(legend, ", "));
  for (std::size_t band = 0; band < kBands.size(); ++band) {
    rows[band].erase(rows[band].find_last_not_of(' ') + 1);
    const std::string label = kBands[band] > 0.0 ? fmt::format(">= {:g} %", kBands[band] * 100.0) : "less";
    text += fmt::format("{:>{}} |{}\n", label, kMargin - 2, rows[band]);
  }
  return text;
}

}  // namespace krigtune
