#pragma once
#include <filesystem>
#include <string>

#include "programs/krigtune/command.h"
#include "programs/krigtune/deepspeed_record.h"
#include "session/session.h"

namespace krigtune::cli {

// A DeepSpeed job of the user's as a session: --deepspeed FILE, and the command behind "--".

constexpr const char* kDeepSpeedOption = "deepspeed";
/// --deepspeed and --hf-config; declare_deepspeed_tuning adds what only tune has.
void declare_deepspeed(boost::program_options::options_description& options);
void declare_deepspeed_tuning(boost::program_options::options_description& options);

/// Throws UserError where there is a command without --deepspeed.
void refuse_users_command(const Context& context);

/// Where a run of the job keeps what it was told of the model: beside its directory, which --fresh moves away.
std::filesystem::path model_directory(const std::filesystem::path& run_directory);

/// The session to tune: the operand's, or one made for this machine, with the user's command as its runner. Says what
/// was assumed. Where nothing else tells the size of the model, the job is launched once to ask it, if `launches` let
/// it; with --tensor-parallel once more to see whether it trains so. `run_directory`: of the run. Throws UserError: no
/// command, or one that names another file.
session::Session deepspeed_session_of(const Context& context, const std::filesystem::path& run_directory,
                                      JobLaunches launches);

/// The session made for this machine, to be edited, what was assumed above it as comments. Without a command its runner
/// is "none", and nothing is launched.
std::string deepspeed_session_text(const Context& context, JobLaunches launches);

}  // namespace krigtune::cli
