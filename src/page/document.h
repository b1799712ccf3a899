#pragma once
#include <string>
#include <vector>

namespace krigtune::page {

/// A part of a page with a heading of its own.
struct Section {
  std::string id;     ///< of its link: letters and digits
  std::string title;  ///< text
  std::string html;
};

/// A picture with what it says. All but the title are markup.
struct Figure {
  std::string title;  ///< text
  std::string picture;
  std::string says;              ///< below it; "": nothing
  std::string table;             ///< the numbers behind it, folded; "": none
  std::string every_trial = {};  ///< a table with a row for each trial, folded; "": none
};
std::string figure(const Figure& figure);
/// Figures side by side where there is room; "" where none has markup.
std::string figures(const std::vector<std::string>& figures);

/// One self-contained HTML file: no network, no font, its style and script in it. It can be read without the script,
/// printed, on a phone, in dark mode, by a screen reader. Sections without markup are left out.
struct Document {
  std::string title;   ///< text
  std::string header;  ///< markup below the title
  std::vector<Section> sections;
  std::string footer;  ///< markup
};
std::string document(const Document& document);

}  // namespace krigtune::page
