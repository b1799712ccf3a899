#pragma once
#include <string>
#include <vector>

namespace krigtune::page {

/// A part of a page with its own heading.
struct Section {
  std::string id;     ///< anchor for links: letters and digits
  std::string title;  ///< text
  std::string html;
};

/// A picture with its explanation. Everything except the title is markup.
struct Figure {
  std::string title;  ///< text
  std::string picture;
  std::string says;              ///< explanation below it; "": none
  std::string table;             ///< collapsed table with the numbers behind it; "": none
  std::string every_trial = {};  ///< collapsed table with a row for each trial; "": none
};
std::string figure(const Figure& figure);
/// Puts figures side by side if there is room; "" if none has markup.
std::string figures(const std::vector<std::string>& figures);

/// One self-contained HTML file with its style and script, without network access or fonts. It is readable without the
/// script, in print, on a phone, in dark mode and with a screen reader. Sections without markup are left out.
struct Document {
  std::string title;   ///< text
  std::string header;  ///< markup below the title
  std::vector<Section> sections;
  std::string footer;  ///< markup
};
std::string document(const Document& document);

}  // namespace krigtune::page
