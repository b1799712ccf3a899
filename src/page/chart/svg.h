#pragma once
#include <string>

#include "report/plot.h"

// The pieces of a drawing, in SVG units. Text is escaped here.
namespace krigtune::page::svg {

struct Size {
  double width = 0.0;
  double height = 0.0;
};
/// <svg> of that size around `content`, with its title and description for who cannot see it. `style`: its class.
std::string drawing(const Size& size, const std::string& title, const std::string& description,
                    const std::string& content, const std::string& style = "chart");
std::string line(double x1, double y1, double x2, double y2, const std::string& style);
std::string rectangle(double x, double y, double width, double height, const std::string& style,
                      const std::string& tip = "");
/// `anchor`: start, middle, end.
std::string words(double x, double y, const char* anchor, const std::string& text, const std::string& style = "");
/// A line of a legend. `glyph`: what is drawn before the name, within 26 by 14.
std::string legend_entry(const std::string& glyph, const std::string& name);
/// The entries side by side; "" where there is none.
std::string legend(const std::string& entries);
/// <title> of what stands around it: shown when that is pointed at.
std::string tip(const std::string& text);

/// A tick's label, as text.
std::string label(const report::PlotAxis& axis, double tick);
/// At most `most` characters, the last one "…" where it is cut.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace krigtune::page::svg
