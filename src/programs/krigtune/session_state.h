#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/command_line.h"
#include "report/run_view.h"
#include "run/prepared.h"
#include "run/run_directory.h"
#include "search/model/best.h"
#include "session/session.h"

namespace krigtune::cli {

// The state of a session, computed from its trials alone, as progress, watch and the summary show it.

/// Returns the time until the budget is spent, at the pace of the trials that tune has closed, if `at_a_time` of them
/// run at a time. Empty if it has closed none: the time that a user needs for a trial by hand does not predict that of
/// others.
std::optional<double> seconds_left(const session::Session& session, const search::History& history, int at_a_time);

/// Returns whole seconds, for displays that are rewritten: "7 s", "1 min 17 s".
std::string seconds_text(double seconds);

/// Declares --warm-start, and reads the runs that it names. A directory that has begun recorded its own earlier runs,
/// with their trials; they count if none are named, or the same ones.
inline constexpr const char* kWarmStart = "warm-start";
void declare_warm_start(boost::program_options::options_description& options);
forecast::EarlierRuns earlier_runs(const Context& context, const session::Session& session,
                                   const std::filesystem::path& directory, bool is_begun);
/// Does the same for runs that `where` names, as it is called in errors.
forecast::EarlierRuns earlier_runs(const Context& context, const std::vector<std::string>& named,
                                   const std::string& where, const session::Session& session,
                                   const std::filesystem::path& directory, bool is_begun);

/// Prints, as progress, how the user's command was read, and `remarks`, a line each.
void show_remarks(const Context& context, const std::vector<std::string>& remarks);

/// Prints, as progress, what predictions of the session take for granted and what they do not contain.
void show_caveats(const Context& context, const session::Session& session);

/// Reads the session file and prints its warnings.
session::Session session_of(const Context& context, const std::filesystem::path& file);
/// Does the same for a file that has been parsed.
session::Session session_of(const Context& context, const std::filesystem::path& file, const Json& json);

/// Reads the trials of a run directory without opening it for writing. Prints what was ignored in the journal. Without
/// a journal it returns no trials and prints nothing.
search::History read_history(const Context& context, const std::filesystem::path& directory);

/// A run directory that is not open for writing.
struct LoadedRun {
  std::filesystem::path directory;
  run::LoopOptions options;
  run::Prepared prepared;
  search::History history;

  /// Throws UserError if the directory contains no run.
  LoadedRun(const Context& context, const std::filesystem::path& directory);
  const session::Session& session() const { return prepared.session; }
  /// Returns the view with the recommendation, for which it fits the model once.
  report::RunView view(const Console& console) const;

 private:
  LoadedRun(const Context& context, const std::filesystem::path& directory, run::RunRecord record);
};

/// Returns the session's name for people and for directories: the stem of its file's name.
std::string session_name(const session::Session& session);
/// Returns the directory's own name, however the path was written.
std::string directory_name(const std::filesystem::path& directory);

/// Makes the session's runner. Throws EnvironmentError if it needs krigtune-bench and that is missing, UserError if
/// trials are run by hand. Once `stop` is true, the running trial is ended. Session, console and `stop` must outlive
/// the runner.
std::unique_ptr<trial::Runner> make_session_runner(const session::Session& session, const Console& console,
                                                   const std::atomic<bool>* stop);

}  // namespace krigtune::cli
