#pragma once
#include <string>

#include "report/plot.h"

// The elements of a drawing, in SVG units. These functions escape their texts.
namespace krigtune::page::svg {

struct Size {
  double width = 0.0;
  double height = 0.0;
};
/// Returns an <svg> of that size around `content`, with title and description for readers who cannot see it. `style`:
/// its class.
std::string drawing(const Size& size, const std::string& title, const std::string& description,
                    const std::string& content, const std::string& style = "chart");
std::string line(double x1, double y1, double x2, double y2, const std::string& style);
std::string rectangle(double x, double y, double width, double height, const std::string& style,
                      const std::string& tip = "");
/// `anchor`: start, middle, end.
std::string words(double x, double y, const char* anchor, const std::string& text, const std::string& style = "");
/// Returns a line of a legend. `glyph`: the drawing before the name, 26 by 14.
std::string legend_entry(const std::string& glyph, const std::string& name);
/// Puts the entries side by side; "" if there are none.
std::string legend(const std::string& entries);
/// Returns the <title> of the surrounding element, which is shown on hover.
std::string tip(const std::string& text);

/// Returns the text of a tick's label.
std::string label(const report::PlotAxis& axis, double tick);
/// Returns at most `most` characters; the last one is "…" if the text is cut.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace krigtune::page::svg
