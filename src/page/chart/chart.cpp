// A chart with two axes. It is narrow, so that its text is readable on a phone, and grows with the page.
#include "page/chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "page/chart/svg.h"
#include "page/html/html.h"

namespace krigtune::page {
namespace {

constexpr double kWidth = 440.0;
constexpr double kHeight = 290.0;
constexpr double kLeft = 62.0;
constexpr double kRight = 430.0;
constexpr double kTop = 26.0;
constexpr double kBottom = 240.0;
constexpr int kMostTicksX = 7;
constexpr int kMostTicksY = 8;
constexpr std::size_t kLongestCategory = 12;

double page_x(const Chart& chart, double x) { return kLeft + report::axis_share(chart.x, x) * (kRight - kLeft); }
double page_y(const Chart& chart, double y) { return kBottom - report::axis_share(chart.y, y) * (kBottom - kTop); }

// Returns 1, or a larger stride that leaves out category labels so that they do not overlap.
std::size_t stride_of(const Chart& chart) {
  constexpr double kCharacter = 6.5;  // width in the page's font
  std::size_t longest = 1;
  for (const std::string& category : chart.categories) {
    longest = std::max(longest, std::min(category.size(), kLongestCategory));
  }
  const double room = (kRight - kLeft) / static_cast<double>(chart.categories.size());
  return static_cast<std::size_t>(std::ceil(std::max(1.0, kCharacter * (static_cast<double>(longest) + 1.0) / room)));
}

std::string x_axis(const Chart& chart) {
  std::string text;
  const auto tick = [&](double at, const std::string& label) {
    const double x = page_x(chart, at);
    text += svg::line(x, kTop, x, kBottom, "grid") + svg::words(x, kBottom + 16.0, "middle", label);
  };
  if (chart.categories.empty()) {
    for (const double at : report::axis_ticks(chart.x, kMostTicksX)) tick(at, svg::label(chart.x, at));
  } else {
    const std::size_t stride = stride_of(chart);
    for (std::size_t i = 0; i < chart.categories.size(); i += stride) {
      tick(static_cast<double>(i), svg::shortened(chart.categories[i], kLongestCategory));
    }
  }
  return text + svg::words(0.5 * (kLeft + kRight), kHeight - 12.0, "middle", chart.x.title, "axis");
}

std::string y_axis(const Chart& chart) {
  std::string text;
  for (const double tick : report::axis_ticks(chart.y, kMostTicksY)) {
    const double y = page_y(chart, tick);
    text += svg::line(kLeft, y, kRight, y, "grid") +
            svg::words(kLeft - 6.0, y + 4.0, "end", svg::shortened(svg::label(chart.y, tick), 9));
  }
  return text + svg::words(4.0, 14.0, "start", chart.y.title, "axis");
}

struct PlaceOnPage {
  double x, y;
};

std::vector<PlaceOnPage> path_of(const Chart& chart, const Line& line, const std::vector<double>& y) {
  std::vector<PlaceOnPage> path;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = page_x(chart, line.x[i]);
    if (line.steps && i > 0) path.push_back({x, path.back().y});
    path.push_back({x, page_y(chart, y[i])});
  }
  return path;
}

std::string text_of(const std::vector<PlaceOnPage>& path) {
  std::string text;
  for (const PlaceOnPage& place : path)
    text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", place.x, place.y);
  return text;
}

std::string line(const Chart& chart, const Line& line) {
  std::string text;
  if (!line.low.empty()) {
    std::vector<PlaceOnPage> around = path_of(chart, line, line.high);
    const std::vector<PlaceOnPage> below = path_of(chart, line, line.low);
    around.insert(around.end(), below.rbegin(), below.rend());
    text += fmt::format("<polygon points=\"{}\" class=\"band f{}\"/>\n", text_of(around), line.hue);
  }
  const std::vector<PlaceOnPage> path = path_of(chart, line, line.y);
  text += fmt::format("<polyline points=\"{}\" class=\"line s{}{}\"/>\n", text_of(path), line.hue,
                      line.dashed ? " dashed" : "");
  if (line.at_end.empty() || path.empty()) return text;
  constexpr double kAbove = 5.0;
  return text + svg::words(path.back().x, std::max(path.back().y - kAbove, kTop + 10.0), "end", line.at_end, "halo");
}

// Draws a shape around (x, y).
std::string shape(Shape shape, double x, double y, int hue) {
  const std::string filled = fmt::format("mark f{0} s{0}", hue);
  const std::string open = fmt::format("mark open s{}", hue);
  const auto polygon = [&](const std::string& points) {
    return fmt::format("<polygon points=\"{}\" class=\"{}\"/>", points, filled);
  };
  switch (shape) {
    case Shape::kDot:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" class=\"{}\"/>", x, y, filled);
    case Shape::kRing:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" class=\"{}\"/>", x, y, open);
    case Shape::kCross:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l8 8m0 -8l-8 8\" class=\"{}\"/>", x - 4.0, y - 4.0, open);
    case Shape::kSquare:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\" class=\"{}\"/>", x - 4.0, y - 4.0,
                         filled);
    case Shape::kTriangle:
      return polygon(
          fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x - 4.5, y - 4.0, x + 4.5, y - 4.0, x, y + 4.5));
    case Shape::kDiamond:
      return polygon(fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", x, y - 6.0, x + 6.0, y, x,
                                 y + 6.0, x - 6.0, y));
  }
  return "";
}

