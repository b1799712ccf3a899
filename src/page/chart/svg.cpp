#include "page/chart/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "page/html/html.h"

namespace krigtune::page::svg {

std::string tip(const std::string& text) { return text.empty() ? "" : fmt::format("<title>{}</title>", escaped(text)); }

std::string drawing(const Size& size, const std::string& title, const std::string& description,
                    const std::string& content, const std::string& style) {
  // An element with the role img cannot contain links.
  const char* role = content.find("<a ") == std::string::npos ? "img" : "group";
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"{}\" class=\"{}\" aria-label=\"{}. {}\">\n{}</svg>\n",
                     size.width, size.height, role, style, escaped(title), escaped(description), content);
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                     style);
}

std::string rectangle(double x, double y, double width, double height, const std::string& style,
                      const std::string& tip_text) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\">{}</rect>\n", x,
                     y, width, height, style, tip(tip_text));
}

std::string words(double x, double y, const char* anchor, const std::string& text, const std::string& style) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor,
                     style.empty() ? "" : fmt::format(" class=\"{}\"", style), escaped(text));
}

std::string legend_entry(const std::string& glyph, const std::string& name) {
  return fmt::format("<li><svg viewBox=\"0 0 26 14\" aria-hidden=\"true\">{}</svg>{}</li>", glyph, escaped(name));
}

std::string legend(const std::string& entries) {
  return entries.empty() ? "" : fmt::format("<ul class=\"legend\">{}</ul>\n", entries);
}

// Large numbers get SI prefixes: 100k, 2M.
std::string label(const report::PlotAxis& axis, double tick) {
  if (tick == 0.0) tick = 0.0;  // avoids "-0"
  if (axis.label) return axis.label(tick);
  struct Prefix {
    double unit;
    const char* text;
  };
  constexpr double kLeast = 1e4;
  for (const auto& [unit, text] : {Prefix{1e12, "T"}, Prefix{1e9, "G"}, Prefix{1e6, "M"}, Prefix{1e3, "k"}}) {
    if (std::abs(tick) >= std::max(unit, kLeast)) return fmt::format("{:.4g}{}", tick / unit, text);
  }
  return fmt::format("{:.6g}", tick);
}

std::string shortened(const std::string& text, std::size_t most) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (begins && ++characters == most && i + 1 < text.size()) return text.substr(0, i) + "…";
  }
  return text;
}

}  // namespace krigtune::page::svg
