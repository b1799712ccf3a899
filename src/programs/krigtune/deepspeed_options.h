#pragma once
#include <boost/program_options.hpp>
#include <filesystem>
#include <string>

#include "deepspeed/session/session_of_job.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

// A DeepSpeed job of the user's as a session: --deepspeed FILE, and the command behind "--".

constexpr const char* kDeepSpeedOption = "deepspeed";
/// --deepspeed and --hf-config; declare_deepspeed_tuning adds what only tune has.
void declare_deepspeed(boost::program_options::options_description& options);
void declare_deepspeed_tuning(boost::program_options::options_description& options);

/// Throws UserError where there is an option that goes with --deepspeed, and not that one.
void refuse_deepspeed_options(const Context& context);

/// The session to tune: the operand's, or one made for this machine, with the user's command as its runner. Says what
/// was assumed. `run_directory`: of the run. Throws UserError: no command, and as session_of_job() does.
session::Session deepspeed_session_of(const Context& context, const std::filesystem::path& run_directory,
                                      deepspeed::JobLaunches launches);

/// The session made for this machine, to be edited, what was assumed above it as comments. Without a command its runner
/// is "none", and nothing is launched.
std::string deepspeed_session_text(const Context& context, deepspeed::JobLaunches launches);

}  // namespace krigtune::cli
