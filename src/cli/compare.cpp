// krigtune compare: the same budget for each strategy.
#include "krigtune/tuner/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "command.h"
#include "document.h"
#include "interrupt.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/table.h"
#include "krigtune/report/tables_csv.h"
#include "loaded_run.h"
#include "regret_chart.h"
#include "runners.h"
#include "show_config.h"
#include "this_machine.h"

namespace krigtune {
namespace {

constexpr std::int64_t kMost = 1'000'000;
constexpr std::int64_t kMostJobs = 1024;

void declare(boost::program_options::options_description& options) {
  options.add_options()("strategies", value_named("A,B,..."), "what to compare (default: all)");
  options.add_options()("seeds", value_named("N"), "runs of each strategy, seeds S to S+N-1 (default: 20)");
  options.add_options()("seed", value_named("S"), "the first seed (default: 1)");
  options.add_options()("trials", value_named("N"), "trials of each run (default: the session's)");
  options.add_options()("jobs", value_named("K"),
                        "runs at a time; more than 1 disturbs real measurements (default: 1)");
  options.add_options()("from", value_named("DIR"), "look trials up in DIR/trials.csv instead of running them");
  options.add_options()("out", value_named("DIR"), "directory of the CSV files (default: runs/<session>-compare)");
  declare_show_config(options);
}

// trials is 0 where the session decides.
CompareOptions compare_options(const Arguments& arguments) {
  CompareOptions options;
  if (arguments.origin("strategies") != Arguments::Origin::kNone) {
    options.strategies.clear();
    for (const std::string& word : arguments.list("strategies")) {
      const StrategyKind kind = strategy_kind_from(word, arguments.named("strategies"));
      if (std::find(options.strategies.begin(), options.strategies.end(), kind) != options.strategies.end()) {
        throw UserError(fmt::format("{}: '{}' stands there twice", arguments.named("strategies"), word),
                        "name each once");
      }
      options.strategies.push_back(kind);
    }
  }
  options.seeds = static_cast<int>(arguments.integer("seeds", 1, kMost).value_or(options.seeds));
  options.seed = static_cast<std::uint64_t>(arguments.integer("seed", 0, INT64_MAX - kMost).value_or(1));
  options.trials = static_cast<int>(arguments.integer("trials", 1, kMost).value_or(0));
  options.jobs = static_cast<int>(arguments.integer("jobs", 1, kMostJobs).value_or(options.jobs));
  return options;
}

Session session_to_compare(const Context& context) {
  Session session = session_of(context, context.arguments.operand());
  const std::optional<std::string> from = context.arguments.text("from");
  if (!from) return session;
  Session recorded = with_recorded_trials(session, std::filesystem::path(*from) / "trials.csv");
  recorded.file = session.file;
  return recorded;
}

std::vector<Column> summary_columns(const CompareOptions& options) {
  std::vector<Column> columns = {{"strategy", "strategy"},
                                 {"seeds", "seeds", true},
                                 {"trials_to_5pct_median", "trials to 5 %", true},
                                 {"trials_to_1pct_median", "trials to 1 %", true},
                                 {"failed_first_20_mean", "failed of first 20", true}};
  for (const int trials : kComparedAt) {
    if (trials > options.trials) continue;
    columns.push_back(
        {fmt::format("best_over_optimum_at_{}", trials), fmt::format("best/optimum at {}", trials), true});
  }
  return columns;
}

// "7 (5 to 9)": median and quartiles; beyond the budget it was not reached.
std::string statistics_text(const SeedStatistics& statistics, int budget) {
  const auto trials = [budget](double count) {
    return count > budget ? fmt::format(">{}", budget) : fmt::format("{:.4g}", count);
  };
  return fmt::format("{} ({} to {})", trials(statistics.median), trials(statistics.q25), trials(statistics.q75));
}

Table summary_table(const Comparison& comparison, const CompareOptions& options) {
  Table table{"strategies", summary_columns(options), {}, {}};
  for (const StrategySummary& summary : comparison.summary) {
    std::vector<Cell> row = {
        text_cell(to_string(summary.strategy)), number_cell(summary.seeds, fmt::format("{}", summary.seeds)),
        number_cell(summary.trials_to_5pct.median, statistics_text(summary.trials_to_5pct, options.trials)),
        number_cell(summary.trials_to_1pct.median, statistics_text(summary.trials_to_1pct, options.trials)),
        number_cell(summary.failed_first_20_mean, fmt::format("{:.1f}", summary.failed_first_20_mean))};
    for (std::size_t i = 0; i < kComparedAt.size(); ++i) {
      if (kComparedAt[i] > options.trials) continue;
      const std::optional<double>& quotient = summary.best_over_optimum_at[i];
      row.push_back(number_cell(quotient, quotient ? fmt::format("{:.3f}", *quotient) : ""));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

void print_text(const Context& context, const Session& session, const Comparison& comparison,
                const CompareOptions& options, const std::filesystem::path& directory) {
  std::ostream& out = context.console.out;
  out << render(summary_table(comparison, options), TableFormat::kTable);
  if (comparison.optimum) {
    out << fmt::format("optimum {}: {}{}\n", named_value_text(session, *comparison.optimum),
                       comparison.optimum_is_known ? "of the table" : "the best of all runs here",
                       emulated_note(session));
  }
  out << '\n' << regret_chart(comparison, options.trials, context.console.width);
  out << fmt::format("\nfiles  {}: comparison.csv comparison_summary.csv\n", directory.string());
}

void print_json(const Context& context, const Session& session, const Comparison& comparison,
                const CompareOptions& options, const std::filesystem::path& directory) {
  Json json = new_document("compare");
  json["session"] = session_name(session);
  json["seed"] = options.seed;
  json["seeds"] = options.seeds;
  json["trials"] = options.trials;
  json["metric"] = session.objective.metric;
  json["emulated_network"] = emulated_json(session);
  json["optimum"] = json_or_null(comparison.optimum);
  json["optimum_is_known"] = comparison.optimum_is_known;
  json["directory"] = directory.string();
  json["files"] = {"comparison.csv", "comparison_summary.csv"};
  json["strategies"] = rows_json(summary_table(comparison, options));
  print(context, json);
}

int say_nothing_fits(const Context& context) {
  context.log.error("no configuration fits in memory; see krigtune plan");
  return ExitCode::kNoResult;
}

// Runs are not resumed: half of them would say nothing about the strategies.
int say_interrupted(const Context& context) {
  context.log.end_status();
  std::vector<std::string> words = {context.console.typed_as, "compare"};
  words.insert(words.end(), context.arguments.words().begin(), context.arguments.words().end());
  context.log.progress("interrupted, and nothing was written but trial directories; to begin again: " +
                       shell_line(words));
  return ExitCode::kInterrupted;
}

std::filesystem::path directory_of(const Arguments& arguments, const Session& session) {
  return arguments.text("out", (std::filesystem::path("runs") / (session_name(session) + "-compare")).string());
}

std::vector<RunSetting> settings_of(const CompareOptions& options, const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const StrategyKind kind : options.strategies) names.emplace_back(to_string(kind));
  return {{"strategies", join(names, ",")},
          {"seeds", options.seeds},
          {"seed", options.seed},
          {"jobs", options.jobs},
          {"out", directory.string()}};
}

int conclude(const Context& context, const Session& session, const Comparison& comparison,
             const CompareOptions& options, const std::filesystem::path& directory) {
  context.log.end_status();
  write_atomically(directory / "comparison.csv", comparison_csv(comparison));
  write_atomically(directory / "comparison_summary.csv", comparison_summary_csv(comparison));
  if (context.arguments.flag("json")) {
    print_json(context, session, comparison, options, directory);
  } else {
    print_text(context, session, comparison, options, directory);
  }
  if (comparison.optimum) return ExitCode::kDone;
  context.log.error("no trial of any run is ok");
  return ExitCode::kNoResult;
}

int compare_strategies(const Context& context) {
  CompareOptions options = compare_options(context.arguments);
  Session to_compare = session_to_compare(context);
  if (options.trials == 0) options.trials = to_compare.budget.trials;
  to_compare.budget.trials = options.trials;
  const std::filesystem::path directory = directory_of(context.arguments, to_compare);
  if (context.arguments.flag("show-config")) return show_config(context, to_compare, settings_of(options, directory));
  know_this_machine(context, to_compare);
  const Prepared prepared(std::move(to_compare));
  const Session& session = prepared.session;
  if (prepared.candidates.empty()) return say_nothing_fits(context);
  const Interrupt interrupt([&log = context.log] { log.progress("ending the running trials"); });
  std::atomic<int> trials{0};
  const RunnerFactory make_runner = [&] {
    return make_compare_runner(session, context.console, directory / "trials", trials, interrupt.stop());
  };
  make_runner();  // what it lacks must show before anything is made
  make_writable_directory(directory);
  const CompareProgress progress = [&log = context.log](int done, int all) {
    const std::string text = fmt::format("run {} of {}", done, all);
    log.is_live() ? log.status(text) : log.detail(text);
  };
  try {
    const Comparison comparison =
        compare(session, prepared.candidates, options, make_runner, context.console.clock, progress);
    return conclude(context, session, comparison, options, directory);
  } catch (const Interrupted&) {
    return say_interrupted(context);
  }
}

}  // namespace

Command compare_command() {
  return {"compare",
          "SESSION",
          "Runs each strategy with the same budget and shows who finds the best how soon",
          "Every run ends at the budget or when the space is exhausted; the baseline, if any, is its trial 0.\n"
          "Strategies without chance run once. Ctrl-C ends it; runs are not resumed. DIR gets comparison.csv\n"
          "and comparison_summary.csv.",
          declare,
          compare_strategies};
}

}  // namespace krigtune
