// Bars and intervals are drawn below each other, with their names above them so that long names have room.
#include <fmt/format.h>

#include <algorithm>

#include "page/chart/chart.h"
#include "page/chart/svg.h"
#include "page/html/html.h"

namespace krigtune::page {
namespace {

constexpr double kBarsWidth = 440.0;
constexpr double kBarsLeft = 8.0;
constexpr double kBarsRight = 424.0;
constexpr double kBarsTop = 18.0;
constexpr double kRow = 40.0;
constexpr double kBar = 16.0;
constexpr double kFoot = 42.0;  // for ticks and the title of the axis
constexpr int kMostBarTicks = 6;
constexpr int kHues = 6;
constexpr std::size_t kLongestName = 62;

double bar_x(const report::PlotAxis& axis, double value) {
  return kBarsLeft + report::axis_share(axis, value) * (kBarsRight - kBarsLeft);
}

double bottom_of(std::size_t rows) { return kBarsTop + kRow * static_cast<double>(rows); }

std::string ticks(const report::PlotAxis& axis, std::size_t rows) {
  const double bottom = bottom_of(rows);
  std::string text;
  for (const double tick : report::axis_ticks(axis, kMostBarTicks)) {
    const double x = bar_x(axis, tick);
    text += svg::line(x, kBarsTop, x, bottom, "grid");
    text +=
        svg::words(std::clamp(x, kBarsLeft + 14.0, kBarsRight - 8.0), bottom + 16.0, "middle", svg::label(axis, tick));
  }
  return text + svg::words(0.5 * (kBarsLeft + kBarsRight), bottom + 34.0, "middle", axis.title, "axis");
}

// Returns the names in the order in which they first appear; the position of a part determines its hue.
std::vector<std::string> part_names(const Bars& bars) {
  std::vector<std::string> names;
  for (const Bar& bar : bars.bars) {
    for (const BarPart& part : bar.parts) {
      if (std::find(names.begin(), names.end(), part.name) == names.end()) names.push_back(part.name);
    }
  }
  return names;
}

// After six parts the hues repeat with stripes.
std::string part_style(std::size_t place) {
  return fmt::format("part f{}{}", place % kHues, place >= kHues ? " again" : "");
}

std::string bar(const Bars& bars, const std::vector<std::string>& names, std::size_t row) {
  const Bar& bar = bars.bars[row];
  const double top = kBarsTop + kRow * static_cast<double>(row);
  std::string text = svg::words(kBarsLeft, top + 13.0, "start", svg::shortened(bar.name, kLongestName));
  double sum = 0.0;
  for (const BarPart& part : bar.parts) {
    const double from = bar_x(bars.axis, sum);
    sum += part.size;
    const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), part.name) - names.begin());
    text += svg::rectangle(from, top + 18.0, std::max(0.0, bar_x(bars.axis, sum) - from), kBar, part_style(place),
                           fmt::format("{}: {}", part.name, svg::label(bars.axis, part.size)));
  }
  if (bar.mark) {
    const double x = bar_x(bars.axis, *bar.mark);
    text += fmt::format("<path d=\"M{:.1f} {:.1f}l6 8l-6 8l-6 -8z\" class=\"measured\">{}</path>\n", x, top + 18.0,
                        svg::tip(fmt::format("{}: {}", bars.mark_name, svg::label(bars.axis, *bar.mark))));
  }
  return text;
}

std::string bars_legend(const Bars& bars, const std::vector<std::string>& names) {
  std::string entries;
  const auto add = [&](const std::string& glyph, const std::string& name) {
    entries += svg::legend_entry(glyph, name);
  };
  for (std::size_t i = 0; i < names.size(); ++i) add(svg::rectangle(3.0, 1.0, 20.0, 12.0, part_style(i)), names[i]);
  if (!bars.mark_name.empty()) add("<path d=\"M13 0l5 7l-5 7l-5 -7z\" class=\"measured\"/>", bars.mark_name);
  if (bars.limit) add(svg::line(13.0, 0.0, 13.0, 14.0, "limit"), bars.limit_name);
  return svg::legend(entries);
}

}  // namespace

std::string bars(const Bars& bars) {
  const std::vector<std::string> names = part_names(bars);
  std::string content = ticks(bars.axis, bars.bars.size());
  for (std::size_t row = 0; row < bars.bars.size(); ++row) content += bar(bars, names, row);
  if (bars.limit) {
    const double x = bar_x(bars.axis, *bars.limit);
    content += svg::line(x, kBarsTop, x, bottom_of(bars.bars.size()), "limit");
  }
  return svg::drawing({kBarsWidth, bottom_of(bars.bars.size()) + kFoot}, bars.title, bars.description, content) +
         bars_legend(bars, names);
}

std::string bar_picker(const Bars& bars, const std::string& table_id, const std::vector<std::string>& parts) {
  const std::vector<std::string> names = part_names(bars);
  std::string styles;
  for (const std::string& part : parts) {
    const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), part) - names.begin());
    styles += (styles.empty() ? "" : ",") + part_style(place);
  }
  const std::string choice = element("select",
                                     {{"data-picks", table_id},
                                      {"data-styles", styles},
                                      {"data-most", fmt::format("{:.6g}", bars.axis.max)},
                                      {"data-left", fmt::format("{:.0f}", kBarsLeft)},
                                      {"data-width", fmt::format("{:.0f}", kBarsRight - kBarsLeft)}},
                                     "<option value=\"\">none</option>");
  return fmt::format(
      "<div class=\"needs-script picker\"><label>Another trial on this scale: {}</label>\n<svg viewBox=\"0 0 {:.0f} "
      "{:.0f}\" role=\"img\" class=\"chart\" aria-label=\"The trial that is chosen: none\"></svg></div>\n",
      choice, kBarsWidth, kRow);
}

std::string intervals(const Intervals& intervals) {
  std::string content = ticks(intervals.axis, intervals.intervals.size());
  for (std::size_t row = 0; row < intervals.intervals.size(); ++row) {
    const Interval& one = intervals.intervals[row];
    const double top = kBarsTop + kRow * static_cast<double>(row);
    const double y = top + 26.0;
    content += svg::words(kBarsLeft, top + 13.0, "start", svg::shortened(one.name, kLongestName));
    content += svg::line(bar_x(intervals.axis, one.low), y, bar_x(intervals.axis, one.high), y, "whisker s0");
    content +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" class=\"mark f0 s0\">{}</circle>\n",
                    bar_x(intervals.axis, one.value), y,
                    svg::tip(fmt::format("{} ({} to {})", svg::label(intervals.axis, one.value),
                                         svg::label(intervals.axis, one.low), svg::label(intervals.axis, one.high))));
  }
  return svg::drawing({kBarsWidth, bottom_of(intervals.intervals.size()) + kFoot}, intervals.title,
                      intervals.description, content);
}

}  // namespace krigtune::page
