#include "loaded_run.h"

#include "krigtune/report/labels.h"
#include "krigtune/runner/replay.h"

namespace krigtune {

Session session_of(const Context& context, const std::filesystem::path& file) {
  Session session = load_session(file);
  for (const std::string& warning : session.warnings) context.log.warning(warning);
  return session;
}

LoadedRun::LoadedRun(const Context& context, const std::filesystem::path& path)
    : LoadedRun(context, path, load_run(path)) {}

LoadedRun::LoadedRun(const Context& context, const std::filesystem::path& path, RunRecord record)
    : directory(path),
      options(record.options),
      prepared(std::move(record.session), options.earlier),
      history(read_journal(journal_path(path))) {
  for (const std::string& warning : session().warnings) context.log.warning(warning);
}

RunView LoadedRun::view(const Console& console) const {
  return {session(),
          history,
          directory_name(directory),
          options,
          directory,
          find_bench(console.program),
          recommend(session(), prepared.candidates, history, options.seed)};
}

std::string directory_name(const std::filesystem::path& directory) {
  // "runs/job/" ends in an empty name.
  return std::filesystem::absolute(directory / "").lexically_normal().parent_path().filename().string();
}

std::string session_name(const Session& session) { return session.file.stem().string(); }

}  // namespace krigtune
