// krigtune watch: shows a running session from another shell. It only reads.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "answer/answer.h"
#include "core/columns.h"
#include "core/json.h"
#include "core/text.h"
#include "journal/lock.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/command_line.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/interrupt.h"
#include "programs/krigtune/log.h"
#include "programs/krigtune/session_state.h"
#include "programs/krigtune/tune_summary.h"
#include "report/front_text.h"
#include "report/job_text.h"
#include "report/labels.h"
#include "report/outlook_text.h"
#include "report/trial_classes.h"
#include "report/trial_lines.h"
#include "result/best_reader.h"
#include "run/run_directory.h"

namespace krigtune::cli {

/// The state of a run directory, read without writing to it.
struct Watched {
  std::string directory;  ///< as it was typed
  const run::RunRecord& record;
  const search::History& history;
  bool tune_runs = false;  ///< a tuner has the claim of the directory
  std::int64_t now_us = 0;
  answer::Answer answer = {};  ///< with the recommendation in tune's files
};

/// Returns the trials that will still be closed: those of a tuner that is running, and those that were asked by hand.
std::vector<journal::Trial> pending_trials(const Watched& watched);

/// Returns the lines above the trials: the session, the best, the counts, the running trials, the remaining time.
std::vector<std::string> panel_header(const Watched& watched);
/// Returns the header in lines of at most so many columns.
std::vector<std::string> header_within(const Watched& watched, int columns);
/// Returns the header and as many of the last closed trials as fit. No line is wider than the terminal.
std::vector<std::string> panel(const Watched& watched, TerminalSize size);

/// Adds the state to a document for programs.
void add_state(Json& document, const Watched& watched);

namespace {

constexpr std::size_t kMostRunning =
    4;  // lines for running trials; those of a whole cluster would hide everything else
constexpr int kFewestRows = 3;

bool waits_for_hand(const journal::Trial& trial) { return trial.proposal.asker == journal::Asker::kHand; }

std::optional<double> running_s(const Watched& watched, const journal::Trial& trial) {
  const std::optional<std::int64_t> began_us = unix_us_of(trial.started_at);
  if (!began_us) return std::nullopt;
  return static_cast<double>(std::max<std::int64_t>(watched.now_us - *began_us, 0)) / 1e6;
}

std::string title(const Watched& watched) {
  const session::Session& session = watched.record.session;
  std::string text = fmt::format("{}: {} of {}, {}, seed {}", watched.directory, watched.answer.trials.of_budget,
                                 counted(session.budget.trials, "trial"),
                                 search::to_string(watched.record.options.strategy), watched.record.options.seed);
  if (!watched.answer.emulated_network.empty()) text += ", " + watched.answer.emulated_network;
  return text;
}

void add_best(const Watched& watched, std::vector<std::string>& lines) {
  const session::Session& session = watched.record.session;
  if (!watched.answer.best) {
    lines.emplace_back("best     no trial has succeeded yet");
    return;
  }
  const search::Recommendation& best = *watched.answer.best;
  lines.push_back(fmt::format("best     trial {}: {}, {} trial {} ({})", best.trial,
                              report::named_value_text(session, best.value), report::gain_text(best.gain),
                              best.reference_trial, report::value_text(session, best.reference_value)));
  lines.push_back(fmt::format("         {}", report::short_text(session, best.configuration)));
  if (const std::string raw = report::raw_best_sentence(session, watched.answer); !raw.empty())
    lines.push_back(fmt::format("         {}", raw));
  if (const std::string front = report::front_sentence(session, watched.answer.front); !front.empty())
    lines.push_back("front    " + front);
  if (const std::string pick = report::pick_text(session, watched.answer); !pick.empty())
    lines.push_back("pick     " + pick);
  for (const answer::Remark& remark : watched.answer.remarks) lines.push_back("         " + remark.text);
  if (const std::string job = report::job_sentence_of(best); !job.empty()) lines.push_back("job      " + job);
}

// Returns how a running trial differs from the best one, or its whole configuration while no trial has succeeded.
std::string what_runs(const Watched& watched, const journal::Trial& trial) {
  const space::Configuration& own = trial.proposal.configuration;
  const std::optional<search::Recommendation>& best = watched.answer.best;
  if (!best || best->configuration == own) return visible(report::short_text(watched.record.session, own));
  return join(report::differences(watched.record.session, own, best->configuration), " ");
}

void add_running(const Watched& watched, std::vector<std::string>& lines) {
  const std::vector<journal::Trial> pending = pending_trials(watched);
  if (pending.empty())
    lines.emplace_back(watched.tune_runs ? "running  none" : "running  none; no tuning run is active");
  for (std::size_t i = 0; i < std::min(pending.size(), kMostRunning); ++i) {
    const std::optional<double> seconds = running_s(watched, pending[i]);
    const std::string where = pending[i].where.empty() ? "" : fmt::format(" ({})", pending[i].where);
    lines.push_back(fmt::format("{}  trial {}{}{}: {}", i == 0 ? "running" : "       ", pending[i].number,
                                waits_for_hand(pending[i]) ? " (by hand)" : where,
                                seconds ? " for " + seconds_text(*seconds) : "", what_runs(watched, pending[i])));
  }
  if (pending.size() > kMostRunning) {
    lines.push_back(fmt::format("         and {} more", pending.size() - kMostRunning));
  }
}

// Returns the remaining time, less the time that the running trials have already used. Empty if nothing runs, and once
// a trial takes longer than usual, because then nobody knows.
std::optional<double> time_left(const Watched& watched) {
  const std::vector<journal::Trial> pending = pending_trials(watched);
  if (pending.empty() && !watched.tune_runs) return std::nullopt;
  const auto at_a_time = static_cast<int>(pending.size());
  const std::optional<double> left_s = seconds_left(watched.record.session, watched.history, at_a_time);
  if (!left_s) return std::nullopt;
  double used_s = 0.0;
  for (const journal::Trial& trial : pending) {
    if (!waits_for_hand(trial)) used_s = std::max(used_s, running_s(watched, trial).value_or(0.0));
  }
  return *left_s > used_s ? std::optional(*left_s - used_s) : std::nullopt;
}

// Returns the last closed trials in the same form as tune prints them.
std::vector<std::string> trial_rows(const Watched& watched, std::size_t most, int columns) {
  std::vector<const journal::Trial*> last;
  for (auto trial = watched.history.rbegin(); trial != watched.history.rend() && last.size() < most; ++trial) {
    if (trial->outcome) last.push_back(&*trial);
  }
  if (last.empty()) return {};
  const report::TrialLines lines(watched.record.session, columns);
  std::vector<std::string> rows = lines.header();
  for (auto trial = last.rbegin(); trial != last.rend(); ++trial)
    rows.push_back(lines.line(**trial, watched.history, watched.answer.best, watched.answer.best));
  return rows;
}

}  // namespace

std::vector<journal::Trial> pending_trials(const Watched& watched) {
  std::vector<journal::Trial> pending;
  for (const journal::Trial& trial : watched.history) {
    if (!trial.outcome && !trial.waiting && (watched.tune_runs || waits_for_hand(trial))) pending.push_back(trial);
  }
  return pending;
}

std::vector<std::string> panel_header(const Watched& watched) {
  std::vector<std::string> lines = {title(watched)};
  add_best(watched, lines);
  lines.push_back("closed   " + report::text_of(watched.answer.trials.by_class));
  if (const std::string bound = report::last_bound_text(watched.answer); !bound.empty()) {
    lines.push_back("left     " + bound);
  }
  add_running(watched, lines);
  if (const auto seconds = time_left(watched))
    lines.push_back(fmt::format("time     about {} left", seconds_text(*seconds)));
  return lines;
}

std::vector<std::string> header_within(const Watched& watched, int columns) {
  constexpr int kIndent = 9;
  std::vector<std::string> lines;
  for (const std::string& line : panel_header(watched)) {
    std::istringstream parts(wrapped_lines(visible(line), columns, kIndent));
    for (std::string part; std::getline(parts, part);) lines.push_back(part);
  }
  return lines;
}

std::vector<std::string> panel(const Watched& watched, TerminalSize size) {
  const int columns = std::max(size.width - 1, 20);
  std::vector<std::string> lines = header_within(watched, columns);
  // The cursor needs the line below the panel, and the titles need one.
  const int room = std::max(size.height - static_cast<int>(lines.size()) - 2, kFewestRows);
  for (std::string& row : trial_rows(watched, static_cast<std::size_t>(room), columns)) lines.push_back(std::move(row));
  return lines;
}

void add_state(Json& document, const Watched& watched) {
  const session::Session& session = watched.record.session;
  document["directory"] = watched.directory;
  add_search(document, session, watched.record.options);
  document["budget_trials"] = session.budget.trials;
  document["closed"] = watched.answer.trials.of_budget;
  document["by_class"] = Json::object();
  for (const answer::ClassCount& one : watched.answer.trials.by_class) document["by_class"][one.name] = one.count;
  const std::optional<answer::LastOutlook>& outlook = watched.answer.outlook;
  document["outlook"] = outlook_json(outlook ? std::optional(outlook->outlook) : std::nullopt);
  document["tune_runs"] = watched.tune_runs;
  document["running"] = Json::array();
  for (const journal::Trial& trial : pending_trials(watched)) {
    const std::optional<double> seconds = running_s(watched, trial);
    document["running"].push_back({{"trial", trial.number},
                                   {"by_hand", waits_for_hand(trial)},
                                   {"seconds", seconds ? json_number(*seconds) : Json(nullptr)},
                                   {"where", trial.where},
                                   {"configuration", space::to_json(trial.proposal.configuration)}});
  }
  const std::optional<double> left_s = time_left(watched);
  document["seconds_left"] = left_s ? json_number(*left_s) : Json(nullptr);
  document["best"] = nullptr;
  if (const std::optional<search::Recommendation>& best = watched.answer.best) {
    document["best"] = {{"trial", best->trial},
                        {"configuration", space::to_json(best->configuration)},
                        {"value", json_number(best->value)},
                        {"reference_trial", best->reference_trial},
                        {"gain", json_number(best->gain)},
                        {"job", report::job_json(best->job)}};
  }
  const std::optional<answer::RawBest>& raw = watched.answer.raw_best;
  document["raw_best_trial"] = raw ? Json(raw->trial) : Json(nullptr);
}

namespace {

constexpr double kPeriodS = 1.0;
constexpr double kSliceS = 0.1;  // how soon Ctrl-C takes effect

void declare_watch(boost::program_options::options_description& options) {
  options.add_options()("once", "show the current state and end");
}

TerminalSize size_of(const Console& console) {
  return console.terminal_size != nullptr ? console.terminal_size() : TerminalSize{console.width, 24};
}

/// Rewrites a block of lines in place. Old text is overwritten and never cleared first, so nothing flickers.
class Panel {
 public:
  explicit Panel(const Console& console) : console_(console) {}

