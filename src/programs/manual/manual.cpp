// Writes manual pages with the macros of man(7), which every man-db, groff and mandoc can read.
#include "programs/manual/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace krigtune::manual {
namespace {

// Escapes what roff would interpret: backslashes, hyphens (which it might break or replace by typographical ones), and
// points and apostrophes at the beginning of a line.
std::string escaped(const std::string& line) {
  std::string text;
  if (!line.empty() && (line.front() == '.' || line.front() == '\'')) text += "\\&";
  for (const char c : line) {
    if (c == '\\') {
      text += "\\e";
    } else if (c == '-') {
      text += "\\-";
    } else {
      text += c;
    }
  }
  return text;
}

// Formats names in bold and placeholders in italics.
std::string styled(const std::string& term) {
  std::istringstream words(term);
  std::string text;
  for (std::string word; words >> word;) {
    const bool is_value = std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c) != 0; });
    text += fmt::format("{}\\f{}{}\\fR", text.empty() ? "" : " ", is_value ? 'I' : 'B', escaped(word));
  }
  return text;
}

std::string paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::string roff;
  bool as_it_is = false;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = !line.empty() && line.front() == ' ';
    if (indented != as_it_is) roff += indented ? ".RS\n.nf\n" : ".fi\n.RE\n";
    as_it_is = indented;
    roff += line.empty() ? ".PP\n" : escaped(line) + "\n";
  }
  return as_it_is ? roff + ".fi\n.RE\n" : roff;
}

std::string section(const std::string& title, const std::string& body) {
  return fmt::format(".SH {}\n{}", title, body);
}

std::string section_of(const Section& described) {
  std::string body = paragraphs(described.text);
  for (const Item& item : described.items) {
    body += fmt::format(".TP\n{}\n{}", styled(item.term), paragraphs(item.meaning));
  }
  return section(described.title, body);
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string option_term(char letter, const std::string& name, const std::string& value) {
  return fmt::format("{}--{}{}{}", letter == '\0' ? "" : fmt::format("-{}, ", letter), name, value.empty() ? "" : " ",
                     value);
}

std::string to_roff(const Page& page, const std::string& source) {
  std::string roff =
      fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n.nh\n.ad l\n", escaped(upper(page.name)), source);
  roff += section("NAME", fmt::format("{} \\- {}\n", escaped(page.name), escaped(page.summary)));
  roff += section("SYNOPSIS", styled(page.synopsis) + "\n");
  for (const Section& described : page.sections) roff += section_of(described);
  std::string see_also;
  for (const std::string& name : page.see_also) {
    see_also += fmt::format("{}\\fB{}\\fR(1)", see_also.empty() ? "" : ",\n", escaped(name));
  }
  return see_also.empty() ? roff : roff + section("SEE ALSO", see_also + "\n");
}

}  // namespace krigtune::manual
