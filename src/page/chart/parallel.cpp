// Parallel coordinates. A line is interrupted where a trial has no value. To brush an axis, script.js reads the
// data-places of the lines and the axes' own positions.
#include <fmt/format.h>

#include <algorithm>

#include "page/chart/chart.h"
#include "page/chart/svg.h"
#include "page/html/html.h"

namespace krigtune::page {
namespace {

constexpr double kAxesHeight = 320.0;
constexpr double kAxesTop = 44.0;
constexpr double kAxesBottom = 300.0;
constexpr double kAxesLeft = 60.0;
constexpr double kBetween = 118.0;
constexpr double kRoomOfLast = 90.0;
constexpr double kMostTimes = 1.5;  // limit on its growth with the page
constexpr std::size_t kLongestAxisName = 17;
constexpr std::size_t kLongestLabel = 14;

double axis_x(std::size_t axis) { return kAxesLeft + kBetween * static_cast<double>(axis); }
double axis_y(double place) { return kAxesBottom - place * (kAxesBottom - kAxesTop); }

// Names alternate between two rows, so that long names of neighbours do not overlap.
std::string axis(const ParallelAxis& axis, std::size_t number) {
  const double x = axis_x(number);
  std::string text =
      svg::words(x, number % 2 == 0 ? 14.0 : 30.0, "middle", svg::shortened(axis.name, kLongestAxisName));
  text += svg::line(x, kAxesTop, x, kAxesBottom, "rod");
  for (std::size_t i = 0; i < axis.labels.size(); ++i) {
    text += svg::words(x + 6.0, axis_y(axis.places[i]) + 4.0, "start", svg::shortened(axis.labels[i], kLongestLabel),
                       "tick");
  }
  return fmt::format("<g class=\"axis\" data-axis=\"{}\">{}{}</g>\n", number, text,
                     svg::rectangle(x - 14.0, kAxesTop, 28.0, kAxesBottom - kAxesTop, "brush", axis.name));
}

std::string trial_line(const ParallelLine& line) {
  std::string path;
  std::string places;
  bool is_down = false;
  for (std::size_t i = 0; i < line.places.size(); ++i) {
    places += fmt::format("{}{:.3f}", i == 0 ? "" : " ", line.places[i]);
    if (line.places[i] < 0.0) {
      is_down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", is_down ? "L" : "M", axis_x(i), axis_y(line.places[i]));
    is_down = true;
  }
  return fmt::format("<path d=\"{}\" class=\"trial {}\" data-trial=\"{}\" data-places=\"{}\">{}</path>\n", path,
                     line.kind, line.trial, places, svg::tip(line.tip));
}

}  // namespace

std::string parallel(const Parallel& parallel) {
  std::string content;
  // Important lines are drawn last, above the others.
  for (const char* kind : {"failed", "other", "good", "best"}) {
    for (const ParallelLine& one : parallel.lines) {
      if (one.kind == kind) content += trial_line(one);
    }
  }
  for (std::size_t i = 0; i < parallel.axes.size(); ++i) content += axis(parallel.axes[i], i);
  const double width = axis_x(parallel.axes.size() - 1) + kRoomOfLast;
  return fmt::format(
      "<div class=\"scroll\" role=\"group\" aria-label=\"{}\" tabindex=\"0\">\n{}</div>\n", escaped(parallel.title),
      element("div", {{"style", fmt::format("min-width:{:.0f}px;max-width:{:.0f}px", width, kMostTimes * width)}},
              svg::drawing({width, kAxesHeight}, parallel.title, parallel.description, content, "parallel")));
}

}  // namespace krigtune::page
