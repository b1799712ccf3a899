#pragma once
#include <boost/program_options.hpp>
#include <string>

#include "jobs/session/job_session.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

// Makes a session from any training job of the user's: the command after "--", and which parts of it vary.

/// Declares --recipe, --vary, --metric, --minimize and --final.
void declare_job(boost::program_options::options_description& options);

/// Throws UserError if one of these options is given without a command or together with --deepspeed.
void refuse_job_options(const Context& context);

/// Returns the session to tune, combined with the operand's session if there is one. Prints what was assumed. Throws
/// UserError as session_of_job() does.
jobs::JobSession job_session_of(const Context& context);

/// Returns the text of a session for the command that the user can edit, with the assumptions as comments at its
/// beginning.
std::string job_session_text(const Context& context);

}  // namespace krigtune::cli
