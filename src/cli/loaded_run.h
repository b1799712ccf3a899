#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "command.h"
#include "krigtune/report/run_view.h"
#include "krigtune/tuner/run_directory.h"

namespace krigtune {

/// A session with what is worked out from it once.
struct Prepared {
  Session session;
  MemoryFilter filter;
  Candidates candidates;

  /// `earlier`: runs that it is warm-started from.
  explicit Prepared(Session read, const EarlierRuns& earlier = {})
      : session(std::move(read)), filter(session), candidates(session, filter, make_priors(session, filter, earlier)) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
};

/// --warm-start, to be declared; and the runs that it names, read. A directory that is begun has its own: what is named
/// must then be those (UserError).
void declare_warm_start(boost::program_options::options_description& options);
EarlierRuns earlier_runs(const Context& context, const Session& session, const std::filesystem::path& directory,
                         bool is_begun);

/// Reads the session file and says its warnings.
Session session_of(const Context& context, const std::filesystem::path& file);

/// A run directory, read without opening it for writing.
struct LoadedRun {
  std::filesystem::path directory;
  LoopOptions options;
  Prepared prepared;
  History history;

  /// Throws UserError when the directory holds no run.
  LoadedRun(const Context& context, const std::filesystem::path& directory);
  const Session& session() const { return prepared.session; }
  /// With the recommendation, which fits the model once.
  RunView view(const Console& console) const;

 private:
  LoadedRun(const Context& context, const std::filesystem::path& directory, RunRecord record);
};

/// The session's name for people and for directories: the stem of its file.
std::string session_name(const Session& session);
/// The directory's own name, whatever way it was written.
std::string directory_name(const std::filesystem::path& directory);

}  // namespace krigtune
