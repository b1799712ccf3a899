#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "programs/krigtune/command.h"
#include "programs/krigtune/command_line.h"
#include "report/run_view.h"
#include "run/prepared.h"
#include "run/run_directory.h"
#include "search/model/best.h"
#include "session/session.h"

namespace krigtune::cli {

// How far a session is, from its trials alone: what progress, watch and the summary say of it.

/// "1.34x": how many times better than the reference trial a value is that is on the scale of the latest run. Empty
/// while no trial is ok.
std::string gain_text_of(const session::Objective& objective, double value, const search::History& history);

/// Until the budget is spent at the pace of the trials that tune closed, `at_a_time` of them at a time. Empty: it
/// closed none; how long the user takes for a trial asked by hand says nothing of the others.
std::optional<double> seconds_left(const session::Session& session, const search::History& history, int at_a_time);

/// Whole seconds, for displays that are rewritten: "7 s", "1 min 17 s".
std::string seconds_text(double seconds);

/// --warm-start, to be declared; and the runs that it names, read. A directory that is begun has its own: what is named
/// must then be those (UserError).
void declare_warm_start(boost::program_options::options_description& options);
forecast::EarlierRuns earlier_runs(const Context& context, const session::Session& session,
                                   const std::filesystem::path& directory, bool is_begun);

/// Reads the session file and says its warnings.
session::Session session_of(const Context& context, const std::filesystem::path& file);

/// The trials of a run directory, without opening it for writing. Says what of the journal was passed over; nothing is
/// there, nothing is said.
search::History read_history(const Context& context, const std::filesystem::path& directory);

/// A run directory, read without opening it for writing.
struct LoadedRun {
  std::filesystem::path directory;
  run::LoopOptions options;
  run::Prepared prepared;
  search::History history;

  /// Throws UserError when the directory holds no run.
  LoadedRun(const Context& context, const std::filesystem::path& directory);
  const session::Session& session() const { return prepared.session; }
  /// With the recommendation, which fits the model once.
  report::RunView view(const Console& console) const;

 private:
  LoadedRun(const Context& context, const std::filesystem::path& directory, run::RunRecord record);
};

/// The session's name for people and for directories: the stem of its file.
std::string session_name(const session::Session& session);
/// The directory's own name, whatever way it was written.
std::string directory_name(const std::filesystem::path& directory);

/// The session's runner. Throws EnvironmentError when krigtune-bench is wanted and missing, UserError when trials are
/// run by hand. `stop`: once true, the running trial is ended. Session, console and `stop` must outlive it.
std::unique_ptr<trial::Runner> make_session_runner(const session::Session& session, const Console& console,
                                                   const std::atomic<bool>* stop);

}  // namespace krigtune::cli
