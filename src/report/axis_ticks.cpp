#include <algorithm>
#include <cmath>

#include "krigtune/report/plot.h"

namespace krigtune {
namespace {

constexpr double kEdge = 1e-9;  // of the axis: a tick at its end must not be lost to rounding

// 1, 2 or 5 times a power of ten, the smallest that makes no more than `most` ticks.
double linear_step(double range, int most) {
  const double least = range / most;
  const double decade = std::pow(10.0, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * decade >= least) return digit * decade;
  }
  return 10.0 * decade;
}

std::vector<double> linear_ticks(const PlotAxis& axis, int most) {
  const double step = linear_step(axis.max - axis.min, most - 1);
  std::vector<double> ticks;
  const double slack = kEdge * (axis.max - axis.min) / step;
  for (double k = std::ceil(axis.min / step - slack); k <= axis.max / step + slack; ++k) ticks.push_back(k * step);
  return ticks;
}

std::vector<double> logarithmic_ticks(const PlotAxis& axis, const std::vector<double>& digits, int every) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(axis.min) + kEdge));
  for (int decade = first; std::pow(10.0, decade) <= axis.max * (1.0 + kEdge); decade += every) {
    for (const double digit : digits) {
      // Through text-like powers: 1e-3 and not 0.001000...2.
      const double tick = decade < 0 ? digit / std::pow(10.0, -decade) : digit * std::pow(10.0, decade);
      if (tick >= axis.min * (1.0 - kEdge) && tick <= axis.max * (1.0 + kEdge)) ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace

std::vector<double> axis_ticks(const PlotAxis& axis, int most) {
  if (!axis.logarithmic) return linear_ticks(axis, most);
  const std::vector<std::vector<double>> kDigits = {{1.0, 2.0, 5.0}, {1.0, 3.0}, {1.0}};
  for (const std::vector<double>& digits : kDigits) {
    const std::vector<double> ticks = logarithmic_ticks(axis, digits, 1);
    if (static_cast<int>(ticks.size()) <= most) return ticks;
  }
  int every = 2;
  std::vector<double> ticks = logarithmic_ticks(axis, {1.0}, every);
  while (static_cast<int>(ticks.size()) > most) ticks = logarithmic_ticks(axis, {1.0}, ++every);
  return ticks;
}

}  // namespace krigtune
