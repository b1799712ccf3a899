#pragma once
#include <boost/program_options.hpp>
#include <filesystem>
#include <string>

#include "deepspeed/session/session_of_job.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

// Makes a session from the user's DeepSpeed job: --deepspeed FILE, and the command after "--".

constexpr const char* kDeepSpeedOption = "deepspeed";
/// Declares --deepspeed and --hf-config. declare_deepspeed_tuning adds the options that only tune has.
void declare_deepspeed(boost::program_options::options_description& options);
void declare_deepspeed_tuning(boost::program_options::options_description& options);

/// Returns the ds_config.json to tune: that of --deepspeed, or the one that the user's command names, if its recipe is
/// `deepspeed` and no other option says how to tune it. Empty if this is no DeepSpeed job.
std::string ds_config_of(const Arguments& arguments);

/// Throws UserError if an option that belongs to --deepspeed is given without it.
void refuse_deepspeed_options(const Context& context);

/// Returns the session to tune: the operand's, or one for this machine with the user's command as its runner. Prints
/// what was assumed. `run_directory` is that of the run. Throws UserError without a command, and as session_of_job()
/// does.
deepspeed::JobSession deepspeed_session_of(const Context& context, const std::filesystem::path& run_directory,
                                           deepspeed::JobLaunches launches);

/// Returns the text of a session for this machine that the user can edit, with the assumptions as comments at its
/// beginning. Without a command its runner is "none", and nothing is launched.
std::string deepspeed_session_text(const Context& context, deepspeed::JobLaunches launches);

}  // namespace krigtune::cli
