#include "page/document.h"

#include <fmt/format.h>

#include "page/assets.h"
#include "page/html/html.h"

namespace krigtune::page {
namespace {

std::string contents(const std::vector<Section>& sections) {
  std::string links;
  for (const Section& section : sections) {
    if (!section.html.empty())
      links += fmt::format("<a href=\"#{}\">{}</a>\n", escaped(section.id), escaped(section.title));
  }
  return fmt::format("<nav aria-label=\"Contents\">\n{}</nav>\n", links);
}

}  // namespace

std::string figure(const Figure& figure) {
  std::string html = fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}", escaped(figure.title), figure.picture);
  if (!figure.says.empty()) html += fmt::format("<div class=\"says\">{}</div>\n", figure.says);
  if (!figure.table.empty())
    html += fmt::format("<details><summary>As a table</summary>\n{}</details>\n", figure.table);
  if (!figure.every_trial.empty())
    html += fmt::format("<details><summary>Every trial</summary>\n{}</details>\n", figure.every_trial);
  return html + "</figure>\n";
}

std::string figures(const std::vector<std::string>& figures) {
  std::string html;
  for (const std::string& one : figures) html += one;
  return html.empty() ? "" : fmt::format("<div class=\"figures\">\n{}</div>\n", html);
}

std::string document(const Document& document) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n"
      "<header>\n<h1>{0}</h1>\n{2}</header>\n",
      escaped(document.title), kStyle, document.header);
  html += contents(document.sections) + "<main>\n";
  for (const Section& section : document.sections) {
    if (section.html.empty()) continue;
    html += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n",
        escaped(section.id), escaped(section.title), section.html);
  }
  return html + fmt::format("</main>\n<footer>\n{}</footer>\n<script>\n{}</script>\n</body>\n</html>\n",
                            document.footer, kScript);
}

}  // namespace krigtune::page
