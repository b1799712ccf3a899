#include "result/trial_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/columns.h"
#include "core/text.h"
#include "report/labels.h"
#include "report/trial_lines.h"

namespace krigtune::result {
namespace {

constexpr const char* kDiffers = "differs";

std::size_t column_of(const report::Table& table, const std::string& name) {
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const report::Column& column) { return column.name == name; });
  return static_cast<std::size_t>(found - table.columns.begin());
}

// Returns the configuration that rows are compared with: the recommended one or else that of the first trial.
const space::Configuration& compared_with(const report::RunView& run) {
  return run.answer.best ? run.answer.best->configuration : run.history.front().proposal.configuration;
}

std::string differs_text(const report::RunView& run, const journal::Trial& trial, int columns) {
  const space::Configuration& own = trial.proposal.configuration;
  if (run.answer.best && own == run.answer.best->configuration)
    return run.answer.best->trial == trial.number ? "" : "nothing";
  return report::fitted(report::differences(run.session, own, compared_with(run)), columns);
}

// The room beside the other columns limits how many differences are shown.
void add_differences(const report::RunView& run, report::Table& table, int columns) {
  constexpr int kGap = 2;
  constexpr int kFewest = 20;
  const std::size_t trial_at = column_of(table, "trial");
  for (const char* name : {"hfu", "tokens_per_s_per_gpu", "strategy", "value_sem", "mfu"}) {
    if (columns - report::table_width(table, true) - kGap >= kFewest) break;
    report::erase_column(table, name);
  }
  const int room = std::max(columns - report::table_width(table, true) - kGap, kFewest);
  table.columns.push_back({kDiffers, "differs in"});
  for (std::vector<report::Cell>& row : table.rows) {
    const auto number = static_cast<std::size_t>(std::get<std::int64_t>(*row[trial_at].value));
    row.push_back(report::text_cell(differs_text(run, run.history.at(number), room)));
  }
}

// Puts the parameters that have a column into one line above the table; those without a column are equal in all rows.
void fold_parameters(const report::RunView& run, report::Table& table) {
  if (run.history.empty()) return;
  space::Configuration shown;
  for (const auto& [name, value] : compared_with(run)) {
    if (column_of(table, name) < table.columns.size()) shown.set(name, value);
  }
  for (const std::string& name : run.session.space.columns()) report::erase_column(table, name);
  const int number = run.answer.best ? run.answer.best->trial : run.history.front().number;
  table.header.push_back(fmt::format("trial {}{}: {}", number, run.answer.best ? ", the best" : "",
                                     join(report::differences(run.session, shown, {}), " ")));
}

}  // namespace

std::string trial_text(const report::RunView& run, report::Table table, int columns) {
  for (const char* name : {"status", "reason", "raw_best"}) report::erase_column(table, name);
  report::Table folded = table;
  const std::vector<std::string> shared =
      report::fold_constants(folded, {"trial", "value", "gain", "mfu", "tokens_per_s_per_gpu", "best"});
  for (const char* name : {"tokens_per_s_per_gpu", "mfu", "value_sem", "hfu", "gain"}) {
    const std::size_t at = column_of(folded, name);
    if (at == folded.columns.size()) continue;
    const bool is_empty = std::all_of(folded.rows.begin(), folded.rows.end(),
                                      [at](const std::vector<report::Cell>& row) { return row[at].text.empty(); });
    if (is_empty) report::erase_column(folded, name);
  }
  if (!shared.empty()) folded.header.push_back(fmt::format("all with {}", join(shared, " ")));
  if (report::table_width(folded, true) <= columns) return report::render_for_terminal(folded, columns);
  fold_parameters(run, folded);
  add_differences(run, folded, columns);
  return report::render_for_terminal(folded, columns);
}

}  // namespace krigtune::result
