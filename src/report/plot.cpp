#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
namespace krigtune::report {
namespace {

constexpr double kEdge = 1e-9;  // relative to the axis: a tick at its end must not be lost by rounding

// Returns the smallest of 1, 2 and 5 times powers of ten that gives at most `most` ticks.
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
      // Division by an exact power gives 1e-3 and not 0.001000...2.
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
    std::vector<double> ticks = logarithmic_ticks(axis, digits, 1);
    if (static_cast<int>(ticks.size()) <= most) return ticks;
  }
  int every = 2;
  std::vector<double> ticks = logarithmic_ticks(axis, {1.0}, every);
  while (static_cast<int>(ticks.size()) > most) ticks = logarithmic_ticks(axis, {1.0}, ++every);
  return ticks;
}

double axis_share(const PlotAxis& axis, double value) {
  const double at = axis.logarithmic ? std::log(std::max(value, axis.min) / axis.min) / std::log(axis.max / axis.min)
                                     : (value - axis.min) / (axis.max - axis.min);
  return std::clamp(at, 0.0, 1.0);
}

namespace {

// The size of the drawing in SVG units, and the frame of the curves.
constexpr double kWidth = 720.0;
constexpr double kHeight = 420.0;
constexpr double kLeft = 84.0;
constexpr double kRight = 590.0;
constexpr double kTop = 44.0;
constexpr double kBottom = 364.0;
constexpr int kMostTicks = 12;

// Colours that can be distinguished on white, on black, and by readers who confuse red and green (Okabe & Ito 2008, and
// lighter variants of the same hues). The dashes distinguish the curves without any colour.
struct Style {
  const char* light;
  const char* dark;
  const char* dashes;
};
constexpr std::array<Style, 6> kStyles{{{"#0072b2", "#56b4e9", "none"},
                                        {"#d55e00", "#ff9e4a", "9 4"},
                                        {"#00805c", "#2fd6a3", "2 3"},
                                        {"#a03070", "#ee88cc", "9 3 2 3"},
                                        {"#7a6a00", "#f0e442", "5 2"},
                                        {"#555555", "#b8b8b8", "1 4"}}};

std::string escaped_xml(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string style_sheet() {
  std::string text =
      "<style>\n"
      ".kt-plot text { font: 13px system-ui, sans-serif; fill: #1f2328 }\n"
      ".kt-plot .kt-title { font-size: 15px; font-weight: 600 }\n"
      ".kt-plot .kt-note { font-size: 11px }\n"
      ".kt-paper { fill: #ffffff }\n"
      ".kt-frame { fill: none; stroke: #1f2328 }\n"
      ".kt-grid { stroke: #e3e8ed }\n"
      ".kt-mark { stroke: #8c959f }\n"
      ".kt-line { fill: none; stroke-width: 2; stroke-linejoin: round }\n"
      ".kt-first { stroke-width: 3 }\n"
      ".kt-band { stroke: none; fill-opacity: 0.16 }\n";
  for (std::size_t i = 0; i < kStyles.size(); ++i) {
    text += fmt::format(".kt-line.kt-{0} {{ stroke: {1}; stroke-dasharray: {2} }} .kt-band.kt-{0} {{ fill: {1} }}\n", i,
                        kStyles[i].light, kStyles[i].dashes);
  }
  text +=
      "@media (prefers-color-scheme: dark) {\n"
      ".kt-plot text { fill: #e6edf3 } .kt-paper { fill: #0d1117 } .kt-frame { stroke: #e6edf3 }\n"
      ".kt-grid { stroke: #232a32 } .kt-mark { stroke: #6e7781 }\n";
  for (std::size_t i = 0; i < kStyles.size(); ++i) {
    text += fmt::format(".kt-line.kt-{0} {{ stroke: {1} }} .kt-band.kt-{0} {{ fill: {1} }}\n", i, kStyles[i].dark);
  }
  return text + "}\n</style>\n";
}

double page_x(const Plot& plot, double x) { return kLeft + axis_share(plot.x, x) * (kRight - kLeft); }
double page_y(const Plot& plot, double y) { return kBottom - axis_share(plot.y, y) * (kBottom - kTop); }

std::string label(const PlotAxis& axis, double tick) {
  return escaped_xml(axis.label ? axis.label(tick) : fmt::format("{:.6g}", tick));
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                     style);
}

// `text` must be escaped. `anchor`: start, middle, end.
std::string words(double x, double y, const char* anchor, const std::string& text, const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more, text);
}

