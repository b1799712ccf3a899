// krigtune compare: gives each strategy the same budget.
#include "compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <thread>

#include "core/columns.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "executor/executor.h"
#include "page/comparison/comparison_page.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/interrupt.h"
#include "programs/krigtune/regret_chart.h"
#include "programs/krigtune/report.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/show_config.h"
#include "programs/krigtune/this_machine.h"
#include "report/compared_curves.h"
#include "report/comparison.h"
#include "report/labels.h"
#include "report/table.h"
#include "report/tables_csv.h"

namespace krigtune::cli {

/// Prints the results for people: the table, which strategy needs how many times fewer trials, and the chart.
void print_comparison(const Context& context, const session::Session& session, const compare::Comparison& comparison,
                      const compare::CompareOptions& options);

Json comparison_json(const session::Session& session, const compare::Comparison& comparison,
                     const compare::CompareOptions& options);

namespace {

constexpr const char* kFiles[] = {"comparison.csv", "comparison_summary.csv", "comparison_pairs.csv", "comparison.svg"};

// Only the duration of real trials is meaningful.
bool shows_time(const session::Session& session) { return runner::traits_of(session.runner).runs_programs; }

std::vector<report::Column> summary_columns(const session::Session& session, const compare::CompareOptions& options) {
  std::vector<report::Column> columns = {{"strategy", "strategy"},
                                         {"seeds", "runs", true},
                                         {"trials_to_5pct_median", "trials to 5 %", true},
                                         {"trials_to_1pct_median", "trials to 1 %", true},
                                         {"failed_first_20_mean", "failed of first 20", true}};
  for (const int trials : compare::kComparedAt) {
    if (trials > options.trials) continue;
    columns.push_back(
        {fmt::format("best_over_optimum_at_{}", trials), fmt::format("best/optimum at {}", trials), true});
  }
  if (!shows_time(session)) return columns;
  columns.push_back({"seconds_to_5pct_median", "time to 5 %", true});
  columns.push_back({"seconds_median", "time in all", true});
  return columns;
}

// Returns "7 (5 to 9)", the median and the quartiles. A number beyond the budget means that the goal was not reached.
std::string trials_to_text(const compare::SeedStatistics& statistics, const compare::StrategySummary& summary,
                           int budget) {
  const auto trials = [budget](double count) {
    return count > budget ? fmt::format(">{}", budget) : fmt::format("{:.4g}", count);
  };
  if (summary.seeds == 1) return trials(statistics.median);
  return fmt::format("{} ({} to {})", trials(statistics.median), trials(statistics.q25), trials(statistics.q75));
}

// If fewer than half of the runs reached the goal, the time is unknown; it is at least that of the whole runs.
std::string seconds_to_text(double seconds, bool is_reached) {
  return fmt::format("{}{:.4g} s", is_reached ? "" : ">", seconds);
}

report::Table summary_table(const session::Session& session, const compare::Comparison& comparison,
                            const compare::CompareOptions& options) {
  report::Table table{"strategies", summary_columns(session, options), {}, {}};
  for (const compare::StrategySummary& summary : comparison.summary) {
    std::vector<report::Cell> row = {
        report::text_cell(search::to_string(summary.strategy)),
        report::number_cell(summary.seeds, fmt::format("{}", summary.seeds)),
        report::number_cell(summary.trials_to_5pct.median,
                            trials_to_text(summary.trials_to_5pct, summary, options.trials)),
        report::number_cell(summary.trials_to_1pct.median,
                            trials_to_text(summary.trials_to_1pct, summary, options.trials)),
        report::number_cell(summary.failed_first_20_mean, fmt::format("{:.1f}", summary.failed_first_20_mean))};
    for (std::size_t i = 0; i < compare::kComparedAt.size(); ++i) {
      if (compare::kComparedAt[i] > options.trials) continue;
      const std::optional<double>& quotient = summary.best_over_optimum_at[i];
      row.push_back(report::number_cell(quotient, quotient ? fmt::format("{:.3f}", *quotient) : ""));
    }
    if (shows_time(session)) {
      const bool is_reached = summary.trials_to_5pct.median <= options.trials;
      row.push_back(report::number_cell(summary.seconds_to_5pct.median,
                                        seconds_to_text(summary.seconds_to_5pct.median, is_reached)));
      row.push_back(report::number_cell(summary.seconds.median, seconds_to_text(summary.seconds.median, true)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

void print_sentences(std::ostream& out, const compare::Comparison& comparison, int budget, int columns) {
  for (const double within : compare::kComparedWithin) {
    const std::vector<std::string> sentences = report::comparison_sentences(comparison, within, budget);
    if (sentences.empty()) continue;
    out << fmt::format("\nto come within {:g} % of the optimum\n", within * 100.0);
    for (const std::string& sentence : sentences)
      out << wrapped_lines(fmt::format("  {}", sentence), columns, 4) << '\n';
  }
}

Json pairs_json(const compare::Comparison& comparison) {
  Json list = Json::array();
  for (const compare::PairedComparison& pair : comparison.pairs) {
    Json json = {{"strategy", search::to_string(pair.first)},
                 {"other", search::to_string(pair.other)},
                 {"within", pair.within},
                 {"pairs", pair.pairs},
                 {"trials_mean", pair.first_mean},
                 {"other_trials_mean", pair.other_mean},
                 {"never", pair.first_unreached},
                 {"other_never", pair.other_unreached},
                 {"ratio", pair.ratio},
                 {"ratio_lower_95", json_or_null(pair.lower_95)},
                 {"ratio_upper_95", json_or_null(pair.upper_95)},
                 {"wins", pair.wins},
                 {"ties", pair.ties},
                 {"losses", pair.losses}};
    json["signed_rank_p"] = pair.lower_95 ? Json(pair.signed_rank_p) : Json(nullptr);
    json["sign_p"] = pair.lower_95 ? Json(pair.sign_p) : Json(nullptr);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

void print_comparison(const Context& context, const session::Session& session, const compare::Comparison& comparison,
                      const compare::CompareOptions& options) {
  std::ostream& out = context.console.out;
  if (comparison.summary.empty()) {
    out << "no run is complete\n";
    return;
  }
  out << report::render_for_terminal(summary_table(session, comparison, options), context.log.width());
  if (comparison.optimum) {
    out << fmt::format("optimum {}: {}{}\n", report::named_value_text(session, *comparison.optimum),
                       comparison.optimum_is_known ? "of the table" : "the best of all runs here",
                       report::emulated_note(session));
  }
  print_sentences(out, comparison, options.trials, context.log.width());
  out << '\n' << regret_chart(comparison, options.trials, context.console.width);
  out << fmt::format("\nfiles  {}:", options.directory.string());
  for (const char* file : kFiles) out << ' ' << file;
  out << '\n';
}

Json comparison_json(const session::Session& session, const compare::Comparison& comparison,
                     const compare::CompareOptions& options) {
  Json json = new_document("compare");
  json["session"] = session_name(session);
  json["seed"] = options.seed;
  json["seeds"] = options.seeds;
  json["trials"] = options.trials;
  json["metric"] = session.objective.metric;
  json["emulated_network"] = emulated_json(session);
  json["optimum"] = json_or_null(comparison.optimum);
  json["optimum_is_known"] = comparison.optimum_is_known;
  json["directory"] = options.directory.string();
  json["files"] = kFiles;
  json["strategies"] = report::rows_json(summary_table(session, comparison, options));
  json["pairs"] = pairs_json(comparison);
  json["runs_cut_short"] = comparison.cut_short.size();
  return json;
}

namespace {

constexpr std::int64_t kMostSeeds = 1'000'000;

void declare_compare(boost::program_options::options_description& options) {
  options.add_options()("strategies", value_named("A,B,...", {search::strategy_names(), true}),
                        "the strategies to compare (default: all)");
  options.add_options()("seeds", value_named("N"), "runs of each strategy, seeds S to S+N-1 (default: 20)");
  options.add_options()("seed", value_named("S"), "the first seed (default: 1)");
  options.add_options()("trials", value_named("N"), "trials of each run (default: the session's)");
  options.add_options()("jobs", value_named("K"),
                        "run K runs at a time; more than 1 disturbs real measurements (default: 1, or all processors "
                        "if trials are looked up or simulated)");
  options.add_options()("from", value_named("DIR"), "look trials up in DIR/trials.csv instead of executing them");
  options.add_options()("out", value_named("DIR"), "the directory for the results (default: runs/<session>-compare)");
  options.add_options()("html", typed_value_named("FILE"), "write the comparison as one HTML page to FILE");
  declare_show_config(options);
}

// The number of trials is 0 if the session decides.
compare::CompareOptions compare_options(const Arguments& arguments) {
  compare::CompareOptions options;
  if (arguments.origin("strategies") != Arguments::Origin::kNone) {
    options.strategies.clear();
    for (const std::string& word : arguments.list("strategies")) {
      const search::StrategyKind kind = search::strategy_kind_from(word, arguments.named("strategies"));
      if (std::find(options.strategies.begin(), options.strategies.end(), kind) != options.strategies.end()) {
        throw UserError(fmt::format("{}: '{}' is listed twice", arguments.named("strategies"), word), "name each once");
      }
      options.strategies.push_back(kind);
    }
  }
  options.seeds = static_cast<int>(arguments.integer("seeds", 1, kMostSeeds).value_or(options.seeds));
  options.seed = static_cast<std::uint64_t>(arguments.integer("seed", 0, INT64_MAX - kMostSeeds).value_or(1));
  options.trials = static_cast<int>(arguments.integer("trials", 1, kMostTrials).value_or(0));
  return options;
}

// Strategies are compared one trial at a time, by times that no other trial disturbs.
void refuse_other_places(const session::Session& session) {
  const executor::ExecutorTraits traits = executor::traits_of(session.executor);
  if (traits.is_this_machine || !runner::traits_of(session.runner).runs_programs) return;
  throw UserError(
      fmt::format("/executor/kind: compare runs trials on this machine, one at a time, not by '{}'", traits.name),
      "leave \"executor\" out, or compare on measured trials (--from DIR, or the runner \"replay\")");
}

// Regret is of one number; the quality of a front is its hypervolume.
void refuse_several_objectives(const session::Session& session) {
  if (session.others.empty()) return;
  throw UserError(
      fmt::format("{}: /objectives: compare knows one number, the best value after so many trials, and this "
                  "session has {}",
                  session.file.string(), session.others.size() + 1),
      "compare each of them alone, as \"objective\"");
}

session::Session session_to_compare(const Context& context) {
  session::Session session = session_of(context, context.arguments.operand());
  refuse_several_objectives(session);
  const std::optional<std::string> from = context.arguments.text("from");
  if (!from) {
    refuse_other_places(session);
    return session;
  }
  session::Session recorded = session::with_recorded_trials(session, std::filesystem::path(*from) / "trials.csv");
  recorded.file = session.file;
  return recorded;
}

int say_nothing_fits(const Context& context) {
  context.log.error("no configuration fits in memory; see krigtune plan");
  return ExitCode::kNoResult;
}

std::string command_again(const Context& context) {
  std::vector<std::string> words = {context.console.typed_as, "compare"};
  words.insert(words.end(), context.arguments.words().begin(), context.arguments.words().end());
  return shell_line(words);
}

// Runs with a directory of their own can be continued. Other runs take almost no time and begin again.
int say_interrupted(const Context& context, const session::Session& session, const compare::Comparison& comparison) {
  const std::size_t cut = comparison.cut_short.size();
  const bool goes_on = runner::traits_of(session.runner).runs_programs;
  context.log.progress(fmt::format("interrupted: {} of {} runs are complete; {}. {}: {}", comparison.runs.size(),
                                   comparison.runs.size() + cut,
                                   "comparison.csv has every closed trial, and the other files cover the complete runs",
                                   goes_on ? "To continue" : "To start over", command_again(context)));
  return ExitCode::kInterrupted;
}

std::filesystem::path directory_of(const Arguments& arguments, const session::Session& session) {
  return arguments.text("out", (std::filesystem::path("runs") / (session_name(session) + "-compare")).string());
}

std::vector<RunSetting> compare_settings(const compare::CompareOptions& options) {
  std::vector<std::string> names;
  for (const search::StrategyKind kind : options.strategies) names.emplace_back(search::to_string(kind));
  return {{"strategies", join(names, ",")},
          {"seeds", options.seeds},
          {"seed", options.seed},
          {"jobs", options.jobs},
          {"out", options.directory.string()}};
}

void write_files(const session::Session& session, const compare::Comparison& comparison,
                 const compare::CompareOptions& options) {
  make_writable_directory(options.directory);
  write_atomically(options.directory / "comparison.csv", report::comparison_csv(comparison));
  write_atomically(options.directory / "comparison_summary.csv", report::comparison_summary_csv(comparison));
  write_atomically(options.directory / "comparison_pairs.csv", report::comparison_pairs_csv(comparison));
  write_atomically(options.directory / report::kComparedFile,
                   report::compared_record(session, options.trials).dump(2) + "\n");
  write_atomically(
      options.directory / "comparison.svg",
      report::comparison_svg(comparison, session_name(session) + report::emulated_note(session), options.trials));
}

void write_comparison_page(const Context& context, const session::Session& session,
                           const compare::Comparison& comparison, const compare::CompareOptions& options) {
  const std::optional<std::string> file = context.arguments.text("html");
  if (!file) return;
  const report::Table summary = summary_table(session, comparison, options);
  write_atomically(*file, page::comparison_page({comparison, session_name(session), report::emulated_note(session),
                                                 options.trials, summary, minute_of(context.console.clock)}));
}

int conclude(const Context& context, const session::Session& session, const compare::Comparison& comparison,
             const compare::CompareOptions& options) {
  context.log.end_status();
  write_files(session, comparison, options);
  write_comparison_page(context, session, comparison, options);
  if (context.arguments.flag("json")) {
    print(context, comparison_json(session, comparison, options));
  } else {
    print_comparison(context, session, comparison, options);
  }
  if (!comparison.cut_short.empty()) return say_interrupted(context, session, comparison);
  if (comparison.optimum) return ExitCode::kDone;
  context.log.error("no trial of any run succeeded");
  return ExitCode::kNoResult;
}

// Lookups and simulations do not disturb one another, and their results do not depend on the number of jobs.
int jobs_of(const Arguments& arguments, const session::Session& session) {
  const auto asked = arguments.integer("jobs", 1, kMostJobs);
  if (asked) return static_cast<int>(*asked);
  return runner::traits_of(session.runner).runs_programs
             ? 1
             : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

compare::CompareProgress shown_progress(Log& log) {
  return [&log, runs_said = 0](const compare::CompareState& state) mutable {
    const std::string text = fmt::format("run {} of {}, {}", std::min(state.runs_done + 1, state.runs), state.runs,
                                         counted(state.trials_done, "trial"));
    if (log.is_live()) log.status(text);
    if (!log.is_live() && state.runs_done > runs_said) log.detail(text);
    runs_said = state.runs_done;
  };
}

void warn_of_jobs(const Context& context, const session::Session& session, const compare::CompareOptions& options) {
  if (options.jobs < 2 || !runner::traits_of(session.runner).runs_programs) return;
  context.log.warning(
      fmt::format("{} trials run at a time on one machine and slow each other down; without --jobs "
                  "they run one by one",
                  options.jobs));
}

int compare_strategies(const Context& context) {
  compare::CompareOptions options = compare_options(context.arguments);
  session::Session to_compare = session_to_compare(context);
  if (options.trials == 0) options.trials = to_compare.budget.trials;
  options.jobs = jobs_of(context.arguments, to_compare);
  to_compare.budget.trials = options.trials;
  options.directory = directory_of(context.arguments, to_compare);
  if (context.arguments.flag("show-config")) return show_config(context, to_compare, compare_settings(options));
  know_this_machine(context, to_compare);
  const run::Prepared prepared(std::move(to_compare));
  const session::Session& session = prepared.session;
  if (prepared.candidates.empty()) return say_nothing_fits(context);
  const Interrupt interrupt(
      [&log = context.log] { log.progress("ending after the running trials; Ctrl-C again ends them, too"); });
  const trial::RunnerFactory make_runner = [&] {
    return make_session_runner(session, context.console, &interrupt.abort());
  };
  make_runner();  // reports what is missing before anything is written
  warn_of_jobs(context, session, options);
  make_writable_directory(options.directory);
  const compare::Comparison comparison =
      compare::compare(session, prepared.candidates, options, make_runner, context.console.clock,
                       shown_progress(context.log), &interrupt.stop());
  return conclude(context, session, comparison, options);
}

}  // namespace

Command compare_command() {
  return {"compare",
          "SESSION",
          "Compares how soon strategies find the best configuration",
          "All strategies have the same budget. A run ends when its budget is spent or the space is exhausted. Trial 0 "
          "is the baseline, if the session has one. Strategies that draw nothing at random run once, the others once "
          "for each seed. DIR gets comparison.csv, comparison_summary.csv, comparison_pairs.csv and comparison.svg. If "
          "trials are executed rather than looked up, each run has a run directory in DIR, and after Ctrl-C the same "
          "command continues.",
          declare_compare,
          compare_strategies};
}

}  // namespace krigtune::cli
