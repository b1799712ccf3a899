// A table with a row for each listed trial.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/trial_classes.h"
#include "result/trial_table.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kLongestCommand = 1000;
constexpr std::size_t kLongestSaid = 300;

const std::vector<std::string> kFirstColumns = {"trial", "value", "gain"};

std::string sort_key(const report::Cell& cell) { return cell.value ? space::to_string(*cell.value) : ""; }

std::string command_of(const std::filesystem::path& folder) {
  try {
    return element("pre", user_text(read_text(folder / "cmd.txt"), kLongestCommand));
  } catch (const UserError&) {  // a trial that was never started has no command
    return "";
  }
}

// Its command and files, and the reason if it failed.
std::string details_of(const RunFacts& facts, const journal::Trial& trial, bool with_command) {
  std::string html;
  const std::string said = report::last_line_of(trial);
  if (!said.empty()) html += paragraph(user_text(said, kLongestSaid));
  const std::filesystem::path folder = facts.run().directory / "trials" / run::trial_folder(trial);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return html;
  const std::filesystem::path place = std::filesystem::relative(folder, facts.source().place, error);
  html += element("a", {{"href", (error ? folder : place).generic_string() + "/"}}, "files");
  if (const std::string command = with_command ? command_of(folder) : ""; !command.empty())
    html += fmt::format(" <details><summary>command</summary>{}</details>", command);
  return html;
}

using ColumnOrder = std::vector<std::size_t>;

// The value and the gain come first, because readers look for them and the table is wider than the page.
ColumnOrder column_order(const report::Table& table) {
  ColumnOrder order(table.columns.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return is_one_of(table.columns[i].name, kFirstColumns); });
  return order;
}

std::string head(const report::Table& table, const ColumnOrder& order) {
  std::string html = "<thead><tr>";
  for (const std::size_t i : order) {
    const report::Column& column = table.columns[i];
    html +=
        element("th", {{"scope", "col"}, {"class", column.right_aligned ? "number" : "text"}}, escaped(column.title));
  }
  return html + "<th scope=\"col\">command and files</th></tr></thead>\n";
}

std::string row(const report::Table& table, const ColumnOrder& order, const std::vector<report::Cell>& cells,
                bool is_best, const std::string& details) {
  std::string html = fmt::format("<tr id=\"trial-{}\"{}>", cells.front().text, is_best ? " class=\"best\"" : "");
  for (const std::size_t i : order) {
    Attributes attributes = {{"class", table.columns[i].right_aligned ? "number" : "text"}};
    if (const std::string key = sort_key(cells[i]); !key.empty() && key != cells[i].text)
      attributes.emplace_back("data-sort", key);
    if (i == 0) attributes.emplace_back("scope", "row");
    const std::string text = i == 0 ? escaped(cells[i].text) : user_text(cells[i].text);
    html += element(i == 0 ? "th" : "td", attributes, i == 0 && is_best ? text + " ★" : text);
  }
  return html + fmt::format("<td>{}</td></tr>\n", details);
}

}  // namespace

std::string trials(const RunFacts& facts) {
  report::Table table = result::trial_table(facts.run());
  if (table.rows.empty()) return "";
  report::erase_column(table, "best");  // its row is marked instead
  const std::vector<std::string> same_in_all = report::fold_constants(table, kFirstColumns);
  const ColumnOrder order = column_order(table);
  const std::vector<const journal::Trial*>& closed = facts.closed();
  std::string rows;
  std::size_t count = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (!facts.is_listed(*closed[i])) continue;
    const bool is_best = facts.best() != nullptr && facts.best()->trial == closed[i]->number;
    rows += row(table, order, table.rows[i], is_best, details_of(facts, *closed[i], facts.is_detailed(*closed[i])));
    ++count;
  }
  std::string html = fmt::format(
      "<p class=\"needs-script\"><label>Show those with <input type=\"search\" data-filters=\"trial-table\" "
      "data-counts=\"trial-count\"></label> <span id=\"trial-count\" role=\"status\">{}</span>; click a column's name "
      "to "
      "sort by it.</p>\n",
      counted(static_cast<std::int64_t>(count), "trial"));
  if (count < table.rows.size())
    html += paragraph(fmt::format("{} of {}; trials.csv has all.", count, table.rows.size()));
  if (!same_in_all.empty())
    html += paragraph(fmt::format("The same in all trials: {}.", user_text(join(same_in_all, ", "), kLongestCommand)));
  html += fmt::format(
      "<div class=\"scroll\" role=\"group\" aria-label=\"All trials\" tabindex=\"0\">\n"
      "<table class=\"sortable\" id=\"trial-table\">\n{}<tbody>\n{}</tbody></table></div>\n",
      head(table, order), rows);
  for (const std::string& note : table.notes) html += paragraph(escaped(note));
  return html;
}

}  // namespace krigtune::page
