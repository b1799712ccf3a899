#pragma once
#include <functional>
#include <string>
#include <vector>

namespace krigtune::report {

/// An axis from `min` to `max`, which lie apart; both positive where it is logarithmic.
struct PlotAxis {
  std::string title;
  double min = 0.0;
  double max = 1.0;
  bool logarithmic = false;
  std::function<std::string(double)> label = {};  ///< of a tick; empty: the number
};

/// A line over ascending x, and what lies between `low` and `high` shaded.
struct PlotCurve {
  std::string name;       ///< in the legend
  std::vector<double> x;  ///< as many as y
  std::vector<double> y;
  std::vector<double> low = {};  ///< empty: no band
  std::vector<double> high = {};
};

struct Plot {
  std::string title;        ///< of one line: some 80 characters
  std::string description;  ///< for who cannot see it
  PlotAxis x;
  PlotAxis y;
  std::vector<std::string> notes = {};  ///< short lines below the legend
  std::vector<PlotCurve> curves;        ///< the first is drawn last and thickest
  bool steps = false;                   ///< a value holds until the next one's x
  std::vector<double> marked_y = {};    ///< levels that matter: dashed lines
};

/// Positions of an axis' ticks, ascending: 1, 2 and 5 times powers of ten, `most` at most (at least 3).
std::vector<double> axis_ticks(const PlotAxis& axis, int most);

/// Where on the axis a value lies, from 0 to 1; outside it its end.
double axis_share(const PlotAxis& axis, double value);

/// The drawing as one SVG element: no script, no font, nothing fetched; colours follow the reader's light or dark
/// scheme, lines differ in their dashes too. What lies outside the axes is drawn at their ends.
std::string plot_svg(const Plot& plot);

}  // namespace krigtune::report