  void show(const std::vector<std::string>& lines) {
    if (lines == shown_) return;
    std::string text = shown_.empty() ? "" : fmt::format("\033[{}A\r", shown_.size());
    for (const std::string& line : lines) text += line + "\033[K\n";
    console_.out << text << "\033[J" << std::flush;
    shown_ = lines;
  }

 private:
  const Console& console_;
  std::vector<std::string> shown_;
};

/// Prints one line for each trial that was closed since the last call.
class Lines {
 public:
  explicit Lines(const Console& console) : console_(console) {}

  void show(const Watched& watched) {
    const report::TrialLines lines(watched.record.session, size_of(console_).width);
    if (!begun_) {
      for (const std::string& line : header_within(watched, size_of(console_).width)) console_.out << line << '\n';
      for (const std::string& line : lines.header()) console_.out << line << '\n';
    }
    closed_.resize(watched.history.size(), false);
    for (std::size_t i = 0; i < closed_.size(); ++i) {
      if (closed_[i] || !watched.history[i].outcome) continue;
      closed_[i] = true;
      if (begun_) console_.out << lines.line(watched.history[i], watched.history, watched.answer.best, before_) << '\n';
    }
    begun_ = true;
    before_ = watched.answer.best;
    console_.out << std::flush;
  }

 private:
  const Console& console_;
  bool begun_ = false;
  std::vector<bool> closed_;
  std::optional<search::Recommendation> before_;
};

// Waits until the next update. Returns false if the user has ended the program.
bool wait(const Clock& clock, const std::atomic<bool>& stop) {
  const double until_s = clock.now_s() + kPeriodS;
  while (!stop && clock.now_s() < until_s) clock.sleep_until_s(std::min(clock.now_s() + kSliceS, until_s));
  return !stop;
}

// Returns why watching ends, or "" if it continues.
std::string why_it_ends(const Watched& watched) {
  if (watched.answer.trials.of_budget >= watched.record.session.budget.trials) return "the budget of trials is spent";
  if (!watched.tune_runs && pending_trials(watched).empty())
    return "no tuning run is active, and no trial of krigtune ask is open";
  return "";
}

/// Reads the directory again at each call of look().
class Reader {
 public:
  Reader(const Context& context, const std::filesystem::path& directory)
      : clock_(context.console.clock),
        directory_(directory),
        record_(run::load_run(directory)),
        best_(directory, record_),
        journal_(run::journal_path(directory)) {}

