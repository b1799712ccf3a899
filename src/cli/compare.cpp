// krigtune compare: the same budget for each strategy.
#include "krigtune/tuner/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "command.h"
#include "compare_text.h"
#include "document.h"
#include "interrupt.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/report/comparison.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/tables_csv.h"
#include "loaded_run.h"
#include "runners.h"
#include "show_config.h"
#include "this_machine.h"

namespace krigtune {
namespace {

constexpr std::int64_t kMostSeeds = 1'000'000;

void declare_compare(boost::program_options::options_description& options) {
  options.add_options()("strategies", value_named("A,B,..."), "what to compare (default: all)");
  options.add_options()("seeds", value_named("N"), "runs of each strategy, seeds S to S+N-1 (default: 20)");
  options.add_options()("seed", value_named("S"), "the first seed (default: 1)");
  options.add_options()("trials", value_named("N"), "trials of each run (default: the session's)");
  options.add_options()("jobs", value_named("K"),
                        "runs at a time; more than 1 disturbs real measurements (default: 1, processors where trials "
                        "are looked up or simulated)");
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
  options.seeds = static_cast<int>(arguments.integer("seeds", 1, kMostSeeds).value_or(options.seeds));
  options.seed = static_cast<std::uint64_t>(arguments.integer("seed", 0, INT64_MAX - kMostSeeds).value_or(1));
  options.trials = static_cast<int>(arguments.integer("trials", 1, kMostTrials).value_or(0));
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

int say_nothing_fits(const Context& context) {
  context.log.error("no configuration fits in memory; see krigtune plan");
  return ExitCode::kNoResult;
}

std::string command_again(const Context& context) {
  std::vector<std::string> words = {context.console.typed_as, "compare"};
  words.insert(words.end(), context.arguments.words().begin(), context.arguments.words().end());
  return shell_line(words);
}

// Where each run has a directory it goes on there; otherwise runs take next to no time and begin anew.
int say_interrupted(const Context& context, const Session& session, const Comparison& comparison) {
  const std::size_t cut = comparison.cut_short.size();
  const bool goes_on = traits_of(session.runner).runs_programs;
  context.log.progress(fmt::format("interrupted: {} of {} runs are whole; {}. {}: {}", comparison.runs.size(),
                                   comparison.runs.size() + cut,
                                   "comparison.csv has every closed trial, the other files are of the whole runs",
                                   goes_on ? "To go on" : "To begin again", command_again(context)));
  return ExitCode::kInterrupted;
}

std::filesystem::path directory_of(const Arguments& arguments, const Session& session) {
  return arguments.text("out", (std::filesystem::path("runs") / (session_name(session) + "-compare")).string());
}

std::vector<RunSetting> compare_settings(const CompareOptions& options) {
  std::vector<std::string> names;
  for (const StrategyKind kind : options.strategies) names.emplace_back(to_string(kind));
  return {{"strategies", join(names, ",")},
          {"seeds", options.seeds},
          {"seed", options.seed},
          {"jobs", options.jobs},
          {"out", options.directory.string()}};
}

void write_files(const Session& session, const Comparison& comparison, const CompareOptions& options) {
  make_writable_directory(options.directory);
  write_atomically(options.directory / "comparison.csv", comparison_csv(comparison));
  write_atomically(options.directory / "comparison_summary.csv", comparison_summary_csv(comparison));
  write_atomically(options.directory / "comparison_pairs.csv", comparison_pairs_csv(comparison));
  write_atomically(options.directory / "comparison.svg",
                   comparison_svg(comparison, session_name(session) + emulated_note(session), options.trials));
}

int conclude(const Context& context, const Session& session, const Comparison& comparison,
             const CompareOptions& options) {
  context.log.end_status();
  write_files(session, comparison, options);
  if (context.arguments.flag("json")) {
    print(context, comparison_json(session, comparison, options));
  } else {
    print_comparison(context, session, comparison, options);
  }
  if (!comparison.cut_short.empty()) return say_interrupted(context, session, comparison);
  if (comparison.optimum) return ExitCode::kDone;
  context.log.error("no trial of any run is ok");
  return ExitCode::kNoResult;
}

// What is looked up or simulated disturbs nobody, and the results are the same whatever the number.
int jobs_of(const Arguments& arguments, const Session& session) {
  const auto asked = arguments.integer("jobs", 1, kMostJobs);
  if (asked) return static_cast<int>(*asked);
  return traits_of(session.runner).runs_programs ? 1
                                                 : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

CompareProgress shown_progress(Log& log) {
  return [&log, runs_said = 0](const CompareState& state) mutable {
    const std::string text = fmt::format("run {} of {}, {} trials", std::min(state.runs_done + 1, state.runs),
                                         state.runs, state.trials_done);
    if (log.is_live()) log.status(text);
    if (!log.is_live() && state.runs_done > runs_said) log.detail(text);
    runs_said = state.runs_done;
  };
}

void warn_of_jobs(const Context& context, const Session& session, const CompareOptions& options) {
  if (options.jobs < 2 || !traits_of(session.runner).runs_programs) return;
  context.log.warning(
      fmt::format("{} trials run at a time on one machine and slow each other down; without --jobs "
                  "they run one by one",
                  options.jobs));
}

int compare_strategies(const Context& context) {
  CompareOptions options = compare_options(context.arguments);
  Session to_compare = session_to_compare(context);
  if (options.trials == 0) options.trials = to_compare.budget.trials;
  options.jobs = jobs_of(context.arguments, to_compare);
  to_compare.budget.trials = options.trials;
  options.directory = directory_of(context.arguments, to_compare);
  if (context.arguments.flag("show-config")) return show_config(context, to_compare, compare_settings(options));
  know_this_machine(context, to_compare);
  const Prepared prepared(std::move(to_compare));
  const Session& session = prepared.session;
  if (prepared.candidates.empty()) return say_nothing_fits(context);
  const Interrupt interrupt(
      [&log = context.log] { log.progress("ending after what runs; once more (Ctrl-C) ends that too"); });
  const RunnerFactory make_runner = [&] { return make_session_runner(session, context.console, &interrupt.abort()); };
  make_runner();  // what it lacks must show before anything is made
  warn_of_jobs(context, session, options);
  make_writable_directory(options.directory);
  const Comparison comparison = compare(session, prepared.candidates, options, make_runner, context.console.clock,
                                        shown_progress(context.log), &interrupt.stop());
  return conclude(context, session, comparison, options);
}

}  // namespace

Command compare_command() {
  return {"compare",
          "SESSION",
          "Runs each strategy with the same budget and shows who finds the best how soon",
          "Every run ends at the budget or when the space is exhausted; the baseline, if any, is its trial 0.\n"
          "Strategies without chance run once. DIR gets comparison.csv, comparison_summary.csv,\n"
          "comparison_pairs.csv and comparison.svg. Where trials really run each run has a run directory in\n"
          "DIR, and after Ctrl-C the same command goes on.",
          declare_compare,
          compare_strategies};
}

}  // namespace krigtune
