#pragma once
#include <boost/program_options.hpp>
#include <string>

#include "jobs/session/job_session.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

// Any training job of the user's as a session: the command behind "--", and what of it may vary.

/// --recipe, --vary, --metric, --minimize and --final.
void declare_job(boost::program_options::options_description& options);

/// Throws UserError where there is one of these options and no command, or with --deepspeed.
void refuse_job_options(const Context& context);

/// The session to tune, with the operand's where there is one. Says what was assumed. Throws UserError as
/// session_of_job() does.
jobs::JobSession job_session_of(const Context& context);

/// The session for the command, to be edited, what was assumed above it as comments.
std::string job_session_text(const Context& context);

}  // namespace krigtune::cli
