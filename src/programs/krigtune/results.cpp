// krigtune results: shows the trials of a run directory, at any time and from any shell.
#include <fmt/format.h>

#include <ostream>

#include "core/csv.h"
#include "core/error.h"
#include "core/text.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/prefer.h"
#include "programs/krigtune/session_state.h"
#include "report/front_text.h"
#include "report/job_text.h"
#include "report/labels.h"
#include "result/trial_table.h"
#include "result/trial_text.h"
#include "search/trials/run_effects.h"

namespace krigtune::cli {
namespace {

constexpr std::int64_t kMostShown = 1'000'000;

void declare_results(boost::program_options::options_description& options) {
  options.add_options()(
      "sort", value_named("COLUMN"),
      "sort by a column, named as in the table or as in its CSV form (default: value, the best first)");
  options.add_options()("top", value_named("N"), "only the first N rows");
  options.add_options()("format", value_named("FORMAT", {report::table_format_names()}),
                        fmt::format("one of {} (default: table)", join(report::table_format_names(), ", ")).c_str());
  options.add_options()(
      "spreadsheet-safe",
      "with --format csv: an apostrophe before each text that a spreadsheet would take for a formula");
  declare_prefer(options);
  options.add_options()("wide", "every column of the table, however wide it is");
}

report::TableFormat format_of(const Arguments& arguments) {
  const report::TableFormat format =
      report::table_format_from(arguments.text("format", "table"), arguments.named("format"));
  if (!arguments.flag("json")) return format;
  if (arguments.flag("format") && format != report::TableFormat::kJson) {
    throw UserError("--json and --format cannot be combined", "leave one out");
  }
  return report::TableFormat::kJson;
}

void print_front(std::ostream& out, const report::RunView& run) {
  if (run.session.others.empty()) return;
  out << '\n' << report::front_sentence(run.session, run.answer.front) << '\n';
  for (const std::string& line : report::front_lines(run.session, run.answer.front)) out << "  " << line << '\n';
  if (const std::string pick = report::pick_text(run.session, run.answer); !pick.empty())
    out << "pick: " << pick << '\n';
}

void print_results_json(const Context& context, const report::RunView& run, const report::Table& table) {
  Json json = new_document("results");
  json["directory"] = run.directory.string();
  add_search(json, run.session, run.options);
  json["best_trial"] = run.answer.best ? Json(run.answer.best->trial) : Json(nullptr);
  if (!run.session.others.empty()) {
    json["front"] = report::front_json(run.session, run.answer.front);
    json.update(report::pick_json(run.session, run.answer));
  }
  json["job"] = run.answer.best ? report::job_json(run.answer.best->job) : Json(nullptr);
  if (!table.notes.empty()) json["notes"] = table.notes;
  json[table.name] = report::rows_json(table);
  print(context, json);
}

// Returns the column that --sort names: by its name or its title in the table, or by the objective's metric.
std::string sort_column(const Context& context, const session::Objective& objective, const report::Table& table,
                        const std::string& fallback) {
  const std::optional<std::string> word = context.arguments.text("sort");
  if (!word || *word == objective.metric) return word ? "value" : fallback;
  return table.columns[report::column_named(table, *word, context.arguments.named("sort"))].name;
}

int results(const Context& context) {
  const report::TableFormat format = format_of(context.arguments);
  const bool is_safe = context.arguments.flag("spreadsheet-safe");
  if (is_safe && format != report::TableFormat::kCsv) {
    throw UserError("--spreadsheet-safe applies only to CSV", "add --format csv, or leave it out");
  }
  const std::optional<std::int64_t> top = context.arguments.integer("top", 1, kMostShown);
  LoadedRun loaded(context, context.arguments.operand());
  apply_prefer(context, loaded.prepared.session);
  const report::RunView run = loaded.view(context.console);
  require_preferred(context, run.session, run.answer.front);
  report::Table table = result::trial_table(run);
  // Values of several runs come from machines of different speeds; gains are on one scale.
  const bool has_runs = search::RunEffects(run.session.objective, run.history).columns() > 0;
  const std::string by = sort_column(context, run.session.objective, table, has_runs ? "gain" : "value");
  const bool best_is_largest = by == "gain" || (by == "value" && run.session.objective.maximize);
  report::sort_rows(table, by, best_is_largest, context.arguments.named("sort"));
  if (top && table.rows.size() > static_cast<std::size_t>(*top)) table.rows.resize(static_cast<std::size_t>(*top));
  if (table.rows.empty()) context.log.warning("no trial is closed yet");
  if (format == report::TableFormat::kJson) {
    print_results_json(context, run, table);
  } else {
    if (format == report::TableFormat::kCsv && !run.answer.emulated_network.empty())
      context.log.warning("values are of an " + run.answer.emulated_network);
    const bool fits = format == report::TableFormat::kTable && !context.arguments.flag("wide");
    const std::string text = fits ? result::trial_text(run, table, context.log.width()) : report::render(table, format);
    context.console.out << (is_safe ? spreadsheet_safe(text) : text);
    if (format == report::TableFormat::kTable) print_front(context.console.out, run);
  }
  return ExitCode::kDone;
}

}  // namespace

Command results_command() {
  return {"results",
          "DIR",
          "Lists the trials of a run directory, the best first",
          "Gains are relative to trial 0. * marks the recommended trial, the one with the largest "
          "posterior mean; ^ marks the best single measurement if that is another trial. The table is "
          "fitted to the terminal: columns that are the same in every row become one line above it, and "
          "if the parameters need more room than there is, one column lists the differences from the "
          "best. Works while tune is running.",
          declare_results,
          results};
}

}  // namespace krigtune::cli
