#pragma once
#include <string>
#include <vector>

namespace krigtune::manual {

/// A term and its explanation: "--out DIR", "the run directory".
struct Item {
  std::string term;
  std::string meaning;
};

/// A section of a page: paragraphs separated by empty lines, followed by items. Lines that begin with a space are shown
/// unchanged.
struct Section {
  std::string title;  ///< "EXIT STATUS"
  std::string text = {};
  std::vector<Item> items = {};
};

/// A manual page of section 1.
struct Page {
  std::string name;      ///< "krigtune-tune"; the file is krigtune-tune.1
  std::string summary;   ///< one line
  std::string synopsis;  ///< "krigtune tune SESSION [options]"
  std::vector<Section> sections;
  std::vector<std::string> see_also;  ///< names of pages of section 1
};

/// Returns "-q, --quiet" or "--out DIR", for an option with a letter ('\0': none) and a value ("": none).
std::string option_term(char letter, const std::string& name, const std::string& value);

/// Returns the page in the language of man(7), with `source` in its footer: "krigtune 0.1.0".
std::string to_roff(const Page& page, const std::string& source);

}  // namespace krigtune::manual
