#pragma once
#include <boost/program_options.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "jobs/session/job_session.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/show_config.h"

namespace krigtune::cli {

// Makes a session from any training job of the user's: the command after "--", and which parts of it vary.

/// Declares --recipe, --vary, --metric, --minimize and --final.
void declare_job(boost::program_options::options_description& options);

/// Declares --no-model-run, which leaves out count_parameters_of().
void declare_no_model_run(boost::program_options::options_description& options);
inline constexpr const char* kNoModelRun = "no-model-run";

/// Returns what counts the parameters of a command's model (jobs/installed/model_probe.h); nothing with --no-model-run.
/// The context must outlive it.
std::function<std::string(const jobs::ProbedCommand& job, Json& workload)> count_parameters_of(const Context& context);

/// Throws UserError if one of these options is given without a command or together with --deepspeed.
void refuse_job_options(const Context& context);

/// Returns the session to tune, combined with the operand's session if there is one. Prints what was assumed. Throws
/// UserError as session_of_job() does.
jobs::JobSession job_session_of(const Context& context);

/// A session that was read from its file, and what was added to that; empty: nothing.
struct FileSession {
  session::Session session;
  std::optional<SessionSource> source;
};
/// Reads a session file. If its runner is a command, and it says neither what is trained nor where, what is seen of
/// that is added and printed (jobs/session/seen_facts.h): only if `looks`, because trials may run elsewhere. A run that
/// was begun in `run_directory` keeps what it recorded. The session's own warnings are not printed.
FileSession session_of_file(const Context& context, const std::filesystem::path& file,
                            const std::filesystem::path& run_directory, bool looks);

/// Does the same with the contents of a session; `file` names it in errors, and its relative paths are relative to the
/// directory of `file`.
FileSession session_of_json(const Context& context, Json json, const std::filesystem::path& file,
                            const std::filesystem::path& run_directory, bool looks);

/// Returns the text of a session for the command that the user can edit, with the assumptions as comments at its
/// beginning. Its relative paths are relative to the directory of `file`.
std::string job_session_text(const Context& context, const std::filesystem::path& file);

}  // namespace krigtune::cli
