// krigtune watch: a session from another shell, as it goes. It only reads.
#include <fmt/format.h>

#include <ostream>

#include "command.h"
#include "document.h"
#include "interrupt.h"
#include "krigtune/journal/claim.h"
#include "session_state.h"
#include "watch_panel.h"

namespace krigtune {
namespace {

constexpr double kPeriodS = 1.0;
constexpr double kSliceS = 0.1;  // how soon Ctrl-C is noticed

void declare_watch(boost::program_options::options_description& options) {
  options.add_options()("once", "show the state as it is and end");
}

TerminalSize size_of(const Console& console) {
  return console.terminal_size != nullptr ? console.terminal_size() : TerminalSize{console.width, 24};
}

/// Rewrites a block of lines in place: what stands there is overwritten, never cleared first, so nothing flickers.
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

/// One line for each trial that was closed since.
class Lines {
 public:
  explicit Lines(const Console& console) : console_(console) {}

  void show(const Watched& watched) {
    if (!begun_) {
      for (const std::string& line : panel_header(watched)) console_.out << line << '\n';
    }
    closed_.resize(watched.history.size(), false);
    for (std::size_t i = 0; i < closed_.size(); ++i) {
      if (closed_[i] || !watched.history[i].outcome) continue;
      closed_[i] = true;
      if (begun_)
        console_.out << closed_trial_text(watched.record.session, watched.history[i], watched.history) << '\n';
    }
    begun_ = true;
    console_.out << std::flush;
  }

 private:
  const Console& console_;
  bool begun_ = false;
  std::vector<bool> closed_;
};

// Waits for the next look; false when the user has seen enough.
bool wait(const Clock& clock, const std::atomic<bool>& stop) {
  const double until_s = clock.now_s() + kPeriodS;
  while (!stop && clock.now_s() < until_s) clock.sleep_until_s(std::min(clock.now_s() + kSliceS, until_s));
  return !stop;
}

// Empty: it goes on.
std::string why_it_ends(const Watched& watched) {
  if (closed_trials(watched.history) >= watched.record.session.budget.trials) return "the budget of trials is spent";
  if (!watched.tune_runs && pending_trials(watched).empty()) return "no tune is at work, and no trial waits";
  return "";
}

/// The directory, read anew at each look.
class Reader {
 public:
  Reader(const Context& context, const std::filesystem::path& directory)
      : clock_(context.console.clock), directory_(directory), record_(load_run(directory)) {}

  Watched look() {
    // The claim first: a tune that ends between the two looks is seen as running, with all that it closed.
    const bool tune_runs = TunerClaim::is_held(journal_path(directory_));
    history_ = read_journal(journal_path(directory_));
    return {directory_.string(), record_, history_, tune_runs, clock_.unix_us()};
  }

 private:
  const Clock& clock_;
  std::filesystem::path directory_;
  RunRecord record_;
  History history_;
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
          "Shows a session as it goes, from another shell",
          "On a terminal a panel that is rewritten in place, elsewhere a line for each trial that is closed\n"
          "from now on. Ends when the budget of trials is spent, when no tune is at work and no trial waits\n"
          "to be told, or with Ctrl-C. It only reads: any number may watch. --json prints the state once.",
          declare_watch,
          watch};
}

}  // namespace krigtune