std::string mark(const Chart& chart, const Marks& kind, const Mark& mark) {
  const double x = page_x(chart, mark.x);
  std::string text;
  if (mark.low && mark.high) {
    text += svg::line(x, page_y(chart, *mark.low), x, page_y(chart, *mark.high), fmt::format("whisker s{}", kind.hue));
  }
  text += shape(kind.shape, x, page_y(chart, mark.y), kind.hue);
  text = fmt::format("<g>{}{}</g>", svg::tip(mark.tip), text);
  if (!mark.link.empty()) text = element("a", {{"href", mark.link}, {"tabindex", "-1"}}, text);
  return text + "\n";
}

std::string legend(const Chart& chart) {
  std::string entries;
  for (const Marks& kind : chart.marks) {
    if (!kind.name.empty() && !kind.marks.empty())
      entries += svg::legend_entry(shape(kind.shape, 13.0, 7.0, kind.hue), kind.name);
  }
  for (const Line& line : chart.lines) {
    if (line.name.empty()) continue;
    const std::string style = fmt::format("line s{}{}", line.hue, line.dashed ? " dashed" : "");
    entries += svg::legend_entry(svg::line(1.0, 7.0, 25.0, 7.0, style), line.name);
  }
  return svg::legend(entries);
}

}  // namespace

std::string chart(const Chart& chart) {
  std::string content = x_axis(chart) + y_axis(chart);
  content += svg::rectangle(kLeft, kTop, kRight - kLeft, kBottom - kTop, "frame");
  for (const Line& one : chart.lines) content += line(chart, one);
  for (const Marks& kind : chart.marks) {
    for (const Mark& one : kind.marks) content += mark(chart, kind, one);
  }
  return svg::drawing({kWidth, kHeight}, chart.title, chart.description, content) + legend(chart);
}

report::PlotAxis axis_around(const std::string& title, const std::vector<double>& values, bool logarithmic) {
  report::PlotAxis axis;
  axis.title = title;
  if (values.empty()) return axis;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  constexpr double kRoom = 0.06;
  axis.logarithmic = logarithmic && *least > 0.0 && *most > *least;
  if (axis.logarithmic) {
    const double room = std::pow(*most / *least, kRoom);
    axis.min = *least / room;
    axis.max = *most * room;
    return axis;
  }
  const double width = *most > *least ? *most - *least : std::max(std::abs(*most), 1.0);
  axis.min = *least - kRoom * width;
  axis.max = *most + kRoom * width;
  return axis;
}

}  // namespace krigtune::page
