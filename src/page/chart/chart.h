#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/plot.h"

namespace krigtune::page {

/// Shapes distinguish marks without any colour.
enum class Shape { kDot, kRing, kCross, kSquare, kTriangle, kDiamond };

struct Mark {
  double x = 0.0;
  double y = 0.0;
  std::optional<double> low = std::nullopt;  ///< of y: whisker from low to high
  std::optional<double> high = std::nullopt;
  std::string tip = {};   ///< text that is shown on hover
  std::string link = {};  ///< "#trial-7"; "": none
};

/// Marks of one kind.
struct Marks {
  std::string name;  ///< in the legend; "": not in the legend
  Shape shape = Shape::kDot;
  int hue = 0;  ///< index of the page's colours, 0 to 5
  std::vector<Mark> marks;
};

struct Line {
  std::string name;  ///< in the legend; "": not in the legend
  int hue = 0;
  std::vector<double> x;  ///< ascending, as many as y
  std::vector<double> y;
  bool steps = false;  ///< step function: a value is valid until the next x
  bool dashed = false;
  std::vector<double> low = {};  ///< empty: no band
  std::vector<double> high = {};
  std::string at_end = {};  ///< text at the end of the line, which distinguishes it without its hue
};

/// A chart with two axes. Points outside the axes are drawn at the nearest end.
struct Chart {
  std::string title;        ///< text
  std::string description;  ///< for readers who cannot see the chart: what it shows
  report::PlotAxis x;
  report::PlotAxis y;
  std::vector<std::string> categories = {};  ///< of x, at 0, 1, 2, ...; empty: numbers
  std::vector<Line> lines = {};
  std::vector<Marks> marks = {};
};

/// Returns the chart as one SVG element with the page's colours, followed by its legend.
std::string chart(const Chart& chart);

/// Returns an axis that contains all values with a margin, also around a single value. Logarithmic only if all are
/// positive.
report::PlotAxis axis_around(const std::string& title, const std::vector<double>& values, bool logarithmic = false);

/// One part of a bar.
struct BarPart {
  std::string name;  ///< the same part has the same name in every bar
  double size = 0.0;
};
struct Bar {
  std::string name;
  std::vector<BarPart> parts;
  std::optional<double> mark = std::nullopt;  ///< position of a diamond: the measured value
};
/// Horizontal bars below each other.
struct Bars {
  std::string title;
  std::string description;
  report::PlotAxis axis;  ///< from 0
  std::vector<Bar> bars;
  std::optional<double> limit = std::nullopt;  ///< a line across all bars
  std::string limit_name = {};
  std::string mark_name = {};
};
std::string bars(const Bars& bars);
/// Returns a selector of trials and a bar of the selected one on the scale of `bars`. It needs the script and the table
/// with that id, which shows the numbers without the script. The table's columns are: trial, the mark (or an empty
/// cell), the total, then `parts` in order, with the names used in `bars`.
std::string bar_picker(const Bars& bars, const std::string& table_id, const std::vector<std::string>& parts);

/// Horizontal intervals with one point each, below each other.
struct Interval {
  std::string name;
  double value = 0.0, low = 0.0, high = 0.0;
};
struct Intervals {
  std::string title;
  std::string description;
  report::PlotAxis axis;
  std::vector<Interval> intervals;
};
std::string intervals(const Intervals& intervals);

/// A cell of a heat map.
struct HeatCell {
  std::optional<double> share = std::nullopt;  ///< position of the shade: 0 (worst) to 1 (best); empty: not shaded
  std::string text;                            ///< written in it
  std::string tip = {};
  bool marked = false;  ///< with a thick border
};
/// Two parameters against each other.
struct HeatMap {
  std::string title;
  std::string description;
  std::string x_title, y_title;
  std::vector<std::string> columns, rows;
  std::vector<std::vector<HeatCell>> cells;  ///< by row, as many as rows and columns
};
std::string heat_map(const HeatMap& map);

/// Parallel coordinates: one line per trial across several axes.
struct ParallelAxis {
  std::string name;
  std::vector<std::string> labels;  ///< from bottom to top, as many as `places`
  std::vector<double> places;       ///< 0 (bottom) to 1 (top), ascending
};
struct ParallelLine {
  int trial = 0;
  std::string tip;
  std::string kind;            ///< "best", "good", "other" or "failed"
  std::vector<double> places;  ///< one per axis; negative: no value there
};
struct Parallel {
  std::string title;
  std::string description;
  std::vector<ParallelAxis> axes;
  std::vector<ParallelLine> lines;
};
std::string parallel(const Parallel& parallel);

}  // namespace krigtune::page