  Watched look() {
    // Read the claim first: a tune that ends between the two reads then appears as running, with all trials that it
    // closed.
    const bool tune_runs = journal::TunerClaim::is_held(run::journal_path(directory_));
    const search::History& history = journal_.look();
    if (history.empty())
      (void)journal::read_journal(run::journal_path(directory_));  // throws the reason if it cannot be read
    return {directory_.string(), record_,          history,
            tune_runs,           clock_.unix_us(), answer::answer_of(record_.session, history, best_.look(history))};
  }

 private:
  const Clock& clock_;
  std::filesystem::path directory_;
  run::RunRecord record_;
  result::BestReader best_;
  journal::JournalReader journal_;
};

void show_once(const Context& context, const Watched& watched) {
  if (context.arguments.flag("json")) {
    Json json = new_document("watch");
    add_state(json, watched);
    print(context, json);
    return;
  }
  for (const std::string& line : panel(watched, size_of(context.console))) context.console.out << line << '\n';
}

int watch(const Context& context) {
  Reader reader(context, context.arguments.operand());
  if (context.arguments.flag("once") || context.arguments.flag("json")) {
    show_once(context, reader.look());
    return ExitCode::kDone;
  }
  const Interrupt interrupt([] {});
  Panel live(context.console);
  Lines lines(context.console);
  do {
    const Watched watched = reader.look();
    if (context.console.out_is_terminal) {
      live.show(panel(watched, size_of(context.console)));
    } else {
      lines.show(watched);
    }
    const std::string end = why_it_ends(watched);
    if (!end.empty()) {
      context.log.progress("ended: " + end);
      break;
    }
  } while (wait(context.console.clock, interrupt.stop()));
  return ExitCode::kDone;
}

}  // namespace

Command watch_command() {
  return {"watch",
          "DIR",
          "Shows a running session from another shell",
          "On a terminal it updates a panel in place; otherwise it prints one line for each trial that is closed from "
          "now on, with its differences from the best (*). It ends when the budget is spent, when no tuning run is "
          "active and no trial of krigtune ask is open, or with Ctrl-C. It only reads, so any number of processes may "
          "watch. --json prints the state once.",
          declare_watch,
          watch};
}

}  // namespace krigtune::cli
