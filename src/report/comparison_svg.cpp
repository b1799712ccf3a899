#include <fmt/format.h>

#include <algorithm>

#include "krigtune/report/comparison.h"
#include "krigtune/report/plot.h"

namespace krigtune {
namespace {

// The bottom of the logarithmic axis: a regret of 0.1 % is less than a measurement can tell.
constexpr double kLeastRegret = 1e-3;

std::string regret_label(double regret) {
  return fmt::format("{}{:g} %", regret <= kLeastRegret ? "\u2264 " : "", regret * 100.0);
}

PlotCurve curve_of(const Comparison& comparison, const StrategySummary& summary, int budget) {
  PlotCurve curve;
  curve.name = to_string(summary.strategy);
  for (const SeedStatistics& regret : regret_curve(comparison, summary.strategy, budget)) {
    curve.x.push_back(static_cast<double>(curve.x.size()) + 1.0);
    curve.y.push_back(regret.median);
    if (summary.seeds < 2) continue;
    curve.low.push_back(regret.q25);
    curve.high.push_back(regret.q75);
  }
  return curve;
}

}  // namespace

std::string comparison_svg(const Comparison& comparison, const std::string& title, int budget) {
  Plot plot;
  plot.title = title;
  plot.description =
      "Regret (how far the best so far is from the optimum) after each trial: the median over the runs of each "
      "strategy, the middle half of them shaded.";
  plot.x = {"trials", 1.0, std::max(budget, 2) * 1.0};
  plot.y = {"regret: 1 - best / optimum", kLeastRegret, 1.0, true, regret_label};
  plot.steps = true;
  plot.marked_y.assign(kComparedWithin.begin(), kComparedWithin.end());
  int most = 1;
  for (const StrategySummary& summary : comparison.summary) {
    most = std::max(most, summary.seeds);
    plot.curves.push_back(curve_of(comparison, summary, budget));
  }
  if (most > 1) plot.notes = {fmt::format("median of {} runs,", most), "middle half shaded"};
  return plot_svg(plot);
}

}  // namespace krigtune
