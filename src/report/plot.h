#pragma once
#include <functional>
#include <string>
#include <vector>

namespace krigtune::report {

/// An axis from `min` to `max`, which must differ; both must be positive on a logarithmic axis.
struct PlotAxis {
  std::string title;
  double min = 0.0;
  double max = 1.0;
  bool logarithmic = false;
  std::function<std::string(double)> label = {};  ///< text of a tick; empty: the number
};

/// A line over ascending x, with the area between `low` and `high` shaded.
struct PlotCurve {
  std::string name;       ///< in the legend
  std::vector<double> x;  ///< as many as y
  std::vector<double> y;
  std::vector<double> low = {};  ///< empty: no band
  std::vector<double> high = {};
};

struct Plot {
  std::string title;        ///< one line of about 80 characters
  std::string description;  ///< for readers who cannot see the plot
  PlotAxis x;
  PlotAxis y;
  std::vector<std::string> notes = {};  ///< short lines below the legend
  std::vector<PlotCurve> curves;        ///< the first is drawn last and thickest
  bool steps = false;                   ///< step function: a value is valid until the next x
  std::vector<double> marked_y = {};    ///< reference levels, drawn as dashed lines
};

/// Returns the positions of an axis' ticks, ascending: 1, 2 and 5 times powers of ten, at most `most` (>= 3).
std::vector<double> axis_ticks(const PlotAxis& axis, int most);

/// Returns the position of a value on the axis, from 0 to 1; values outside are moved to the nearest end.
double axis_share(const PlotAxis& axis, double value);

/// Returns the plot as one SVG element without scripts, fonts or external resources. Its colours follow the reader's
/// light or dark scheme, and lines also differ in their dashes. Points outside the axes are drawn at the nearest end.
std::string plot_svg(const Plot& plot);

}  // namespace krigtune::report
