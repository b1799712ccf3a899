#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/plot.h"

namespace krigtune::page {

/// Shapes tell marks apart without any colour.
enum class Shape { kDot, kRing, kCross, kSquare, kTriangle, kDiamond };

struct Mark {
  double x = 0.0;
  double y = 0.0;
  std::optional<double> low = std::nullopt;  ///< of y: a whisker from low to high
  std::optional<double> high = std::nullopt;
  std::string tip = {};   ///< shown when it is pointed at: text
  std::string link = {};  ///< "#trial-7"; "": none
};

/// Marks of one kind.
struct Marks {
  std::string name;  ///< in the legend; "": not there
  Shape shape = Shape::kDot;
  int hue = 0;  ///< of the page's colours, 0 to 5
  std::vector<Mark> marks;
};

struct Line {
  std::string name;  ///< in the legend; "": not there
  int hue = 0;
  std::vector<double> x;  ///< ascending, as many as y
  std::vector<double> y;
  bool steps = false;  ///< a value holds until the next one's x
  bool dashed = false;
  std::vector<double> low = {};  ///< empty: no band
  std::vector<double> high = {};
  std::string at_end = {};  ///< written where it ends: what tells it from others without its hue
};

/// A drawing of two axes. Places outside the axes are drawn at their ends.
struct Chart {
  std::string title;        ///< text
  std::string description;  ///< for who cannot see it: what there is to see
  report::PlotAxis x;
  report::PlotAxis y;
  std::vector<std::string> categories = {};  ///< of x, at 0, 1, 2, ...; empty: numbers
  std::vector<Line> lines = {};
  std::vector<Marks> marks = {};
};

/// The drawing as one SVG element; its colours are the page's. Then its legend.
std::string chart(const Chart& chart);

/// An axis that holds all of the values with some room; around a single one. Logarithmic only where all are positive.
report::PlotAxis axis_around(const std::string& title, const std::vector<double>& values, bool logarithmic = false);

/// One part of a bar.
struct BarPart {
  std::string name;  ///< the same part has the same name in each bar
  double size = 0.0;
};
struct Bar {
  std::string name;
  std::vector<BarPart> parts;
  std::optional<double> mark = std::nullopt;  ///< a diamond there: what was measured
};
/// Horizontal bars, one below the other.
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
/// A choice of trials, and a bar on the scale of `bars` of the one that is chosen: needs the script, and the table with
/// that id, which has the numbers without it. Its columns are: trial, the mark (or an empty cell), the whole, then
/// `parts` in their order, by the names that `bars` has them by.
std::string bar_picker(const Bars& bars, const std::string& table_id, const std::vector<std::string>& parts);

/// Horizontal intervals with a point each, one below the other.
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
  std::optional<double> share = std::nullopt;  ///< of the shade: 0 (worst) to 1 (best); empty: not shaded
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

/// Lines across several axes, a line for each trial.
struct ParallelAxis {
  std::string name;
  std::vector<std::string> labels;  ///< from the bottom to the top, with `places`
  std::vector<double> places;       ///< 0 (bottom) to 1 (top), ascending
};
struct ParallelLine {
  int trial = 0;
  std::string tip;
  std::string kind;            ///< "best", "good", "other" or "failed"
  std::vector<double> places;  ///< one an axis; negative: it has none there
};
struct Parallel {
  std::string title;
  std::string description;
  std::vector<ParallelAxis> axes;
  std::vector<ParallelLine> lines;
};
std::string parallel(const Parallel& parallel);

}  // namespace krigtune::page