std::string axes(const Plot& plot) {
  std::string text;
  for (const double tick : axis_ticks(plot.x, kMostTicks)) {
    const double x = page_x(plot, tick);
    text += line(x, kTop, x, kBottom, "kt-grid") + words(x, kBottom + 18.0, "middle", label(plot.x, tick));
  }
  for (const double tick : axis_ticks(plot.y, kMostTicks)) {
    const double y = page_y(plot, tick);
    text += line(kLeft, y, kRight, y, "kt-grid") + words(kLeft - 8.0, y + 4.0, "end", label(plot.y, tick));
  }
  for (const double level : plot.marked_y) {
    text += line(kLeft, page_y(plot, level), kRight, page_y(plot, level), "kt-mark");
  }
  text += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"kt-frame\"/>\n",
                      kLeft, kTop, kRight - kLeft, kBottom - kTop);
  const double middle_y = 0.5 * (kTop + kBottom);
  text += words(0.5 * (kLeft + kRight), kHeight - 14.0, "middle", escaped_xml(plot.x.title));
  text += words(18.0, middle_y, "middle", escaped_xml(plot.y.title),
                fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", middle_y));
  return text;
}

struct PagePoint {
  double x, y;
};

std::vector<PagePoint> path_of(const Plot& plot, const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<PagePoint> path;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double at = page_x(plot, x[i]);
    if (plot.steps && !path.empty()) path.push_back({at, path.back().y});
    path.push_back({at, page_y(plot, y[i])});
  }
  return path;
}

std::string points_text(const std::vector<PagePoint>& path) {
  std::string text;
  for (const PagePoint& point : path) text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", point.x, point.y);
  return text;
}

std::string band(const Plot& plot, const PlotCurve& curve, std::size_t style) {
  if (curve.low.empty()) return "";
  std::vector<PagePoint> around = path_of(plot, curve.x, curve.high);
  const std::vector<PagePoint> back = path_of(plot, curve.x, curve.low);
  around.insert(around.end(), back.rbegin(), back.rend());
  return fmt::format("<polygon points=\"{}\" class=\"kt-band kt-{}\"/>\n", points_text(around), style);
}

std::string stroke_classes(std::size_t curve) {
  return fmt::format("kt-line kt-{}{}", curve % kStyles.size(), curve == 0 ? " kt-first" : "");
}

std::string curves(const Plot& plot) {
  std::string text;
  for (std::size_t i = plot.curves.size(); i-- > 0;) text += band(plot, plot.curves[i], i % kStyles.size());
  for (std::size_t i = plot.curves.size(); i-- > 0;) {
    const PlotCurve& curve = plot.curves[i];
    text += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", points_text(path_of(plot, curve.x, curve.y)),
                        stroke_classes(i));
  }
  return text;
}

std::string legend(const Plot& plot) {
  std::string text;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const double y = kTop + 12.0 + 22.0 * static_cast<double>(i);
    text += line(kRight + 14.0, y, kRight + 50.0, y, stroke_classes(i));
    text += words(kRight + 57.0, y + 4.0, "start", escaped_xml(plot.curves[i].name));
  }
  double y = kTop + 32.0 + 22.0 * static_cast<double>(plot.curves.size());
  for (const std::string& note : plot.notes) {
    text += words(kRight + 14.0, y, "start", escaped_xml(note), " class=\"kt-note\"");
    y += 16.0;
  }
  return text;
}

}  // namespace

std::string plot_svg(const Plot& plot) {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\" class=\"kt-plot\">\n<title>{2}</title>\n<desc>{3}</desc>\n",
      kWidth, kHeight, escaped_xml(plot.title), escaped_xml(plot.description));
  text += style_sheet();
  text += fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" class=\"kt-paper\"/>\n", kWidth, kHeight);
  text += words(18.0, 26.0, "start", escaped_xml(plot.title), " class=\"kt-title\"");
  return text + axes(plot) + curves(plot) + legend(plot) + "</svg>\n";
}

}  // namespace krigtune::report
