// A table of shaded cells. Each shows its number, so that nobody has to distinguish shades.
#include <fmt/format.h>

#include <algorithm>

#include "page/chart/chart.h"
#include "page/chart/svg.h"

namespace krigtune::page {
namespace {

constexpr double kMapWidth = 440.0;
constexpr double kMapLeft = 84.0;
constexpr double kMapRight = 432.0;
constexpr double kMapTop = 26.0;
constexpr double kMapRow = 34.0;
constexpr double kMapFoot = 42.0;
constexpr double kLeastShade = 0.04;  // the worst cell must be visible too
constexpr double kMostShade = 0.5;    // text on it keeps its contrast
constexpr std::size_t kLongestRow = 12;
constexpr double kMapCharacter = 6.8;  // width in the page's font

class MapDrawing {
 public:
  explicit MapDrawing(const HeatMap& map)
      : map_(map), column_((kMapRight - kMapLeft) / static_cast<double>(map.columns.size())) {}

  std::string content() const {
    std::string text = svg::words(4.0, 14.0, "start", map_.y_title, "axis");
    text += svg::words(0.5 * (kMapLeft + kMapRight), bottom() + 34.0, "middle", map_.x_title, "axis");
    const auto most = static_cast<std::size_t>(std::max(3.0, column_ / kMapCharacter));
    for (std::size_t i = 0; i < map_.columns.size(); ++i) {
      text += svg::words(left_of(i) + 0.5 * column_, bottom() + 16.0, "middle", svg::shortened(map_.columns[i], most));
    }
    for (std::size_t row = 0; row < map_.rows.size(); ++row) {
      const double middle = kMapTop + kMapRow * (static_cast<double>(row) + 0.5);
      text += svg::words(kMapLeft - 6.0, middle + 4.0, "end", svg::shortened(map_.rows[row], kLongestRow));
      for (std::size_t i = 0; i < map_.columns.size(); ++i) text += cell(map_.cells[row][i], left_of(i), row);
    }
    return text;
  }
  double height() const { return bottom() + kMapFoot; }

 private:
  double left_of(std::size_t i) const { return kMapLeft + column_ * static_cast<double>(i); }
  double bottom() const { return kMapTop + kMapRow * static_cast<double>(map_.rows.size()); }

  std::string cell(const HeatCell& cell, double left, std::size_t row) const {
    const double top = kMapTop + kMapRow * static_cast<double>(row);
    const std::string box = fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", left + 1.0,
                                        top + 1.0, column_ - 2.0, kMapRow - 2.0);
    std::string text;
    if (cell.share) {
      const double shade = kLeastShade + (kMostShade - kLeastShade) * std::clamp(*cell.share, 0.0, 1.0);
      text += fmt::format("<rect {} class=\"f0\" fill-opacity=\"{:.2f}\"/>", box, shade);
    }
    text += fmt::format("<rect {} class=\"cell{}\"/>", box, cell.marked ? " best" : "");
    text +=
        svg::words(left + 0.5 * column_, top + 0.5 * kMapRow + 4.0, "middle", cell.text, cell.marked ? "strong" : "");
    return fmt::format("<g>{}{}</g>\n", svg::tip(cell.tip), text);
  }

  const HeatMap& map_;
  double column_;
};

}  // namespace

std::string heat_map(const HeatMap& map) {
  if (map.columns.empty() || map.rows.empty()) return "";
  const MapDrawing drawing(map);
  return svg::drawing({kMapWidth, drawing.height()}, map.title, map.description, drawing.content());
}

}  // namespace krigtune::page
